import { parseJson } from "@paybell/contract";
import { Failure } from "../shell/failure.ts";

/** A captured POST. */
export interface Capture {
  /** The body as sent, as far as the capture has it. */
  readonly body: string;
  /** Names in lower case; undefined if only the body was captured. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/**
 * Reads typical captures: the raw body; JSON of a body (or `data`) and headers, as `notifications show --json` and
 * GET /v1/notifications give; an HTTP message with its header lines, as `curl -i` or a proxy writes it.
 *
 * @throws Failure if there is no body
 */
export function readCapture(text: string): Capture {
  const start = text.replace(/^\uFEFF/, "");
  const capture = start.trimStart().startsWith("{") ? fromJson(start) : fromMessage(start);
  if (capture.body.trim() !== "") return capture;
  throw new Failure("the capture has no body.", {
    code: "empty_capture",
    remedy: 'Give what was POSTed, {"data": "…"}, with its headers if you have them.',
  });
}

function fromJson(text: string): Capture {
  const value = parse(text);
  if (value === undefined) return { body: text, headers: undefined };
  const { body, data, headers, sealed } = value;
  // `notifications show --json` has it among other fields.
  if (typeof sealed === "object" && sealed !== null) return fromJson(JSON.stringify(sealed));
  if (typeof body === "string") return { body, headers: readHeaders(headers) };
  if (typeof body === "object" && body !== null) return { body: JSON.stringify(body), headers: readHeaders(headers) };
  if (typeof data === "string" && typeof headers === "object") {
    return { body: JSON.stringify({ data }), headers: readHeaders(headers) };
  }
  return { body: text, headers: undefined };
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return parseJson(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

/** An object, or the list of pairs that HAR files and some proxies write. */
function readHeaders(headers: unknown): Capture["headers"] {
  if (typeof headers !== "object" || headers === null) return undefined;
  const pairs = Array.isArray(headers)
    ? headers.map((one: unknown) => (Array.isArray(one) ? one : [Object(one)["name"], Object(one)["value"]]))
    : Object.entries(headers);
  return Object.fromEntries(pairs.map(([name, value]) => [String(name).toLowerCase(), String(value)]));
}

const headerLine = /^(?:[<>] ?)?([A-Za-z0-9-]+):(.*)$/;
const firstLine = /^(?:[<>*] ?)?(?:POST \S+ HTTP\/\S+|HTTP\/\S+ \d{3}.*)$/;

/** Header lines, an empty line, and the body. */
function fromMessage(text: string): Capture {
  const lines = text.split(/\r?\n/);
  const headers: Record<string, string> = {};
  let at = 0;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (/^[<>]? ?$/.test(line)) {
      at += 1;
      break;
    }
    const [, name, value = ""] = headerLine.exec(line) ?? [];
    if (name !== undefined) headers[name.toLowerCase()] = value.trim();
    else if (!firstLine.test(line)) break;
  }
  if (Object.keys(headers).length === 0) return { body: text, headers: undefined };
  const rest = lines.slice(at).join("\n");
  return { body: rest, headers };
}
