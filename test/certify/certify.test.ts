import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReceiverOptions } from "@paybell/partner";
import { reconcile } from "@paybell/partner/reconcile";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  alikeCase,
  type CertifyOptions,
  type CertifyReport,
  caseCodes,
  cases,
  certify,
} from "../../packages/partner/src/certify/certify.ts";
import { marks, sealerKeys } from "../../packages/partner/src/certify/notification.ts";
import { makeAuthority } from "../../packages/server/src/delivery/transport/transport.fixture.ts";
import { newId } from "../../packages/server/src/ids.ts";
import { testSale, testSettlement } from "../../packages/server/src/notifications/sample.ts";
import { startReceiver } from "../../packages/server/src/sandbox/receiver.ts";
import { broken, byTheContract, byTheLibrary, startEndpoint, type TestEndpoint } from "./endpoints.ts";

const key = () => randomBytes(32).toString("base64");
const keys: ReceiverOptions = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
/** A slow body, shortened for the test. */
const quick = { pieces: 4, gapMs: 10 };
/** A machine with other work takes long for a connection. */
const patient = { connectTimeoutMs: 600_000 };

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function start(listener: Parameters<typeof startEndpoint>[0]): Promise<TestEndpoint> {
  const endpoint = await startEndpoint(listener);
  closers.push(endpoint.close);
  return endpoint;
}

type Given = Partial<Omit<CertifyOptions, "keys">> & { readonly keys?: ReceiverOptions };

function certifyAt(url: URL, { keys: given = keys, limits = quick, ...more }: Given = {}): Promise<CertifyReport> {
  const how = { run: "0badc0de", nowMs: Date.now, limits: { ...patient, ...limits } };
  return certify({ url, keys: sealerKeys(given), ...how, ...more });
}

it("the guide to booking discards test IPNs by the mids that they have", async () => {
  const guide = await readFile(join(import.meta.dirname, "../../docs/partner/what-to-book.md"), "utf8");
  const values = { transactionId: newId<"transaction">(), reqId: randomUUID(), at: new Date() };
  for (const { fields } of [testSale(values), testSettlement(values)]) {
    expect(guide).toContain(`["${fields["mid"]}", "${marks.mid}"].includes(ipn.mid)`);
  }
});

/** The failed cases with what was found. */
function failures({ results }: CertifyReport): Record<string, string> {
  const failed = results.filter(({ verdict }) => verdict === "failed");
  return Object.fromEntries(failed.map(({ code, finding }) => [code, finding?.code ?? ""]));
}

function diagnoses({ diagnoses: found }: CertifyReport): string[] {
  return found.map(({ code }) => code);
}

const codesOf = (expects: "accepted" | "refused") =>
  cases.filter((one) => one.expects === expects).map(({ code }) => code);
const all = (codes: readonly string[], finding: string) => Object.fromEntries(codes.map((code) => [code, finding]));

