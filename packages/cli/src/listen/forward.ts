import { type NoResponse, post, postDefaults, type ResponseReceived } from "@paybell/partner/certify";
import { isLoopback } from "../client/connection.ts";
import type { CommandContext } from "../shell/command.ts";
import { Failure } from "../shell/failure.ts";

/**
 * Parses the forwarding target: `localhost:3000/ipn`, `3000/ipn`, or a whole URL.
 *
 * @throws Failure for an invalid target, and for http:// to another machine unless that is allowed
 */
export function readTarget(text: string, allowHttp: boolean): URL {
  const place = /^\d+(?:\/|$)/.test(text) ? `localhost:${text}` : text;
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(place) ? place : `http://${place}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:") || url.username !== "") {
    throw new Failure(`${JSON.stringify(text)} is not an address to forward to.`, {
      code: "bad_target",
      remedy: "Give it as localhost:3000/ipn or https://localhost:3443/ipn.",
    });
  }
  if (url.protocol === "http:" && !isLoopback(url) && !allowHttp) {
    throw new Failure(
      `${url.host} is another machine, and over http:// anybody on the network could read the headers.`,
      {
        code: "insecure_target",
        remedy: "Use https://, or --allow-http if you trust the network.",
      },
    );
  }
  return url;
}

/** The result of one POST. `detail` says why there is no status, or what was answered with a bad one. */
export interface Forwarded {
  readonly status: number | null;
  readonly accepted: boolean;
  readonly durationMs: number;
  readonly detail: string;
}

const shownCharactersMax = 200;

/**
 * POSTs a sealed body with its headers as the service does: unchanged, with none beside them that a client of the web
 * would add, and redirects are not followed.
 */
export async function forward(
  { signal }: Pick<CommandContext, "signal">,
  target: URL,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Forwarded> {
  const came = await post(target, { method: "POST", headers, body }, { ...postDefaults, signal });
  if ("failure" in came) return { status: null, accepted: false, durationMs: came.ms, detail: whyNot(came) };
  const { status, ms: durationMs } = came;
  const accepted = status >= 200 && status <= 299;
  return { status, accepted, durationMs, detail: accepted ? "" : answerOf(came).slice(0, shownCharactersMax) };
}

function answerOf({ status, headers, body }: ResponseReceived): string {
  if (status < 300 || status > 399) return body.toString("utf8").trim();
  return `redirects to ${headers.location ?? "somewhere"}: redirects are not followed`;
}

function whyNot({ failure, detail }: NoResponse): string {
  if (detail.includes("ECONNREFUSED")) return "connection refused: is your server running on that port?";
  if (failure !== "tls") return detail;
  return `${detail}: name your certificate authority in NODE_EXTRA_CA_CERTS`;
}
