import { describe, expect, test } from "vitest";
import type { NotificationDetail, Trouble, Waiting } from "../api/operations.ts";
import { headlineOf, parkedInWords, problemInWords, troubleInWords } from "./words.ts";

const createdAt = "2026-11-22T10:00:00.000Z";
const nowMs = Date.parse("2026-11-22T10:02:00.000Z");
const attempt = {
  attemptNo: 1,
  startedAt: createdAt,
  durationMs: 40,
  url: "https://shop.example/ipn",
  address: null,
  httpStatus: 503,
  reason: "status",
  detail: null,
  answer: null,
  keyId: null,
  instanceId: "i",
};
const one = {
  command: "SALE",
  state: "pending",
  subject: { isoResponseCode: "00" },
  attemptsMade: 1,
  lastReason: "status",
  createdAt,
  outcomeAt: null,
  nextAttemptAt: "2026-11-22T10:03:40.000Z",
  attempts: [attempt],
  waiting: null,
} as unknown as NotificationDetail;
const waiting: Waiting = {
  because: "retry",
  since: null,
  endpointId: null,
  target: null,
  reason: null,
  after: null,
};
const wordsOf = (more: Partial<Waiting>, nextAttemptAt = one.nextAttemptAt) =>
  headlineOf({ ...one, nextAttemptAt, waiting: { ...waiting, ...more } }, nowMs).word;

describe("the headline of a notification", () => {
  test("says at which attempt it was delivered, and after how long", () => {
    const delivered = {
      ...one,
      state: "accepted" as const,
      outcomeAt: "2026-11-22T10:02:36.000Z",
      attempts: [attempt, attempt, attempt],
    };
    expect(headlineOf(delivered, nowMs)).toMatchObject({
      tone: "good",
      word: expect.stringMatching(/^Delivered at the third attempt, .*\(after 2 min 36 s\): approved$/),
    });
  });

  test.each([
    ["SALE", "51", ": declined (51), Not sufficient funds"],
    ["SETTLEMENT", "00", ": settled"],
    ["SETTLEMENT", "95", ": not settled (95), Reconcile error"],
    ["SALE", null, ")"],
  ] as const)("says of what a %s with the code %s was delivered", (command, isoResponseCode, ending) => {
    const delivered = { ...one, command, state: "accepted" as const, subject: { ...one.subject, isoResponseCode } };
    expect(headlineOf(delivered, nowMs).word.endsWith(ending)).toBe(true);
  });

  test("says why it was parked", () => {
    const parked = { ...one, state: "parked" as const, attemptsMade: 12, outcomeAt: "2026-11-25T10:00:00.000Z" };
    expect(headlineOf(parked, nowMs).word).toBe("Parked after 3 days and 12 attempts: it answered 503");
  });

  test("says what it waits for", () => {
    expect(wordsOf({})).toBe("Waiting: it answered 503; next try in 1 min 40 s");
    expect(wordsOf({ because: "circuit", reason: "timeout" })).toBe(
      "Waiting: it did not answer in time; its circuit is tripped, next try in 1 min 40 s",
    );
    expect(wordsOf({ because: "paused", since: createdAt }, null)).toMatch(/^Waiting: the partner is paused since /);
    expect(wordsOf({ because: "gone" }, null)).toContain("410 Gone");
    expect(wordsOf({ because: "order" })).toContain("an earlier notification of its chain");
    expect(wordsOf({ because: "turn" })).toContain("Due now");
  });
});

describe("what is parked of a partner in a sentence", () => {
  const of = { partnerId: "p", partnerName: "Zeta", notificationId: "n", since: createdAt, acceptedAt: null };
  const parked = { ...of, parked: 12 };

  test("says how many, why, and that a person has to send them", () => {
    expect(parkedInWords({ ...parked, reason: "status", httpStatus: 401 }, "your", nowMs)).toMatch(
      /^12 are parked, the newest at \S+, because your server answered 401\. They are kept, and go out when you send/,
    );
    expect(parkedInWords({ ...parked, parked: 1, reason: "timeout", httpStatus: null }, "its", nowMs)).toMatch(
      /^1 is parked at \S+, because it did not answer in time\..* when a person sends it again\.$/,
    );
  });

  test("says that others are accepted since", () => {
    const task = { ...parked, reason: "status", httpStatus: 401, acceptedAt: createdAt };
    expect(parkedInWords(task, "its", nowMs)).toMatch(
      /answered 401\. Its server accepts others again, the last at \S+\. They are kept/,
    );
  });
});

describe("a partner's trouble in a sentence", () => {
  const at = (text: string) => expect.stringMatching(new RegExp(text));
  const trouble: Trouble = {
    partnerId: "p",
    partnerName: "Zeta",
    notificationId: "n",
    because: "retry",
    reason: "status",
    httpStatus: 400,
    since: createdAt,
    waiting: 15,
    nextAttemptAt: "2026-11-22T10:03:40.000Z",
    parkingAt: "2026-11-23T10:00:00.000Z",
  };

  test("says how many wait, the status and since when, and what comes next", () => {
    expect(troubleInWords(trouble, "your", nowMs)).toEqual(
      at(
        "^15 wait, because your server has answered 400 since \\S+\\. Next try in 1 min 40 s; parking begins at .+\\.$",
      ),
    );
  });

  test("names no time that has passed as one to come", () => {
    const late = { ...trouble, waiting: 1_000, nextAttemptAt: createdAt, parkingAt: createdAt };
    expect(troubleInWords(late, "its", nowMs)).toEqual(
      at("^1,000 or more wait, .* Next try now; parking begins now\\.$"),
    );
  });

  test("without an answer says what is wrong with the server, or that a person stopped it", () => {
    const silent = { ...trouble, because: "circuit", reason: "timeout", httpStatus: null, waiting: 1 } as const;
    expect(troubleInWords(silent, "your", nowMs)).toEqual(
      at("^1 waits since \\S+ for your server: it did not answer in time; its circuit is tripped\\. Next try"),
    );
    const paused = { ...silent, because: "paused", reason: null, nextAttemptAt: null, parkingAt: null } as const;
    expect(troubleInWords(paused, "your", nowMs)).toEqual(at("^1 waits, because your deliveries are paused since"));
    expect(problemInWords(paused)).toBe("the partner is paused");
  });
});
