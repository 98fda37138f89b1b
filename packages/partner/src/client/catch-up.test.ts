import { describe, expect, it, vi } from "vitest";
import { Misused, PaybellError } from "../errors/misused.ts";
import { IpnRefused } from "../errors/refused.ts";
import { receiver } from "../receiver/receiver.ts";
import { type Sample, sampleIpn, sampleKeys } from "../testing.ts";
import type { NotificationPage } from "./api.ts";
import { CursorRefused, catchUp } from "./catch-up.ts";
import { ApiError } from "./client.ts";

const samples = Array.from({ length: 5 }, () => sampleIpn());

/** A history of samples. Its cursor is the number of samples that were fetched. */
function historyOf(all: readonly Sample[], asked: (string | undefined)[] = [], waited: (number | undefined)[] = []) {
  return {
    pullNotifications: async ({
      after,
      limit = 100,
      wait,
    }: {
      after?: string | undefined;
      limit?: number | undefined;
      wait?: number | undefined;
    } = {}) => {
      asked.push(after);
      waited.push(wait);
      const from = Number(after ?? 0);
      const items = all.slice(from, from + limit).map(({ body, headers }) => ({
        id: headers["webhook-id"] ?? "",
        createdAt: "2026-01-01T00:00:00Z",
        kind: "card" as const,
        state: "parked" as const,
        data: (JSON.parse(body) as { data: string }).data,
        headers,
      }));
      return { items, next: String(from + items.length) } satisfies NotificationPage;
    },
  };
}

const aProblem = { type: "urn:paybell:error:x", title: "T", remedy: "R", documentation: "D", instance: "urn:uuid:x" };
const paybell = receiver(sampleKeys);
const idsOf = (all: readonly Sample[]) => all.map(({ received }) => received.ipn.id);

