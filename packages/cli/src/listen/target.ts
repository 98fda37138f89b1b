import { Failure } from "../failure.ts";
import { isLoopback } from "../loopback.ts";

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
