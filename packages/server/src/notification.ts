import { type Command, type NotifiedCommand, notifiedCommands } from "@paybell/contract";

/** The URLs among a partner's settings. */
export interface RegisteredUrls {
  readonly callBackUrl: string | null;
  readonly callBackUrlByCommand: Readonly<Partial<Record<NotifiedCommand, string>>>;
}

/** The URL for notifications of a command without its own: the one registered for the command, else callBackUrl. */
export function registeredUrl({ callBackUrl, callBackUrlByCommand }: RegisteredUrls, command: Command): string | null {
  const byCommand: Partial<Record<Command, string>> = callBackUrlByCommand;
  return byCommand[command] ?? callBackUrl;
}

/** Each registered URL once, callBackUrl first. */
export function registeredUrls({ callBackUrl, callBackUrlByCommand }: RegisteredUrls): readonly string[] {
  const all = [...(callBackUrl === null ? [] : [callBackUrl]), ...Object.values(callBackUrlByCommand)];
  return [...new Set(all)];
}

/** Whether one of them is this URL, letter by letter. */
export function isRegistered(urls: RegisteredUrls, url: string): boolean {
  return registeredUrls(urls).includes(url);
}

/** The parts of a notification that decide its URL. */
export interface Addressed {
  readonly command: NotifiedCommand;
  /** The command's own; null: one that is registered. */
  readonly callBackUrl: string | null;
  /** A redelivery to the registered one, whatever the command's own was. */
  readonly toRegistered?: boolean;
}

/** The URL of an attempt that begins now (section 4.1): the command's own one first, then its registered one. */
export function callbackUrlOf({ toRegistered, callBackUrl, command }: Addressed, urls: RegisteredUrls): string | null {
  return (toRegistered ? null : callBackUrl) ?? registeredUrl(urls, command);
}

/**
 * The queue of a notification: that of its URL if it is registered, otherwise the origin of the command's own URL. The
 * queue of a registered URL is empty for callBackUrl, otherwise the first command that has the URL: so all that goes
 * there leaves in its order, and the name survives a change of the URL, which applies to everything that is queued.
 * Without any URL it waits with those of callBackUrl. An instance may hold older URLs: the worker finds what is in the
 * wrong queue.
 */
export function queueOf(
  addressed: Addressed,
  urls: RegisteredUrls = { callBackUrl: null, callBackUrlByCommand: {} },
): string {
  const url = callbackUrlOf(addressed, urls);
  if (url === null || url === urls.callBackUrl) return "";
  return notifiedCommands.find((one) => urls.callBackUrlByCommand[one] === url) ?? queueOfUrl(url);
}

/** The queue of a command's own URL. One that cannot be parsed waits with those of callBackUrl, where its attempt fails. */
export function queueOfUrl(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "";
}

/** The URL registered now for one of these queues; undefined for a queue of URLs that commands brought. */
export function urlOfQueue(urls: RegisteredUrls, queue: string): string | null | undefined {
  if (queue === "") return urls.callBackUrl;
  const command = notifiedCommands.find((one) => one === queue);
  return command && registeredUrl(urls, command);
}

/** The queue and the origin of each command that has a URL of its own, as the database keeps them. */
export function registeredRoutes(urls: RegisteredUrls): Readonly<Record<string, { queue: string; origin: string }>> {
  return Object.fromEntries(
    notifiedCommands.flatMap((command) => {
      const url = urls.callBackUrlByCommand[command];
      if (url === undefined) return [];
      const queue = queueOf({ command, callBackUrl: null }, urls);
      return [[command, { queue, origin: new URL(url).origin }]];
    }),
  );
}

/** The states of a notification. They are derived: a row in pending, one in parked, or neither. */
export const notificationStates = ["pending", "accepted", "parked"] as const;
export type NotificationState = (typeof notificationStates)[number];
