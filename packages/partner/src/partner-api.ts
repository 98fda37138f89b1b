/** The client of the service, separate from the receiver: a process that only receives need not load it. */
export type * from "./api.ts";
export { ApiError, type ClientErrorCode } from "./api-error.ts";
export { type CaughtUp, CursorRefused, catchUp } from "./catch-up.ts";
export { type CallOptions, type Client, type ClientOptions, client } from "./client.ts";
export { PaybellError } from "./paybell-error.ts";
