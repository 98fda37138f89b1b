import { api } from "../api/call.ts";
import type {
  InspectedNotification,
  NotificationDetail,
  NotificationSearch,
  RedeliveredNotification,
} from "../api/operations.ts";
import { useSession } from "../session/session.ts";

type Detail = NotificationDetail & Partial<Pick<InspectedNotification, "events">>;
export type Search = NonNullable<Parameters<typeof api.searchNotifications>[0]>;

/** The notification calls of this session: an operator's for all partners, a partner's for its own. */
export interface NotificationApi {
  search(search: Search, signal: AbortSignal): Promise<NotificationSearch>;
  find(id: string): Promise<Detail>;
  redeliver(id: string, to: "original" | "registered"): Promise<RedeliveredNotification>;
}

const ofOperator: NotificationApi = {
  search: (search, signal) => api.searchNotifications(search, { signal }),
  find: (id) => api.inspectNotification(id),
  redeliver: (id, to) => api.redeliverAnyNotification(id, { to }),
};

const ofPartner: NotificationApi = {
  search: ({ partner: _, ...search }, signal) => api.searchOwnNotifications(search, { signal }),
  find: (id) => api.getNotification(id),
  redeliver: (id, to) => api.redeliverNotification(id, { to }),
};

export function useNotificationApi(): NotificationApi {
  return useSession().session.kind === "operator" ? ofOperator : ofPartner;
}
