import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { headerNames, webhookSignatureMatches } from "@paybell/contract";
import { expect, test } from "vitest";
import { listening } from "../../../../test/support/temporary.ts";
import { lowestId, newId, type PartnerId } from "../ids.ts";
import type { NotificationState } from "../notification.ts";
import type { TroubleView } from "../notifications/trouble.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import type { PartnerSettings } from "../partners/partner.ts";
import type { PartnerMessageKind } from "../partners/store.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { messageText, type PartnerMail, PartnerMessages } from "./partner-messages.ts";

const startMs = Date.parse("2026-11-25T10:00:00Z");
const hourMs = 3_600_000;

/** A partner's contact whose mails are kept, with a clock and a trouble of its own. */
function bench(settings: Partial<PartnerSettings> = {}, port?: number) {
  const made = partnerSnapshot({ name: "Shop", contactMails: ["ops@shop.example"], ...settings });
  // While its secret is rotated.
  const webhook = [...made.keys.webhook, ...partnerSnapshot().keys.webhook];
  const partner = { ...made, keys: { ...made.keys, webhook } };
  const state = {
    settings: partner.settings,
    looked: Promise.withResolvers<void>(),
    nowMs: startMs,
    trouble: null as TroubleView | null,
    became: "accepted" as NotificationState,
    mails: [] as PartnerMail[],
    refuses: false,
    isReadable: true,
    forgetsNothing: false,
    triedAtMs: new Map<PartnerMessageKind, number>(),
    givenUp: new Set<PartnerMessageKind>(),
    events: [] as NewEvent[],
    sent: new Set<PartnerMessageKind>(),
  };
  const told = {
    partnerId: partner.id,
    channel: "mail",
    id: newId(),
    notificationId: newId<"notification">(),
  } as const;
  const endsMs = startMs + partner.settings.retry.reduce((sum, step) => sum + step, 0) * 1_000;
  const messages = new PartnerMessages({
    troubles: { all: async () => (state.trouble === null ? [] : [state.trouble]), of: async () => state.trouble },
    stateOf: async () => state.became,
    findPartner: async () => (state.isReadable ? { ...partner, settings: state.settings } : undefined),
    store: {
      claim: async (_, kind) => {
        if (state.sent.has(kind) || state.givenUp.has(kind)) return undefined;
        const triedAtMs = state.triedAtMs.get(kind) ?? state.nowMs;
        state.triedAtMs.set(kind, triedAtMs);
        return lowestId(triedAtMs);
      },
      giveUp: async (_, kind) => void state.givenUp.add(kind),
      sent: async (_, kind) => void state.sent.add(kind),
      found: async () => undefined,
      informed: async () =>
        state.sent.size + state.givenUp.size > 0 ? [{ ...told, isInformed: state.sent.size > 0 }] : [],
      forget: async () => {
        if (state.forgetsNothing) throw new Error("the database is away");
        state.sent.clear();
        state.givenUp.clear();
        state.triedAtMs.clear();
      },
    },
    connect: async () => {
      if (port === undefined) throw new Error("no URL is registered");
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      return { socket, certificateEndsAt: undefined };
    },
    mail: async (mail) => {
      if (state.refuses) return "not now";
      state.mails.push(mail);
      return undefined;
    },
    events: { record: (event) => void state.events.push(event) },
    clock: { nowMs: () => state.nowMs },
    log: { warn: () => state.looked.resolve() },
  });
  const look = async (afterMs: number) => {
    state.nowMs = startMs + afterMs;
    await messages.sendDue();
    return state.mails.splice(0).map(({ subject }) => subject.replace("[Paybell] Shop: ", ""));
  };
  const fail = (more: Partial<TroubleView> = {}) => {
    state.trouble = {
      partnerId: partner.id as PartnerId,
      partnerName: "Shop",
      notificationId: "01a21478-2bbf-7667-8720-4811c3c82600" as TroubleView["notificationId"],
      because: "retry",
      reason: "status",
      httpStatus: 503,
      since: new Date(startMs).toISOString(),
      waiting: 15,
      nextAttemptAt: new Date(startMs + hourMs).toISOString(),
      parkingAt: new Date(endsMs).toISOString(),
      ...more,
    };
  };
  return { partner, messages, state, look, fail };
}

const failing = "notifications are not received";
const parking = "notifications are parked soon";
const recovered = "notifications are received again";

test("a partner hears once of trouble that lasts, once before parking begins, and once when it is over", async () => {
  const { state, look, fail } = bench();
  fail();
  expect(await look(299_000)).toEqual([]);
  expect(await look(300_000)).toEqual([failing]);
  expect(await look(24 * hourMs)).toEqual([]);
  const lengthMs = 272_555_000;
  expect(await look(lengthMs - 13 * hourMs)).toEqual([]);
  expect(await look(lengthMs - 12 * hourMs)).toEqual([parking]);
  expect(await look(lengthMs)).toEqual([]);
  state.trouble = null;
  expect(await look(lengthMs)).toEqual([recovered]);
  expect(await look(lengthMs)).toEqual([]);
  fail({ since: new Date(startMs + lengthMs).toISOString() });
  expect(await look(lengthMs + 300_000)).toContain(failing);
});

test("trouble that passes before it is reported is not reported, nor its end", async () => {
  const { state, look, fail } = bench();
  fail();
  expect(await look(10_000)).toEqual([]);
  state.trouble = null;
  expect(await look(400_000)).toEqual([]);
});

