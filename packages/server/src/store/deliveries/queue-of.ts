/** The queue of a notification with its own callback URL; empty: that of the registered one. */
export function queueOf(callBackUrl: string | null): string {
  return callBackUrl === null ? "" : new URL(callBackUrl).origin;
}
