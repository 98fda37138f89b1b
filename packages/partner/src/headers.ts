import { type headerNames, type NotifiedCommand, notifiedCommands } from "@paybell/contract";

/** The headers of a request: those of fetch, of node:http, or a plain object with names in any case. */
export type RequestHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

type HeaderName = (typeof headerNames)[keyof typeof headerNames];

/** The value of a header; one that was sent several times is joined with ", ", as HTTP joins it. */
export function readHeader(headers: RequestHeaders, name: HeaderName): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name] ?? otherCase(headers, name);
  return typeof value === "object" ? value.join(", ") : value;
}

/** Function platforms pass the names as they were sent; node:http and fetch pass them in lower case. */
function otherCase(headers: Exclude<RequestHeaders, Headers>, name: string): string | readonly string[] | undefined {
  const found = Object.keys(headers).find((key) => key.toLowerCase() === name);
  return found === undefined ? undefined : headers[found];
}

export function readAttempt(value: string | undefined): number | undefined {
  return value !== undefined && /^[1-9][0-9]{0,8}$/.test(value) ? Number(value) : undefined;
}

export function readCommand(value: string | undefined, kind: "card" | "settlement"): NotifiedCommand | undefined {
  const command = notifiedCommands.find((known) => known === value);
  return (command === "SETTLEMENT") === (kind === "settlement") ? command : undefined;
}

/** A stranger's text, fit for a log line: quoted, short, without control characters. */
export function quoted(value: string): string {
  return JSON.stringify(value.slice(0, 64)).replaceAll(/[^\x20-\x7e]/g, "?");
}