describe("catching up", () => {
  it("yields every IPN once, opened, with a cursor after the last one of each page", async () => {
    const caught: [string, string | undefined][] = [];
    for await (const { received, cursor } of catchUp(historyOf(samples), null, paybell, { pageMax: 2 })) {
      caught.push([received.ipn.id, cursor]);
    }
    const cursors = [undefined, "2", undefined, "4", "5"];
    expect(caught).toEqual(idsOf(samples).map((id, index) => [id, cursors[index]]));
  });

  it("continues from any stored cursor and misses nothing, wherever it was interrupted", async () => {
    for (let stopAfter = 0; stopAfter <= samples.length; stopAfter += 1) {
      const seen = new Set<string>();
      let stored: string | undefined;
      let taken = 0;
      for await (const { received, cursor } of catchUp(historyOf(samples), stored, paybell, { pageMax: 2 })) {
        if (taken === stopAfter) break;
        taken += 1;
        seen.add(received.ipn.id);
        stored = cursor ?? stored;
      }
      for await (const { received } of catchUp(historyOf(samples), stored, paybell)) seen.add(received.ipn.id);
      expect([...seen].sort()).toEqual(idsOf(samples).sort());
    }
  });

  it("ends with the cursor to continue from, also if nothing was missed", async () => {
    const asked: (string | undefined)[] = [];
    const end = await catchUp(historyOf(samples, asked), "5", paybell).next();
    expect(end).toEqual({ done: true, value: "5" });
    expect(asked).toEqual(["5"]);
  });

  it("asks the service to wait for new notifications, if configured", async () => {
    const waited: (number | undefined)[] = [];
    const caught = catchUp(historyOf(samples, [], waited), "4", paybell, { waitSeconds: 30 });
    expect(await caught.next()).toMatchObject({ done: false, value: { cursor: "5" } });
    expect(await caught.next()).toEqual({ done: true, value: "5" });
    await catchUp(historyOf(samples, [], waited), "5", paybell).next();
    expect(waited).toEqual([30, 30, undefined]);
  });

  it("asks for 100 at a time, and passes its signal on", async () => {
    const { signal } = new AbortController();
    const pullNotifications = vi.fn(historyOf(samples).pullNotifications);
    await catchUp({ pullNotifications }, "5", paybell, { signal }).next();
    expect(pullNotifications.mock.calls).toEqual([[{ after: "5", limit: 100, wait: undefined }, { signal }]]);
  });

  it("fetches a page only when it is needed", async () => {
    const asked: (string | undefined)[] = [];
    for await (const { cursor } of catchUp(historyOf(samples, asked), undefined, paybell, { pageMax: 2 })) {
      if (cursor === "2") break;
    }
    expect(asked).toEqual([undefined]);
  });

  it("opens a whole page at once, so that a slow function does not make its headers stale", async () => {
    let nowMs = Date.now();
    const options = { ...sampleKeys, clock: { nowMs: () => nowMs } };
    const fresh = samples.map(() => sampleIpn({}, options));
    let count = 0;
    for await (const _ of catchUp(historyOf(fresh), undefined, receiver(options), { pageMax: 5 })) {
      nowMs += 200_000;
      count += 1;
      if (count === fresh.length) break;
    }
    expect(count).toBe(5);
  });

  it("opens what it fetched also with sourceAddresses: the sender of a callback is not concerned", async () => {
    const strict = receiver({ ...sampleKeys, sourceAddresses: ["192.0.2.1"] });
    const caught: string[] = [];
    for await (const { received } of catchUp(historyOf(samples), null, strict)) caught.push(received.ipn.id);
    expect(caught).toEqual(idsOf(samples));
    const [{ body, headers } = sampleIpn()] = samples;
    expect(() => strict.open(body, headers)).toThrow(IpnRefused);
  });

  it("takes a receiver of your own, which has open() only", async () => {
    const own = { open: paybell.open };
    const { value } = await catchUp(historyOf(samples), "4", own).next();
    expect(value).toMatchObject({ cursor: "5" });
  });

  it.each([null, { pagemax: 5 }, 5])("refuses the options %j", async (options) => {
    await expect(catchUp(historyOf(samples), null, paybell, options as never).next()).rejects.toThrow(Misused);
  });

  it("stops at an IPN that is not authentic, and yields nothing of its page", async () => {
    const history = historyOf([...samples, sampleIpn({ tampering: "wrong_signing_key" })]);
    const caught: string[] = [];
    const all = async () => {
      for await (const { received } of catchUp(history, "4", paybell)) caught.push(received.ipn.id);
    };
    await expect(all()).rejects.toThrow(IpnRefused);
    expect(caught).toEqual([]);
  });

  it.each([
    ["invalid_cursor", 400],
    ["cursor_from_another_history", 409],
    ["cursor_expired", 410],
  ] as const)("says what to do about %s", async (code, status) => {
    const problem = { ...aProblem, code, detail: "It was refused.", status };
    const refusal = new ApiError(code, `${code}: It was refused.`, "R", { status, problem });
    const refusing = { pullNotifications: () => Promise.reject(refusal) };
    const error = await catchUp(refusing, "x", paybell)
      .next()
      .catch((one: unknown) => one as CursorRefused);
    expect(error).toBeInstanceOf(CursorRefused);
    expect(error).toBeInstanceOf(PaybellError);
    expect(error).toMatchObject({ code, remedy: expect.stringMatching(/(begin|start) again/i) });
    expect((error as CursorRefused).message).toMatch(/^It was refused\. \w.*\.$/);
  });

  it("passes every other failure on unchanged", async () => {
    const failing = new ApiError("unavailable", "unavailable: D", "R", { status: 503 });
    const refusing = { pullNotifications: () => Promise.reject(failing) };
    await expect(catchUp(refusing, "x", paybell).next()).rejects.toBe(failing);
  });

  const history = historyOf(samples);
  it.each<[what: string, reason: string, given: unknown[], says: RegExp]>([
    [
      "a client that is still a Promise",
      "missing_await",
      [Promise.resolve(history), null, paybell],
      /^The first.*await/,
    ],
    [
      "a cursor that is still a Promise",
      "missing_await",
      [history, Promise.resolve("1"), paybell],
      /^The second.*await/,
    ],
    [
      "a receiver that is still a Promise",
      "missing_await",
      [history, null, Promise.resolve(paybell)],
      /^The third.*await/,
    ],
    ["the arguments the other way round", "wrong_option", [paybell, null, history], /^The first.*Give a client/],
    [
      "the receiver in place of the cursor",
      "wrong_option",
      [history, paybell],
      /^The second.*the receiver comes after/,
    ],
    ["a cursor that is a number", "wrong_option", [history, 5, paybell], /^The second.*cannot be a number/],
    ["no receiver", "no_receiver", [history, null], /^The third.*cannot be undefined\. Give a receiver/],
    ["the receiver's options", "no_receiver", [history, null, sampleKeys], /^The third.*cannot be this object/],
  ])("tells of %s: %s", async (_what, reason, given, says) => {
    const error = await catchUp(...(given as unknown as Parameters<typeof catchUp>))
      .next()
      .catch((one: unknown) => one);
    expect(error).toBeInstanceOf(Misused);
    expect(error).toMatchObject({ reason, message: expect.stringMatching(says) });
  });
});
