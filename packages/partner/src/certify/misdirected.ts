import type { Bench, Case } from "./case.ts";
import type { Words } from "./findings.ts";
import { cardNotification, plainHeaders } from "./notification.ts";
import type { HttpPost } from "./post.ts";

const crashed: Words = {
  means: "Scanners send such requests all day: each writes an error to your log, and may end the process.",
  fix: "Check the request before you use it: its method, its length, an object with data. Otherwise answer 4xx.",
};

/** Requests that scanners send to any URL. They must be answered 4xx, with any status. */
export const misdirectedCases: readonly Case[] = [
  stray("junk-body", "a body that is not JSON, with headers that sign it", {
    make: (bench) =>
      bench.post(cardNotification("SALE", bench.facts.card("junk-body")), { body: () => '{"data": \u0000[[[ "}' }),
    fix: "Only a JSON object with the one field data, a string, is a notification: answer 400 to anything else.",
  }),
  stray("empty-body", "a POST without a body and without the headers", {
    make: () => ({ method: "POST", headers: plainHeaders, body: "" }),
    fix: "An empty body is not a notification: answer 400.",
  }),
  stray("wrong-content-type", "a form in place of JSON, without the headers", {
    make: () => ({
      method: "POST",
      headers: { ...plainHeaders, "content-type": "application/x-www-form-urlencoded" },
      body: "data=AAAA&amount=9000000&status=SUCCESS",
    }),
    fix: "A body that was not parsed is not verified: answer 400 or 415.",
  }),
  stray("wrong-method", "a GET", {
    make: () => ({ method: "GET", headers: { accept: "*/*", "user-agent": plainHeaders["user-agent"] }, body: "" }),
    fix: "Answer 405 (or 404) to every other method than POST.",
    means:
      "A 2xx to a GET claims that something was received. Monitors and browsers then take the endpoint for working " +
      "when the POST route is not even there.",
  }),
];

interface Stray {
  readonly make: (bench: Bench) => HttpPost;
  readonly means?: string;
  readonly fix: string;
}

function stray(code: string, title: string, { make, means, fix }: Stray): Case {
  const accepted = "The endpoint accepts a request that is not a notification: it may verify nothing at all.";
  return {
    code,
    title,
    expects: "refused",
    steps: (bench) => [{ what: title, post: make(bench), expects: "refused" }],
    words: { accepted_forgery: { means: means ?? accepted, fix }, server_error: crashed },
  };
}
