import { errors, type ServiceError } from "../errors.ts";

/** The media type of every error, RFC 9457. */
export const problemType = "application/problem+json";

/** The default of Retry-After in seconds. */
const retryAfterSDefault = 1;

/** An error in an answer: RFC 9457 with a stable code, the remedy, and every invalid field. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly remedy: string;
  /** The address of the guide to the code, relative to the service's own. */
  readonly documentation: string;
  /** Names this occurrence, in our log too. */
  readonly instance: string;
  readonly errors?: readonly { readonly field: string; readonly code: string; readonly message: string }[];
}

/** @param instanceId the request's id, or the occurrence's own */
export function problemOf(error: ServiceError, instanceId: string): Problem {
  const { status, title, remedy } = errors[error.code];
  return {
    type: `urn:paybell:error:${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    remedy,
    documentation: `/docs/reference/errors#${error.code}`,
    instance: `urn:uuid:${instanceId}`,
    ...(error.fields.length > 0 && {
      errors: error.fields.map(({ field, code, message }) => ({ field, code, message })),
    }),
  };
}

/** The headers that a client needs to act on the error. */
export function problemHeaders(error: ServiceError): Record<string, string> {
  return {
    "content-type": problemType,
    ...(error.status === 401 && { "www-authenticate": "Bearer" }),
    ...((error.retryAfterS !== undefined || error.status === 503 || error.status === 429) && {
      "retry-after": String(Math.max(1, Math.ceil(error.retryAfterS ?? retryAfterSDefault))),
    }),
  };
}
