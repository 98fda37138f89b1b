import { checkNames, PaybellError } from "../errors/misused.ts";
import { anObject, checkOption, type OptionRule } from "../errors/option-checks.ts";
import { openWithoutSource, type ReceivedIpn, type Receiver } from "../receiver/receiver.ts";
import { ApiError, type Client } from "./client.ts";

/** One notification, fetched, opened and verified. */
export interface CaughtUp {
  readonly received: ReceivedIpn;
  /** Set on the last one of each page. Store it once this IPN is processed, and start from it the next time. */
  readonly cursor: string | undefined;
}

type CursorProblem = "invalid_cursor" | "cursor_from_another_history" | "cursor_expired";

/** What to do about a cursor that is refused: also in the packages for other languages. */
export const cursorRemedies: Readonly<Record<CursorProblem, string>> = {
  invalid_cursor: "Give the cursor exactly as it was given; if it is lost, begin again without one.",
  cursor_from_another_history:
    "The service was restored or failed over. Begin again without a cursor, and reconcile: what happened after the " +
    "backup is known to you alone.",
  cursor_expired:
    "The history after this cursor is no longer complete. Start again without a cursor, and reconcile the gap.",
};

/** The service cannot continue from this cursor. `code` and `remedy` say why, and what to do. */
export class CursorRefused extends PaybellError {
  readonly code: CursorProblem;
  readonly remedy: string;

  constructor(code: CursorProblem, cause: ApiError) {
    super(`${cause.problem?.detail ?? cause.message} ${cursorRemedies[code]}`, { cause });
    this.code = code;
    this.remedy = cursorRemedies[code];
  }

  override get name(): string {
    return "CursorRefused";
  }
}

/**
 * Fetches everything after a cursor, in commit order, however it was delivered. Pass each item to the function that
 * `deduplicate` returned. It ends when nothing is left, and with `waitSeconds` when nothing arrived for that long.
 * Returns the cursor to continue from, which for await drops: store it too, because a cursor expires with the history.
 *
 * @param cursor the last one stored; without one, starts at the oldest notification that is kept; `now` starts at this
 * moment, again at each call: `next` of `pullNotifications({ after: "now" })` is one to store
 * @throws CursorRefused, ApiError, Misused, and IpnRefused of the receiver: then nothing of its page was yielded
 */
export async function* catchUp(
  client: Pick<Client, "pullNotifications">,
  cursor: string | null | undefined,
  receiver: Pick<Receiver, "open">,
  options: {
    /** Notifications of a page, 1 to 500; default 100. */
    readonly pageMax?: number;
    /** Seconds to wait for new notifications once nothing is left, 1 to 30; default: no wait. */
    readonly waitSeconds?: number;
    readonly signal?: AbortSignal;
  } = {},
): AsyncGenerator<CaughtUp, string> {
  checkOption("The first argument of catchUp()", client, aClient);
  checkOption("The second argument of catchUp()", cursor, aCursor);
  checkOption("The third argument of catchUp()", receiver, aReceiver);
  checkOption("The fourth argument of catchUp()", options, anObject);
  checkNames("catchUp()'s option ", options, ["pageMax", "waitSeconds", "signal"]);
  const { pageMax: limit = 100, waitSeconds: wait, ...how } = options;
  let after = cursor ?? undefined;
  for (;;) {
    const page = await client.pullNotifications({ after, limit, wait }, how).catch(refuseCursor);
    // All at once, however long the caller takes for each: the headers are fresh now.
    const all = page.items.map(({ data, headers }) => openWithoutSource(receiver, JSON.stringify({ data }), headers));
    for (const [index, received] of all.entries()) {
      yield { received, cursor: index === all.length - 1 ? page.next : undefined };
    }
    after = page.next;
    if (all.length === 0) return after;
  }
}

const aClient = having("pullNotifications", "Give a client: client({ baseUrl, apiKey }).");
const aReceiver: OptionRule = {
  ...having("open", "Give a receiver: receiver({ encryptionKey, … })."),
  reason: "no_receiver",
};
const aCursor: OptionRule = {
  allows: (value) => value === null || value === undefined || typeof value === "string",
  remedy: "Give the cursor that was stored, or null; the receiver comes after it.",
};

function having(method: string, remedy: string): OptionRule {
  return { allows: (value) => typeof Object(value)[method] === "function", remedy };
}

function refuseCursor(error: unknown): never {
  const { code } = Object(error) as { code?: unknown };
  const known = (Object.keys(cursorRemedies) as CursorProblem[]).find((one) => one === code);
  if (known !== undefined && error instanceof ApiError) throw new CursorRefused(known, error);
  throw error;
}
