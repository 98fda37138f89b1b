import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import type { NotificationStatus, WaitingFor } from "./store.ts";
import { type StoredParked, type StoredTrouble, Troubles } from "./trouble.ts";

const at = (ms: number) => new Date(ms).toISOString();
const endpoint = { endpointId: newId<"endpoint">(), target: "https://partner.example" };

/** What is found about one partner, whose schedule of 30 s began at 100 s, as it is shown. */
async function shown(waiting: WaitingFor | null, change: Partial<StoredTrouble> = {}) {
  const partner = partnerSnapshot({ retry: [10, 20] });
  const of = { partnerId: partner.id, id: newId<"notification">(), waiting: 7, scheduleStartMs: 100_000 };
  const found: StoredTrouble = { ...of, dueMs: 115_000, sinceMs: 101_000, openedMs: 102_000, ...change };
  const status = { id: found.id, partnerName: "A shop", waiting, lastReason: "status", lastHttpStatus: 503 };
  const none = async () => [];
  const troubles = new Troubles({
    store: { of: async () => found, all: none, parked: none, parkedOf: async () => undefined },
    statuses: async () => [status as NotificationStatus],
    findPartner: async () => partner,
  });
  return await troubles.of(partner.id);
}

const own = { reason: "status", httpStatus: 503, since: at(101_000), parkingAt: at(130_000) };
const stopped = { ...own, parkingAt: null, nextAttemptAt: null };

test.each<[string, WaitingFor, object, Partial<StoredTrouble>?]>([
  [
    "the partner's next attempt, by a retry",
    { because: "retry", untilMs: 120_000 },
    { ...own, nextAttemptAt: at(115_000) },
  ],
  [
    "the partner's next attempt, by its turn",
    { because: "turn", untilMs: 120_000 },
    { ...own, nextAttemptAt: at(115_000) },
  ],
  [
    "its own time, if none was tried",
    { because: "turn", untilMs: 120_000 },
    { since: at(102_000), nextAttemptAt: at(120_000) },
    { dueMs: null, sinceMs: null },
  ],
  [
    "the circuit's reason and probe, without the status of another failure",
    { because: "circuit", ...endpoint, reason: "timeout", untilMs: 140_000 },
    { ...own, reason: "timeout", httpStatus: null, nextAttemptAt: at(140_000) },
  ],
  [
    "the circuit's reason, with the status of its own failure",
    { because: "circuit", ...endpoint, reason: "status", untilMs: 140_000 },
    { ...own, nextAttemptAt: at(140_000) },
  ],
  [
    "no attempt at a URL that is gone",
    { because: "gone", ...endpoint, reason: null, untilMs: null },
    { ...own, nextAttemptAt: null },
  ],
  [
    "the pause, which ends no schedule",
    { because: "paused", sinceMs: 90_000, untilMs: null },
    { ...stopped, since: at(90_000) },
  ],
  ["the disabling", { because: "disabled", sinceMs: 90_000, untilMs: null }, { ...stopped, since: at(90_000) }],
])("a trouble names %s", async (_, waiting, expected, change) => {
  const { because } = waiting;
  expect(await shown(waiting, change)).toMatchObject({ because, waiting: 7, partnerName: "A shop", ...expected });
});

test("of several, each is shown with its own partner and status, and none that ended since", async () => {
  const partners = [
    partnerSnapshot({ retry: [10] }),
    partnerSnapshot({ retry: [20] }),
    partnerSnapshot({ retry: [40] }),
  ];
  const of = { waiting: 1, dueMs: null, scheduleStartMs: 0, sinceMs: null, openedMs: null };
  const found = partners.map(({ id }) => ({ ...of, partnerId: id, id: newId<"notification">() }));
  const parked: StoredParked[] = found.map(({ partnerId, id }) => ({ partnerId, id, parked: 2, acceptedMs: 5_000 }));
  const statusOf = (nth: number, more: object) =>
    ({ ...found[nth], lastReason: "status", lastHttpStatus: 400 + nth, outcomeAtMs: 9_000, ...more }) as object;
  const retry = { waiting: { because: "retry", untilMs: 1 } };
  const statuses = [statusOf(2, { ...retry, state: "parked" }), statusOf(0, { waiting: null, state: "pending" })];
  const troubles = new Troubles({
    store: {
      of: async () => undefined,
      all: async () => found,
      parked: async () => parked,
      parkedOf: async () => parked[0],
    },
    statuses: async () => statuses as NotificationStatus[],
    findPartner: async (id) => partners.find((one) => one.id === id),
  });
  const [, , last] = found;
  expect(await troubles.all()).toMatchObject([{ notificationId: last?.id, httpStatus: 402, parkingAt: at(40_000) }]);
  const { partnerId, id } = last as StoredTrouble;
  const shownParked = {
    notificationId: id,
    reason: "status",
    httpStatus: 402,
    since: at(9_000),
    acceptedAt: at(5_000),
  };
  expect(await troubles.parked()).toMatchObject([{ partnerId, parked: 2, ...shownParked }]);
  expect([await troubles.parkedOf(partnerId), await troubles.of(partnerId)]).toEqual([null, null]);
});
