import { parseJson } from "@paybell/contract";
import type { Endpoint, KeyVersion, Trouble } from "@paybell/partner/client";
import { type Api, noPaybell } from "../api.ts";
import type { RegisteredPartner } from "../partners/partner.ts";
import { readPages } from "../read-pages.ts";
import type { Overview } from "./overview.ts";

export interface DeliveryStatus {
  readonly trouble: readonly Trouble[];
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
  readonly backlog: Backlog | null;
  readonly endpoints: readonly Endpoint[];
  /** Key versions that end within the days that were asked for, the first to end first. */
  readonly keysEnding: readonly EndingKey[];
  readonly partners: { readonly total: number; readonly paused: number; readonly disabled: number };
}

/** The backlog of all instances, as counted by the one that was asked. */
export interface Backlog {
  readonly pending: number;
  /** Given up for now: they stay until they are redelivered. */
  readonly parked: number;
  readonly oldestPendingSeconds: number;
}

export interface EndingKey extends Pick<KeyVersion, "id" | "kind"> {
  readonly partnerId: string;
  readonly partner: string;
  readonly expiresAt: string;
}

/** The operator's first overview. @throws Failure if the service cannot be reached */
export async function readStatus(
  anyone: Api,
  operator: Api,
  { keysWithinDays, nowMs, counted }: { keysWithinDays: number; nowMs: number; counted: (partners: number) => void },
): Promise<DeliveryStatus> {
  const [{ trouble }, readiness, backlog, open, gone] = await Promise.all([
    operator.get<Pick<Overview, "trouble">>("/operator/v1/overview"),
    readReadiness(anyone),
    readBacklog(anyone),
    readPages<Endpoint>(operator, "/operator/v1/endpoints", { state: "open" }),
    readPages<Endpoint>(operator, "/operator/v1/endpoints", { state: "gone" }),
  ]);
  const keysEnding: EndingKey[] = [];
  const partners = { total: 0, paused: 0, disabled: 0 };
  const untilMs = nowMs + keysWithinDays * 86_400_000;
  for (const partner of await readPages<RegisteredPartner>(
    operator,
    "/operator/v1/partners",
    {},
    { onProgress: counted },
  )) {
    partners.total += 1;
    if (partner.state !== "active") partners[partner.state] += 1;
    keysEnding.push(...endingKeys(partner, nowMs, untilMs));
  }
  keysEnding.sort((a, b) => (a.expiresAt < b.expiresAt ? -1 : 1));
  return { trouble, ...readiness, backlog, endpoints: [...open, ...gone], keysEnding, partners };
}

async function readReadiness(api: Api): Promise<Pick<DeliveryStatus, "ready" | "checks">> {
  const { status, text } = await api.look("/readyz");
  try {
    const { ready, checks } = parseJson(text) as Pick<DeliveryStatus, "ready" | "checks">;
    if (typeof ready === "boolean" && typeof checks === "object") return { ready, checks };
  } catch {
    // Reported below: a server with another answer is not the service.
  }
  throw noPaybell(api.baseUrl, status);
}

/** Null where the metrics are not shown to us: a proxy may keep them to itself. */
async function readBacklog(api: Api): Promise<Backlog | null> {
  const { status, text } = await api.look("/metrics");
  const pending = gauge(text, "paybell_notifications_pending");
  const parked = gauge(text, "paybell_parked_notifications");
  const oldestPendingSeconds = gauge(text, "paybell_oldest_pending_seconds");
  if (status !== 200 || pending === undefined || parked === undefined || oldestPendingSeconds === undefined)
    return null;
  return { pending, parked, oldestPendingSeconds };
}

/** The value of a metric without labels, in Prometheus' text format. */
function gauge(text: string, name: string): number | undefined {
  const value = new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

function endingKeys({ id: partnerId, settings, keys }: RegisteredPartner, nowMs: number, untilMs: number): EndingKey[] {
  return keys.flatMap(({ id, kind, expiresAt }) => {
    if (expiresAt === null) return [];
    const endsMs = Date.parse(expiresAt);
    return endsMs > nowMs && endsMs <= untilMs ? [{ id, kind, partnerId, partner: settings.name, expiresAt }] : [];
  });
}
