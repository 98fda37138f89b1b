/** The client of the service, separate from the receiver: a process that only receives need not load it. */
export type * from "./api.ts";
export { type CaughtUp, CursorRefused, catchUp } from "./catch-up.ts";
export { ApiError, type CallOptions, type Client, type ClientErrorCode, type ClientOptions, client } from "./client.ts";
export { PaybellError } from "./misused.ts";
