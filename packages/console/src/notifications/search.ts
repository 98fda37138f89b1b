import { notifiedCommands } from "@paybell/contract";
import { api } from "../api/call.ts";
import type {
  InspectedNotification,
  NotificationDetail,
  NotificationSearch,
  RedeliveredNotification,
  RedeliveryProgress,
} from "../api/operations.ts";
import { useSession } from "../session/session.ts";

/** Ids begin with their time. */
export function timeOfId(id: string): string {
  return new Date(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toISOString();
}

export type Detail = NotificationDetail & Partial<Pick<InspectedNotification, "events">>;
export type Search = NonNullable<Parameters<typeof api.searchNotifications>[0]>;

/** The notification calls of this session: an operator's for all partners, a partner's for its own. */
export interface NotificationApi {
  search(search: Search, signal: AbortSignal): Promise<NotificationSearch>;
  find(id: string): Promise<Detail>;
  redeliver(id: string, to: "original" | "registered"): Promise<RedeliveredNotification>;
  redeliverMany: typeof api.redeliver;
  redelivery(id: string): Promise<RedeliveryProgress>;
}

const ofOperator: NotificationApi = {
  search: (search, signal) => api.searchNotifications(search, { signal }),
  find: (id) => api.inspectNotification(id),
  redeliver: (id, to) => api.redeliverAnyNotification(id, { to }),
  redeliverMany: (step) => api.redeliver(step),
  redelivery: (id) => api.getRedelivery(id),
};

const ofPartner: NotificationApi = {
  search: ({ partner: _, ...search }, signal) => api.searchOwnNotifications(search, { signal }),
  find: (id) => api.getNotification(id),
  redeliver: (id, to) => api.redeliverNotification(id, { to }),
  redeliverMany: ({ filter: { partner: _, ...filter }, ...step }) => api.redeliverOwn({ filter, ...step }),
  redelivery: (id) => api.getOwnRedelivery(id),
};

export function useNotificationApi(): NotificationApi {
  return useSession().session.kind === "operator" ? ofOperator : ofPartner;
}

/** Spans of time that a list may be narrowed to. */
export const spans = { "1h": 3_600_000, "24h": 86_400_000, "7d": 7 * 86_400_000 } as const;
export type Span = keyof typeof spans;

export const textFilters = [
  ["q", "Id, reqId or order"],
  ["contains", "Part of the order"],
  ["amountFrom", "Amount from"],
  ["amountTo", "Amount to"],
  ["refId", "refId"],
  ["approveCode", "Approve code"],
  ["lastFour", "Card's last four"],
  ["billId", "Bill"],
  ["tid", "Terminal (tid)"],
  ["mid", "Merchant (mid)"],
] as const;

const states = ["pending", "accepted", "parked"] as const;

/** The search in the URL. An unknown value of a list is dropped; the API checks the others. */
export function searchOf(params: URLSearchParams): Search {
  const text = (name: string) => params.get(name)?.trim() || undefined;
  const oneOf = <Value extends string>(name: string, values: readonly Value[]) =>
    values.find((value) => value === params.get(name));
  const span = oneOf("span", Object.keys(spans) as Span[]);
  const from = text("from") ?? (span && roundedAgo(spans[span]));
  const texts = Object.fromEntries(textFilters.map(([name]) => [name, text(name)]));
  return {
    ...texts,
    partner: text("partner"),
    state: oneOf("state", states),
    command: oneOf("command", notifiedCommands),
    result: oneOf("result", ["approved", "declined"]),
    reason: text("reason"),
    from,
    to: text("to"),
  };
}

const minuteMs = 60_000;

/** To the minute, so that the same list is asked for again and again. */
function roundedAgo(ms: number): string {
  return new Date(Math.floor((Date.now() - ms) / minuteMs) * minuteMs).toISOString();
}