test("nobody is told of a recovery when everything was parked, or before the oldest has an end", async () => {
  const { state, look, fail } = bench();
  fail();
  expect(await look(hourMs)).toEqual([failing]);
  [state.trouble, state.became] = [null, "pending"];
  expect(await look(hourMs)).toEqual([]);
  expect(state.sent.size).toBe(1);
  state.became = "parked";
  expect(await look(hourMs)).toEqual([]);
  expect(state.sent.size).toBe(0);
});

test("the end waits for an instance that can read the partner's keys", async () => {
  const { state, look, fail } = bench();
  fail();
  expect(await look(hourMs)).toEqual([failing]);
  [state.trouble, state.isReadable] = [null, false];
  expect(await look(hourMs)).toEqual([]);
  state.isReadable = true;
  expect(await look(hourMs)).toEqual([recovered]);
});

test("a channel that is not the partner's any more hears nothing of the end", async () => {
  const { state, look, fail } = bench();
  fail();
  expect(await look(hourMs)).toEqual([failing]);
  state.settings = { ...state.settings, contactMails: [], contactUrl: "https://shop.example/contact" };
  state.trouble = null;
  expect(await look(hourMs)).toEqual([]);
  expect(state.sent.size).toBe(0);
});

test("a contact's URL has accepted a message once it answers 2xx; it is signed with every secret", async () => {
  const taken: { readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  const statuses = [500, 404, 302, 204];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    taken.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(statuses.shift() ?? 204).end();
  });
  const contact = { contactMails: [], contactUrl: "https://shop.example/contact" };
  const { partner, state, look, fail } = bench(contact, await listening(server));
  fail();
  for (const sent of [0, 0, 0, 1, 1]) {
    await look(hourMs);
    expect(state.sent.size).toBe(sent);
  }
  expect(taken).toHaveLength(4);
  const { headers, body } = taken[0] as (typeof taken)[number];
  const [signature, id, atS] = [headerNames.signature, headerNames.id, headerNames.timestamp].map((name) =>
    String(headers[name]),
  ) as [string, string, string];
  for (const { key } of partner.keys.webhook) {
    expect(webhookSignatureMatches(signature, id, atS, body, [key])).toBe(true);
  }
});

test("a look that fails does not end the watch", async () => {
  const { messages, state } = bench();
  Object.defineProperty(state, "trouble", {
    get: () => {
      throw new Error("the database is away");
    },
  });
  messages.start();
  await state.looked.promise;
  await messages.stop();
});

test("the end of trouble is told again if it could not be forgotten, and the next trouble too", async () => {
  const { state, look, fail } = bench();
  fail();
  expect(await look(hourMs)).toEqual([failing]);
  [state.trouble, state.forgetsNothing] = [null, true];
  await expect(look(2 * hourMs)).rejects.toThrow("the database is away");
  state.mails.splice(0);
  state.forgetsNothing = false;
  expect(await look(3 * hourMs)).toEqual([recovered]);
  fail({ since: new Date(startMs + 4 * hourMs).toISOString() });
  expect(await look(5 * hourMs)).toEqual([failing]);
});

test("a short schedule's parking is announced in its last quarter", async () => {
  const { look, fail } = bench({ retry: [hourMs / 1_000, hourMs / 1_000] });
  fail();
  expect(await look(hourMs)).toEqual([failing]);
  expect(await look(1.4 * hourMs)).toEqual([]);
  expect(await look(1.5 * hourMs)).toEqual([parking]);
});

test("a pause or disabling, which is the operator's, and a partner without a contact get none", async () => {
  for (const because of ["paused", "disabled"] as const) {
    const stopped = bench();
    stopped.fail({ because });
    expect(await stopped.look(hourMs)).toEqual([]);
  }
  const unknown = bench({ contactMails: [] });
  unknown.fail();
  expect(await unknown.look(hourMs)).toEqual([]);
});

test("a message that was not accepted is sent with a later look", async () => {
  const { state, look, fail } = bench();
  fail();
  state.refuses = true;
  expect(await look(hourMs)).toEqual([]);
  state.refuses = false;
  expect(await look(hourMs + 30_000)).toEqual([failing]);
});

test("a message that is never accepted is given up after a day, with an event, until the next trouble", async () => {
  const { state, look, fail } = bench();
  fail();
  state.refuses = true;
  for (const hours of [1, 2, 24.9]) await look(hours * hourMs);
  expect(state.events).toEqual([]);
  await look(25 * hourMs);
  const detail = { kind: "failing", channel: "mail", detail: "not now" };
  expect(state.events).toMatchObject([{ kind: "partner_message_failed", subjectId: null, detail }]);
  state.refuses = false;
  expect(await look(26 * hourMs)).toEqual([]);
  state.trouble = null;
  expect(await look(27 * hourMs)).toEqual([]);
  fail({ since: new Date(startMs + 28 * hourMs).toISOString() });
  expect(await look(29 * hourMs)).toEqual([failing]);
  expect(state.events).toHaveLength(1);
});

test("a mail says how many wait, why, since when, and until when, in UTC", () => {
  const { state, fail } = bench();
  fail();
  const partner = partnerSnapshot({ name: "Shop" });
  const textOf = () => messageText({ id: "1", kind: "failing", partner, trouble: state.trouble }).text;
  expect(textOf()).toContain("15 payment notifications wait, because your server answered 503.");
  expect(textOf()).toContain("Since: 2026-11-25 10:00:00 UTC\nNext try: 2026-11-25 11:00:00 UTC\nParking begins: ");
  fail({ waiting: 1, httpStatus: null, reason: "tls", parkingAt: null });
  expect(textOf()).toContain("1 payment notification waits, because they cannot be delivered (tls).");
  expect(textOf()).not.toContain("Parking begins");
});
