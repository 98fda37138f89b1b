import { type headerNames, type NotifiedCommand, notifiedCommands } from "@paybell/contract/receiving";
import { Misused } from "../errors/misused.ts";

/** The headers of a request: of fetch, of node:http, or a plain object with names in any case. */
export type RequestHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

type HeaderName = (typeof headerNames)[keyof typeof headerNames] | "x-forwarded-for";

/** Looks a header up. A header that was sent several times is joined with ", ", as HTTP does. */
export type HeaderReader = (name: HeaderName) => string | undefined;

export function headerReader(headers: RequestHeaders): HeaderReader {
  if (headers instanceof Promise) throw new Misused("missing_await", "The second argument of open(), the headers,");
  if (typeof headers !== "object" || headers === null) throw new Misused("no_headers");
  if (isHeaders(headers)) return (name) => headers.get(name) ?? undefined;
  // node:http and fetch pass the names in lower case. Function platforms may pass them as sent, beside their own.
  const named = Object.keys(headers).some((name) => /[A-Z]/.test(name)) ? inLowerCase(headers) : headers;
  return (name) => {
    const value = named[name];
    return typeof value === "object" ? value?.join(", ") : value;
  };
}

/** Not instanceof: a polyfill and another realm have a class of their own. */
function isHeaders(headers: RequestHeaders): headers is Headers {
  return typeof headers.get === "function";
}

function inLowerCase(headers: Exclude<RequestHeaders, Headers>): Exclude<RequestHeaders, Headers> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

export function readAttempt(value: string | undefined): number | undefined {
  return value !== undefined && /^[1-9][0-9]{0,8}$/.test(value) ? Number(value) : undefined;
}

export function readCommand(value: string | undefined, kind: "card" | "settlement"): NotifiedCommand | undefined {
  const command = notifiedCommands.find((known) => known === value);
  return (command === "SETTLEMENT") === (kind === "settlement") ? command : undefined;
}

/** Makes a stranger's text fit for a log line: quoted, short, without control characters. */
export function quoted(value: string): string {
  return JSON.stringify(value.slice(0, 64)).replaceAll(/[^\x20-\x7e]/g, "?");
}