describe("an endpoint that is right", () => {
  it.each<[string, Partial<ReceiverOptions>]>([
    ["aes-256-gcm, base64, fields", {}],
    ["aes-256-gcm, hex, whole", { encoding: "hex", signing: { mode: "whole" } }],
    ["aes-256-cbc, base64url, fields", { cipher: "aes-256-cbc", encoding: "base64url" }],
    ["jwe, an agreed list", { cipher: "jwe", signing: agreed() }],
    [
      "jwe with named versions",
      {
        cipher: "jwe",
        encryptionKey: [
          { id: "v2", key: key() },
          { id: "v1", key: key() },
        ],
      },
    ],
  ])("made with the library passes: %s", async (_name, settings) => {
    const options = { ...keys, ...settings };
    const { url } = await start(byTheLibrary(options));
    const certificate = await certifyAt(url, { keys: options });
    expect(failures(certificate)).toEqual({});
    expect(certificate).toMatchObject({ passed: true, diagnoses: [] });
    expect(certificate.results.map(({ code }) => code)).toEqual(caseCodes);
  });

  it("is the receiver of the sandbox, over HTTPS", async () => {
    const home = await mkdtemp(join(tmpdir(), "paybell-certify-"));
    closers.push(() => rm(home, { recursive: true, force: true }));
    const started = await startReceiver({ home, keys, onIpn: () => undefined, onRefused: () => undefined });
    closers.push(() => started.close());
    const url = new URL(started.url);
    const certificate = await certifyAt(url, { ca: started.ca });
    expect([certificate.passed, failures(certificate)]).toEqual([true, {}]);
    const untrusted = await certifyAt(url, { only: ["sale", "void"] });
    expect([failures(untrusted), untrusted.results[1]?.verdict]).toEqual([{ sale: "tls" }, "not_run"]);
  });

  it("gets a report of what is wrong with its certificate, or that its port does not speak TLS", async () => {
    const authority = await makeAuthority("Partners");
    const found = async (issued: Awaited<ReturnType<typeof authority.issue>>) => {
      const server = createHttpsServer(issued, (_, response) => response.writeHead(204).end());
      await once(server.listen(0, "127.0.0.1"), "listening");
      closers.push(async () => void server.close());
      const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`);
      const { results } = await certifyAt(url, { ca: authority.cert, only: ["sale", "void"] });
      expect(results[1]).toMatchObject({ verdict: "not_run", note: "the endpoint could not be reached" });
      return results[0]?.finding?.code;
    };
    expect(await found(await authority.issue("shop.test", new Date(Date.now() - 1_000)))).toBe("certificate_expired");
    expect(await found(await authority.issue("shop.test", undefined, ["192.0.2.1"]))).toBe("certificate_name");
    expect(await found(await (await makeAuthority("Strangers")).issue("shop.test"))).toBe("tls");

    const { url } = await start(byTheLibrary(keys));
    const { results } = await certifyAt(new URL(url.href.replace("http:", "https:")), { only: ["sale", "void"] });
    expect(results[1]?.verdict).toBe("not_run");
    expect(results[0]?.finding).toMatchObject({ code: "no_tls", fix: expect.stringContaining("terminate TLS") });
    expect(results[0]?.exchanges[0]?.came).toMatchObject({
      detail: expect.not.stringMatching(/routines|--use-system/),
    });
  });

  it.each([
    ["closes the connection when TLS begins", (socket: Socket) => socket.once("data", () => socket.resetAndDestroy())],
    // The port is reached before its time is over, however slow the machine is.
    ["says nothing", (socket: Socket) => socket.once("data", () => vi.advanceTimersByTime(300))],
  ])("gets a report that a port which %s speaks no TLS", async (_, serve) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket.on("error", () => undefined));
      serve(socket);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    closers.push(async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`);
    const { results } = await certifyAt(url, { only: ["sale"], limits: { connectTimeoutMs: 300 } });
    expect(results[0]?.finding?.code).toBe("no_tls");
    expect(results[0]?.exchanges[0]?.came).toMatchObject({
      detail: expect.stringMatching(/^the port accepted the connection, and /),
    });
  });

  it.each(["http", "https"])("may answer over %s when the time to connect has passed", async (scheme) => {
    const authority = await makeAuthority("Partners");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      request.resume().on("end", () => {
        vi.advanceTimersByTime(1_000);
        response.writeHead(204).end();
      });
    const issued = await authority.issue("shop.test");
    const server = scheme === "http" ? createHttpServer(answer) : createHttpsServer(issued, answer);
    await once(server.listen(0, "127.0.0.1"), "listening");
    closers.push(async () => void server.close());
    const url = new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`);
    const limits = { connectTimeoutMs: 1_000, timeoutMs: 2_000 };
    expect(failures(await certifyAt(url, { ca: authority.cert, only: ["sale"], limits }))).toEqual({});
  });

  it("gets settlements that reconcile with the Sales before them, each of its own batch", async () => {
    const { url, taken } = await start(byTheLibrary(keys));
    await certifyAt(url, { only: codesOf("accepted").filter((code) => code !== "huge-settlement") });
    const sales = taken.flatMap((one) => (one.kind === "card" ? [one.ipn] : []));
    const settlements = taken.flatMap((one) => (one.kind === "settlement" ? [one.ipn] : []));
    expect(settlements.map(({ settlementList }) => settlementList.length)).toEqual([3, 0, 2]);
    for (const settlement of settlements) expect(reconcile(settlement, sales).findings).toEqual([]);
    expect(new Set(settlements.map(({ batchNo }) => batchNo)).size).toBe(3);
  });

  it("refuses each forgery for its own defect", async () => {
    const { url, refusals } = await start(byTheContract(keys));
    await certifyAt(url, { only: cases.filter(({ alike }) => alike === true).map(({ code }) => code) });
    expect(refusals).toEqual([
      ...["signature", "signature", "signature", "webhook-signature", "webhook-signature", "decryption", "signature"],
      ...["webhook-signature", "decryption", "freshness", "freshness", "webhook-signature", "headers", "headers"],
      ...["signature", "two_names", "two_names", "duplicate_key"],
    ]);
  });

  it("gets notifications that identify themselves as tests", async () => {
    const { url, taken } = await start(byTheLibrary(keys));
    await certifyAt(url, { only: codesOf("accepted").filter((code) => code !== "huge-settlement") });
    expect(taken.length).toBeGreaterThan(20);
    for (const { ipn } of taken) {
      expect(ipn.merchantTransId).toMatch(/^CERTIFY-0badc0de-/);
      expect([ipn.tid, ipn.mid]).toEqual([marks.tid, marks.mid]);
    }
    expect(new Set(taken.map(({ headers }) => headers.command))).toEqual(
      new Set(["SALE", "VOID", "PREAUTH", "PREAUTH_COMPLETE", "SETTLEMENT"]),
    );
  });

  it("passes with extended fields, and fails if it accepts those that its setting does not say", async () => {
    const extended = { ...keys, fields: "extended" } as const;
    const both = { ...keys, fields: ["specification", "extended"] } as const;
    const only = ["sale", "void", "preauth-complete", "settlement", "other-fields"];
    const right = await start(byTheLibrary(extended));
    expect(failures(await certifyAt(right.url, { only, keys: extended }))).toEqual({});
    expect(right.taken.map(({ command }) => command)).toContain("PREAUTH_COMPLETE");
    const lax = await start(byTheLibrary(both));
    for (const given of [keys, extended])
      expect(failures(await certifyAt(lax.url, { only, keys: given }))).toEqual({ "other-fields": "accepted_forgery" });
    const { results } = await certifyAt(lax.url, { only: ["other-fields"], keys: both });
    expect(results).toMatchObject([{ verdict: "left_out", note: "both sets of fields are accepted" }]);
  });

  it("may accept IPNs without the webhook- headers, if that was agreed on", async () => {
    const { url } = await start(byTheLibrary({ ...keys, allowMissingHeaders: true }));
    expect(failures(await certifyAt(url))).toEqual({ "missing-headers": "accepted_forgery" });
    const certificate = await certifyAt(url, { allowMissingHeaders: true });
    expect([certificate.passed, failures(certificate)]).toEqual([true, {}]);
  });
});

describe("an endpoint that is broken fails for what is wrong with it", () => {
  it("answers 200 to everything", async () => {
    const { url } = await start(broken.saysYes());
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual(all(codesOf("refused"), "accepted_forgery"));
    expect(diagnoses(certificate)).toEqual(["verifies_nothing"]);
    expect(certificate.results.at(-1)).toMatchObject({ code: alikeCase.code, verdict: "not_run" });
  });

  it("parses the body and writes it again before it verifies", async () => {
    const { url } = await start(broken.reserialises(keys));
    expect(failures(await certifyAt(url))).toEqual({
      "raw-bytes": "refused_authentic",
      "respaced-body": "accepted_forgery",
    });
  });

  it("answers 500 to a repeated notification", async () => {
    const { url } = await start(broken.failsOnDuplicates(keys));
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual({ duplicate: "server_error" });
    const { exchanges, finding } = certificate.results.find(({ code }) => code === "duplicate") ?? {};
    expect(exchanges?.map(({ came }) => "status" in came && came.status)).toEqual([200, 500]);
    expect(finding?.fix).toContain("Deduplicate by the IPN's id");
  });

  it("accepts bodies up to 1 MB", async () => {
    const { url } = await start(broken.limitsBodies(keys));
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual({ "huge-settlement": "too_large" });
    expect(certificate.results.find(({ code }) => code === "huge-settlement")?.finding?.fix).toContain("16 MB");
  });

  it("does not check freshness", async () => {
    const { url } = await start(broken.ignoresFreshness(keys));
    expect(failures(await certifyAt(url))).toEqual({
      "stale-timestamp": "accepted_forgery",
      "future-timestamp": "accepted_forgery",
    });
  });

  it("knows no alias", async () => {
    const { url } = await start(broken.knowsNoAlias(keys));
    expect(failures(await certifyAt(url))).toEqual({
      "sample-names": "refused_authentic",
      "sample-names-settlement": "refused_authentic",
    });
  });

  it("answers 200 to GET", async () => {
    const { url } = await start(broken.answersGet(keys));
    expect(failures(await certifyAt(url))).toEqual({ "wrong-method": "accepted_forgery" });
  });

  it("answers before the body is whole", async () => {
    const { url } = await start(broken.answersAtOnce());
    // Its next piece is a minute away, so the answer comes first.
    const certificate = await certifyAt(url, { only: ["slow-body"], limits: { pieces: 2, gapMs: 60_000 } });
    expect(failures(certificate)).toEqual({ "slow-body": "answered_early" });
  });

  it("reveals which check failed", async () => {
    const { url } = await start(broken.tellsWhy(keys));
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual({ [alikeCase.code]: "distinguishable" });
    expect(certificate.results.at(-1)?.note).toContain('{"error":"not_fresh"} to stale-timestamp, future-timestamp');
  });

  it("answers 500 to what it cannot open", async () => {
    const { url } = await start(broken.throwsOnForgery(keys));
    const posted = codesOf("refused").filter((code) => code !== "wrong-method");
    expect(failures(await certifyAt(url))).toEqual(all(posted, "server_error"));
  });

  it("cannot take a Void before its Sale", async () => {
    const { url } = await start(broken.wantsOrder(keys));
    expect(failures(await certifyAt(url))).toEqual({ reordered: "server_error" });
  });

  it("has other keys: one common cause, reported once", async () => {
    const { url } = await start(byTheLibrary({ ...keys, webhookSecret: `whsec_${key()}` }));
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual(all(codesOf("accepted"), "refused_authentic"));
    expect(diagnoses(certificate)).toEqual(["takes_nothing"]);
  });

  it("redirects", async () => {
    const { url } = await start(broken.redirects());
    const certificate = await certifyAt(url);
    const failed = [...codesOf("accepted"), ...codesOf("refused")];
    expect(failures(certificate)).toEqual(all(failed, "redirect"));
    expect(certificate.diagnoses).toMatchObject([{ code: "takes_nothing", cases: failed }]);
  });

  it("has a clock that is an hour ahead", async () => {
    const { url } = await start(broken.hasAnotherTime(keys));
    expect(diagnoses(await certifyAt(url))).toEqual(["clock_off"]);
  });

  it("ends when a connection is cut", async () => {
    const { url } = await start(broken.endsWhenCut(keys));
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual({ "cut-body": "no_connection" });
    expect(diagnoses(certificate)).toEqual([]);
    expect(certificate.results.find(({ code }) => code === "cut-body")?.finding?.means).toContain("broken connection");
    const after = certificate.results.slice(certificate.results.findIndex(({ code }) => code === "cut-body") + 1);
    expect(new Set(after.map(({ verdict }) => verdict))).toEqual(new Set(["not_run"]));
  });

  it("ends at a body that is not JSON", async () => {
    const { url } = await start(broken.endsAtJunk(keys));
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual({ "junk-body": "reset", "empty-body": "no_connection" });
    expect(certificate.diagnoses).toMatchObject([
      { code: "stopped_answering", means: expect.stringContaining("After junk-body") },
    ]);
  });

  it("is not there", async () => {
    const { url, close } = await start(byTheLibrary(keys));
    await close();
    const certificate = await certifyAt(url);
    expect(failures(certificate)).toEqual({ sale: "no_connection" });
    expect([certificate.passed, diagnoses(certificate)]).toEqual([false, []]);
  });

  it("does not speak HTTP", async () => {
    const server = createServer((socket) => socket.resume().end("220 mail.example ESMTP\r\n"));
    await once(server.listen(0, "127.0.0.1"), "listening");
    closers.push(() => once(server.close(), "close"));
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`);
    expect(failures(await certifyAt(url, { only: ["sale"] }))).toEqual({ sale: "bad_response" });
  });

  it.each([
    [410, "gone"],
    [429, "rate_limited"],
    [404, "not_served"],
    [413, "too_large"],
    [403, "refused_authentic"],
    [502, "server_error"],
  ])("answers %i to everything", async (status, finding) => {
    const { url } = await start(() => (request, response) => {
      request.resume().on("end", () => response.writeHead(status).end());
    });
    const isRefusal = status < 500 && status !== 410 && status !== 429;
    const expected = isRefusal ? { sale: finding } : { sale: finding, "bad-signature": finding };
    expect(failures(await certifyAt(url, { only: ["sale", "bad-signature"] }))).toEqual(expected);
  });

  it("never answers", async () => {
    const { url } = await start(() => (request) => void request.resume());
    const certificate = await certifyAt(url, { only: ["sale"], limits: { timeoutMs: 50 } });
    expect(failures(certificate)).toEqual({ sale: "timeout" });
  });
});

it("compares the refusals even if only the comparison was requested, and passes nothing that it could not run", async () => {
  for (const [endpoint, verdict] of [
    [broken.tellsWhy(keys), "failed"],
    [broken.saysYes(), "not_run"],
  ] as const) {
    const { url } = await start(endpoint);
    const { results, passed } = await certifyAt(url, { only: [alikeCase.code] });
    expect([passed, results.map((one) => [one.code, one.verdict])]).toEqual([false, [[alikeCase.code, verdict]]]);
  }
});

it("ends when it is aborted in the middle of a case", async () => {
  const aborting = new AbortController();
  const { url } = await start(() => () => aborting.abort());
  await expect(certifyAt(url, { signal: aborting.signal })).rejects.toMatchObject({ name: "AbortError" });
});

function agreed(): NonNullable<ReceiverOptions["signing"]> {
  const card = ["id", "transaction_type", "status", "amount", "merchantTransId"];
  return { mode: "fields", card, settlement: ["id", "transaction_type", "status", "totalAmount", "tid"] };
}
