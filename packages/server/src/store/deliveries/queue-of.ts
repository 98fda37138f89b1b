/** The queue of pending that a callback URL of a notification's own stands in; empty: that of the registered one. */
export function queueOf(callBackUrl: string | null): string {
  return callBackUrl === null ? "" : new URL(callBackUrl).origin;
}
