/** The client of the service, separate from the receiver: a process that only receives need not load it. */
export type * from "./client/api.ts";
export { type CaughtUp, CursorRefused, catchUp } from "./client/catch-up.ts";
export {
  ApiError,
  type CallOptions,
  type Client,
  type ClientErrorCode,
  type ClientOptions,
  client,
} from "./client/client.ts";
export { PaybellError } from "./errors/misused.ts";
