import { errors } from "undici";
import { firstFailure } from "../../errors.ts";
import type { FailureReason } from "../delivery.ts";

/** Why a POST got no response: a stable reason, and a description for the operator. */
export class TransportFailure extends Error {
  override readonly name = "TransportFailure";
  readonly reason: FailureReason;

  constructor(reason: FailureReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

interface CodedError {
  readonly code?: unknown;
  readonly message: string;
}

/** The code and message of an error, truncated: a TLS error can quote a whole certificate. */
export function describe(error: unknown): string {
  const { code, message }: CodedError = firstFailure(error);
  const cut = message.length > 300 ? `${message.slice(0, 300)}…` : message;
  return typeof code === "string" && !cut.includes(code) ? `${cut} (${code})` : cut;
}

export function codeOf(error: unknown): string {
  const { code }: CodedError = firstFailure(error);
  return typeof code === "string" ? code : "";
}

const resetCodes = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "UND_ERR_SOCKET"]);

/** The connection was closed during the request. If it was used before, the partner may just have closed it as idle. */
export function isReset(error: unknown): boolean {
  return resetCodes.has(codeOf(error)) && !isBadAnswer(error);
}

/** undici's code for an invalid response, such as 101 to a POST. */
function isBadAnswer(error: unknown): boolean {
  return error instanceof Error && /^bad (response|upgrade)$/.test(error.message);
}

/** The client library asserts the range of a status: 099 fails there, with its message. */
const impossibleStatus = "ERR_ASSERTION";

const notHttp = [errors.HTTPParserError, errors.HeadersOverflowError, errors.ResponseContentLengthMismatchError];

/** The failure of an attempt by an error after the connection was established. */
export function exchangeFailure(error: unknown): TransportFailure {
  if (error instanceof TransportFailure) return error;
  if (isReset(error)) {
    return new TransportFailure("reset", `The connection ended before the answer was complete: ${describe(error)}.`);
  }
  if (isBadAnswer(error) || notHttp.some((kind) => error instanceof kind)) {
    return new TransportFailure("bad_response", `The answer is not HTTP/1.1: ${describe(error)}.`);
  }
  if (codeOf(error) === impossibleStatus) {
    return new TransportFailure("bad_response", "The answer is not HTTP/1.1: its status is below 100.");
  }
  if (codeOf(error).startsWith("ERR_SSL")) {
    return new TransportFailure("tls", `The TLS connection broke (${codeOf(error)}).`);
  }
  return new TransportFailure("internal", describe(error));
}
