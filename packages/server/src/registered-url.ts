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

/**
 * The queue of a command's notifications at its registered URL: empty for callBackUrl, otherwise the first command that
 * has the same URL. Commands with one URL share a queue, so that they leave in their order. The name survives a change
 * of the URL, which therefore applies to everything that is queued.
 */
export function registeredQueue(urls: RegisteredUrls, command: NotifiedCommand): "" | NotifiedCommand {
  const { callBackUrl, callBackUrlByCommand: byCommand } = urls;
  const url = registeredUrl(urls, command);
  if (url === callBackUrl) return "";
  return notifiedCommands.find((one) => byCommand[one] === url) ?? "";
}

/** The URL registered now for one of these queues; undefined for a queue of URLs that commands named themselves. */
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
      return url === undefined
        ? []
        : [[command, { queue: registeredQueue(urls, command), origin: new URL(url).origin }]];
    }),
  );
}

/**
 * The queue of a new notification. An instance may hold an older registration: the worker moves what is in the wrong
 * queue.
 *
 * @param callBackUrl the command's own
 */
export function queueOf(
  { callBackUrl, command }: { readonly callBackUrl: string | null; readonly command: NotifiedCommand },
  urls: RegisteredUrls | undefined,
): string {
  if (callBackUrl !== null) return new URL(callBackUrl).origin;
  return urls === undefined ? "" : registeredQueue(urls, command);
}
