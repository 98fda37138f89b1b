import { createSecretKey, randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { sealingKey, webhookKey } from "@paybell/contract";
import type { FastifyInstance } from "fastify";
import { systemClock } from "../clock.ts";
import type { CompletionRequest } from "../commands/reports/completion.ts";
import type { CommandRequest } from "../commands/requests/request.ts";
import { readConfig, shownSettings } from "../config/config.ts";
import { type FieldProblem, ServiceError } from "../errors.ts";
import { newId } from "../ids.ts";
import type { RefusedItem } from "../ledger/reports/reports.ts";
import { Statements } from "../ledger/statements.ts";
import type { Transaction } from "../ledger/store.ts";
import type { HistoryRow } from "../notifications/history-export.ts";
import { Overviews } from "../notifications/overview.ts";
import { unknownSubject } from "../notifications/view.ts";
import {
  type AuditEntry,
  type AuditRecord,
  type AuditSearch,
  type AuditStore,
  auditIn,
  firstHash,
} from "../operators/audit.ts";
import { OidcSignIn } from "../operators/oidc.ts";
import type { OperatorRecord, OperatorStore } from "../operators/operators.ts";
import { type EndedSessionStore, EndedSessions, Operators } from "../operators/operators.ts";
import type { Proposal } from "../operators/proposals.ts";
import type { ApiKeyScope, Partner, PartnerState } from "../partners/partner.ts";
import type { PartnerRecord } from "../partners/registry.ts";
import { completeSettings, defaultSettings, settingsProblems } from "../partners/settings/settings.ts";
import { completeTerminal, type Terminal, type TerminalInput, terminalProblems } from "../partners/terminal.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { Health, HttpDependencies } from "./dependencies.ts";
import { SandboxReceiverControl } from "./receiver-control.ts";
import type { HttpListener } from "./request-guards.ts";
import { createHttp } from "./server.ts";

export const operatorToken = "operator-token-of-a-test-0123456789";
export const apiKey = "pb_api-key-of-a-test";
/** The message of an error that says so. */
export const databaseAway = "the database is away";
export const otherApiKey = "pb_api-key-of-another-partner";

export interface TestCallOptions {
  readonly key?: string | null;
  readonly json?: unknown;
  readonly headers?: Record<string, string>;
  readonly body?: RequestInit["body"];
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** A part with the methods that tests need. */
function fake<Part>(methods: Partial<NoInfer<Part>>): Part {
  return methods as Part;
}

const missing = () => Promise.reject(new ServiceError("not_found"));

/** A listening service whose parts keep data in memory. `fails` makes a part's next call reject. */
export class HttpTestService {
  readonly ran: { readonly request: CommandRequest; readonly respondAsync: boolean }[] = [];
  readonly reported: CompletionRequest[] = [];
  readonly refused: RefusedItem[] = [];
  readonly asked: unknown[][] = [];
  /** The rule of two admins. */
  ruleMinutes: number;
  /** Awaited by each search for a proposal, once it has found it. */
  onProposalFound: () => Promise<void> = async () => undefined;
  readonly endpointId = newId<"endpoint">();
  readonly partner = partnerOfATest();
  readonly other = partnerOfATest();
  /** A partner that is not registered. */
  readonly strangerId = newId<"partner">();
  readonly registeredDeviceId = "4111111111111111";
  state: PartnerState = "active";
  callingAddresses: readonly string[] = ["127.0.0.1/32"];
  done = true;
  /** A pull that waits resolves the first, and is answered by the second. */
  readonly waiting =
    Promise.withResolvers<NonNullable<Parameters<HttpDependencies["notifications"]["pull"]>[1]["wait"]>>();
  readonly arrived = Promise.withResolvers<void>();
  /** The id of the key of every call. */
  readonly keyId = newId<"key">();
  scopes: readonly ApiKeyScope[] | null = null;
  readonly used: unknown[] = [];
  logged = "";
  readonly events: NewEvent[] = [];
  readonly audit = new AuditInMemory();
  readonly auditFailures: unknown[] = [];
  isStopping = false;
  /** Pages of a day. */
  history: readonly (readonly HistoryRow[])[] = [];
  health: Health = { ready: true, checks: { database: { ok: true, detail: "reachable" } } };
  readonly transactions: Transaction[] = [];
  readonly #failures = new Map<string, { readonly error: unknown; calls: number }>();
  readonly #waits = Promise.withResolvers<void>();
  #hold: () => Promise<void> = () => Promise.resolve();
  readonly #metrics = createMetrics();
  readonly #app: ReturnType<typeof createHttp>;

  constructor(
    options: {
      readonly sandbox?: boolean;
      readonly listener?: HttpListener;
      readonly env?: NodeJS.ProcessEnv;
      /** Adds routes of a test, in no scope whose callers are authenticated. */
      readonly addRoutes?: (app: FastifyInstance) => void;
    } = {},
  ) {
    const config = readConfig({
      PAYBELL_OPERATOR_TOKEN: operatorToken,
      PAYBELL_EGRESS_ADDRESSES: "203.0.113.7",
      ...options.env,
    });
    this.ruleMinutes = config.keyProposalMinutes;
    const why = { reason: "dns", httpStatus: null } as const;
    const who = { partnerId: this.partner.id, partnerName: "Shop", notificationId: newId<"notification">() };
    const times = { since: null, nextAttemptAt: null, parkingAt: null };
    const trouble = { ...who, ...why, ...times, because: "retry", waiting: 1 } as const;
    const parts: HttpDependencies = {
      config,
      log: createLog("debug", { write: (line) => (this.logged += line) }),
      metrics: this.#metrics,
      ledger: fake({
        run: async (partner, request, { respondAsync }) => {
          this.#failIfTold("run");
          this.ran.push({ request, respondAsync });
          await this.#hold();
          const transaction = transactionOf(partner, request, this.done && !respondAsync);
          this.transactions.push(transaction);
          return { transaction, done: this.done && !respondAsync };
        },
        find: async (partnerId, id) => this.transactions.find((one) => one.partnerId === partnerId && one.id === id),
        chain: (transaction) => Promise.resolve([transaction]),
        findByReqId: async (partnerId, reqId) =>
          this.transactions.find((one) => one.partnerId === partnerId && one.reqId === reqId),
      }),
      reports: fake({
        report: async (completions) => {
          this.#failIfTold("report");
          this.reported.push(...completions);
          return completions.map((completion) => resultOf(completion));
        },
        recordRefused: async (refused) => void this.refused.push(...refused),
      }),
      money: fake({
        search: async () => ({ items: [], next: null }),
        merchants: async () => [],
        ...{ find: missing, chain: missing, settlement: missing, abortSettlement: missing, resolveSettlement: missing },
        ...{ retryReversal: missing, resolveReversal: missing, letStand: missing },
      }),
      registry: fake(this.#registry()),
      acquirers: fake({
        put: async (name) => acquirerRecord(name),
        find: async (name) => (name === "first" ? acquirerRecord(name) : undefined),
        list: async () => [acquirerRecord("first")],
        terminals: async (name, rowsMax) =>
          Array.from({ length: name === "large" ? rowsMax : 1 }, () => {
            return { partnerId: this.partner.id, tid: "T1", mid: "M1", merchantName: "A shop" };
          }),
        remove: async (name) => acquirerRecord(name),
      }),
      settingsAcquirer: () => ({ kind: "simulator", health: { ok: true, detail: "has no link" } }),
      acquirerHealth: () => ({ ok: true, detail: "signed on at first.bank.example:5000 for 3 s", silentMs: 3_000 }),
      isRegisteredDevice: async (_, deviceId) => deviceId === this.registeredDeviceId,
      isUnavailable: (error) => error instanceof Error && error.message === databaseAway,
      refusesToken: async (_partner, _tid, token) => (token.startsWith("tok_") ? undefined : "It is no test card."),
      directory: fake({
        find: async (id) => (id === this.strangerId ? undefined : { ...this.partner, id, state: this.state }),
        findByApiKey: async (key) => {
          this.#failIfTold("findByApiKey");
          const found = key === apiKey ? this.partner : key === otherApiKey ? this.other : undefined;
          const settings = { ...this.partner.settings, callingAddresses: this.callingAddresses };
          const partner = found && { ...found, state: this.state, settings };
          return partner && { partner, keyId: this.keyId, scopes: this.scopes };
        },
      }),
      apiKeys: fake({
        add: async (id, input, within, maker = null) => {
          this.asked.push(["addApiKey", id, input, within, maker]);
          return { id: newId(), apiKey: "pb_new-key" };
        },
        revoke: async (id, keyId, by) => {
          if (keyId !== this.keyId) throw new ServiceError("not_found");
          this.asked.push(["revokeApiKey", id, keyId, by]);
        },
        used: (id, keyId) => void this.used.push([id, keyId]),
      }),
      notifications: fake(this.#notifications()),
      endWaits: () => this.#waits.resolve(),
      overview: new Overviews({
        figures: {
          read: async () => [],
          failing: async () => [],
          failures: async (id) => (id === this.partner.id ? [{ ...why, attempts: 1, lastAtMs: 0 }] : []),
        },
        standing: {
          counts: async () => {
            return { parked: 0, tripped: 0, reversalsParked: 0, reversalsPending: 0, settlementsWaiting: 0 };
          },
        },
        pending: async () => ({ count: 0, oldestMs: undefined }),
        troubles: {
          all: async () => [],
          of: async (id) => (id === this.partner.id ? trouble : null),
          parked: async () => [],
          parkedOf: async (id) => (id === this.partner.id ? { ...trouble, parked: 1, acceptedAt: null } : null),
        },
        nowMs: () => Date.now(),
      }),
      endpoints: this.#endpoints(),
      archive: fake({ export: async () => (async function* () {})(), remove: async () => undefined }),
      history: { isWaitedFor: async () => false, keptFromMs: async () => 0, pages: () => Readable.from(this.history) },
      clearing: fake({
        receive: async (acquirer) => Promise.reject(new ServiceError("clearing_unreadable", `of ${acquirer}`)),
        ...{ file: missing, exception: missing, resolve: missing },
        files: async () => ({ items: [], next: null }),
        exceptions: async () => ({ items: [], next: null }),
      }),
      statements: new Statements(
        { lines: async function* () {}, batches: async () => [], settlements: async () => [] },
        systemClock.nowMs,
        400,
      ),
      restores: fake({ report: async () => undefined, release: async () => undefined }),
      certifications: fake({ run: async () => Promise.reject(new ServiceError("no_callback_url")) }),
      certificatesOf: async () => [],
      urlChange: fake({ change: async () => Promise.reject(new ServiceError("callback_url_fixed")) }),
      operators: new Operators(this.#operators(), systemClock),
      proposals: this.#proposals(),
      endedSessions: new EndedSessions(endedSessionsInMemory(), systemClock),
      oidc: OidcSignIn.of(config),
      audit: auditIn(this.audit, (error) => this.auditFailures.push(error)),
      health: async () => {
        this.#failIfTold("health");
        return this.health;
      },
      isStopping: () => this.isStopping,
      feed: fake({ read: async () => ({ items: [], next: "next" }) }),
      events: { record: (event) => void this.events.push(event) },
      clock: systemClock,
      settings: shownSettings(readConfig({})),
      proofPublicKey: "MCowBQYDK2VwAyEA",
      sessionKey: createSecretKey(randomBytes(32)),
      ...(options.sandbox !== undefined && { sandbox: options.sandbox }),
      receiverControl: options.sandbox
        ? { partnerId: () => this.partner.id, receiver: new SandboxReceiverControl() }
        : undefined,
    };
    this.#app = createHttp(parts, options.listener);
    options.addRoutes?.(this.#app);
  }

  async listen(port = 0): Promise<this> {
    await this.#app.listen({ host: "127.0.0.1", port });
    return this;
  }

  get port(): number {
    return (this.#app.server.address() as AddressInfo).port;
  }

  /** The next commands do not end until `go`; `begun` resolves once so many have begun. */
  holdsNextRun(commands = 1): { readonly begun: Promise<void>; readonly go: () => void } {
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let left = commands;
    this.#hold = () => {
      left -= 1;
      if (left === 0) begun.resolve();
      return held.promise;
    };
    return { begun: begun.promise, go: held.resolve };
  }

  /** @param calls so many calls succeed before */
  fails(part: string, error: unknown, calls = 0): void {
    this.#failures.set(part, { error, calls });
  }

  /** Calls as the partner, or with `key`; null: without a key. */
  async call(method: string, path: string, options: TestCallOptions = {}): Promise<TestResponse> {
    const key = options.key === undefined ? (path.startsWith("/operator") ? operatorToken : apiKey) : options.key;
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      redirect: "manual",
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(options.json !== undefined && { "content-type": "application/json" }),
        ...options.headers,
      },
      ...(options.json !== undefined && { body: JSON.stringify(options.json) }),
      ...(options.body !== undefined && { body: options.body, duplex: "half" }),
    });
    const text = await response.text();
    const isJson = text !== "" && /^application\/(problem\+)?json\b/.test(response.headers.get("content-type") ?? "");
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
  }

  async close(): Promise<void> {
    await this.#app.close();
    this.#metrics.close();
  }

  #failIfTold(part: string): void {
    const failure = this.#failures.get(part);
    if (failure === undefined) return;
    failure.calls -= 1;
    if (failure.calls >= 0) return;
    this.#failures.delete(part);
    throw failure.error;
  }

  #operators(): OperatorStore {
    const kept = new Map<string, OperatorRecord>();
    return {
      add: async (operator, tokenHash) => {
        const record = { ...operator, createdAt: new Date(), lastUsedAt: null, revokedAt: null };
        kept.set(tokenHash.toString("hex"), record);
        return record;
      },
      list: async () => [...kept.values()],
      findByToken: async (tokenHash) => kept.get(tokenHash.toString("hex")),
      revoke: async (id) => {
        const [hash = "", found] = [...kept].find(([, record]) => record.id === id) ?? [];
        if (found === undefined) return undefined;
        const revoked = { ...found, revokedAt: new Date() };
        kept.set(hash, revoked);
        return revoked;
      },
      used: async () => undefined,
      dropOverSignIns: async () => undefined,
    };
  }

  #proposals(): HttpDependencies["proposals"] {
    const kept = new Map<string, Proposal>();
    return {
      rule: async () => this.ruleMinutes,
      changeRule: async (minutes) => {
        this.ruleMinutes = minutes;
      },
      beginRule: async () => undefined,
      add: async (proposal, minutes) => {
        const createdAt = new Date();
        const expiresAt = new Date(createdAt.getTime() + minutes * 60_000);
        kept.set(proposal.id, { ...proposal, createdAt, expiresAt });
        return { ...proposal, createdAt, expiresAt };
      },
      list: async () => [...kept.values()],
      find: async (id) => {
        const proposal = kept.get(id);
        await this.onProposalFound();
        return proposal;
      },
      take: async (id) => kept.delete(id),
    };
  }

  #registry(): Partial<HttpDependencies["registry"]> {
    const records = new Map<string, PartnerRecord>([[this.partner.id, recordOf(this.partner)]]);
    const terminals = new Map<string, Terminal>();
    const require = (id: string) => {
      const record = records.get(id);
      if (record === undefined) throw new ServiceError("not_found");
      return record;
    };
    const nextOf = ({ settings }: PartnerRecord, patch: object) => {
      const next = { ...settings, ...patch };
      refuse(settingsProblems(next, { sandbox: false }));
      return completeSettings(next);
    };
    return {
      defaults: defaultSettings,
      register: async (input) => {
        refuse(settingsProblems(input, { sandbox: false }));
        const partner = recordOf({ ...partnerOfATest(), settings: completeSettings(input) });
        records.set(partner.id, partner);
        const secrets = { apiKey: "pb_new", encryptionKey: "e", signingKey: "s", webhookSecret: "whsec_w" };
        return { partner, secrets };
      },
      change: async (id, patch, approve) => {
        const record = require(id);
        const settings = nextOf(record, patch);
        approve?.(record.settings, settings, record);
        this.asked.push(["change", patch]);
        return { ...record, settings };
      },
      preview: async (id, patch) => ({ standing: require(id).settings, next: nextOf(require(id), patch) }),
      find: async (id) => {
        this.#failIfTold("findPartner");
        return records.get(id);
      },
      list: async (page) => {
        this.asked.push(["list", page]);
        return { items: [...records.values()], next: null };
      },
      setState: async (id, state) => ({ ...require(id), state }),
      rotate: async (id, kind, overlapHours) => {
        require(id);
        this.asked.push(["rotate", kind, overlapHours]);
        const now = new Date();
        return { id: newId(), kind, secret: "new-secret", activeFrom: now, expiresOld: now };
      },
      putTerminal: async (id, tid, input) => {
        require(id);
        refuse(terminalProblems(tid, input, this.partner.settings.signing));
        const terminal = completeTerminal(tid, input as TerminalInput);
        terminals.set(tid, terminal);
        return terminal;
      },
      removeTerminal: async (id, tid) => {
        require(id);
        const terminal = terminals.get(tid);
        if (terminal === undefined) throw new ServiceError("not_found");
        terminals.delete(tid);
        return terminal;
      },
      putCallbackCertificate: async (id, input) => {
        this.asked.push(["putCallbackCertificate", id, input]);
        return require(id);
      },
      removeCallbackCertificate: async (id) => require(id),
      terminal: async (_, tid) => terminals.get(tid),
      findTerminals: async (text) =>
        [...terminals.values()]
          .filter(({ tid }) => tid === text)
          .map((one) => ({ ...one, partnerId: this.partner.id })),
      terminals: async (id, page) => {
        require(id);
        this.asked.push(["terminals", page]);
        return { items: [completeTerminal("T1", { mid: "M1" })], next: null };
      },
    };
  }

  #notifications(): Partial<HttpDependencies["notifications"]> {
    const summary = {
      id: newId<"notification">(),
      partnerId: this.partner.id,
      transactionId: null,
      command: "SALE",
      kind: "card",
      state: "accepted",
      attemptsMade: 1,
      nextAttemptAt: null,
      lastReason: null,
      lastHttpStatus: null,
      createdAt: "2026-01-31T00:00:00.000Z",
      outcomeAt: null,
      waiting: null,
      partnerName: "Shop",
    } as const;
    const held = { paused: 0, order: 0 };
    const detail = { ...summary, callBackUrl: null, attempts: [], subject: unknownSubject, schedule: null };
    this.asked.push(["notification", summary.id]);
    return {
      keyUse: async () => [],
      sealed: async (id, partner) => {
        this.asked.push(["sealed", id, partner.id]);
        return { data: "sealed", headers: {}, cipher: "jwe", encoding: "base64url", encryptionKeyId: this.keyId };
      },
      pull: async (partner, options) => {
        this.#failIfTold("pull");
        const { wait: patience, pause: _, ...page } = options;
        this.asked.push(["pull", partner.id, page]);
        if (patience === undefined) return { items: [], next: "cursor" };
        this.waiting.resolve(patience);
        const gone = new Promise((resolve) => patience.signal.addEventListener("abort", resolve, { once: true }));
        await Promise.race([gone, this.#waits.promise, this.arrived.promise]);
        return { items: [], next: (await patience.partnerNow()).state };
      },
      find: async (id, partnerId) => {
        this.asked.push(["find", id, partnerId]);
        const known = id === summary.id && (partnerId === undefined || partnerId === this.partner.id);
        return known ? detail : undefined;
      },
      inspect: async (id) => {
        this.asked.push(["inspect", id]);
        return id === summary.id ? { ...detail, events: [] } : undefined;
      },
      explain: async (id) => {
        this.asked.push(["explain", id]);
        throw new ServiceError("not_found");
      },
      prove: async (id) => {
        this.asked.push(["prove", id]);
        throw new ServiceError("not_found");
      },
      search: async (search) => {
        this.asked.push(["search", search]);
        return { items: [{ ...summary, subject: unknownSubject }], next: null };
      },
      redeliver: async (partnerId, id, to) => {
        this.#failIfTold("redeliver");
        this.asked.push(["redeliver", partnerId, id, to]);
        return { ...summary, state: "pending", held: null };
      },
      redeliverMany: async (filter, options) => {
        this.asked.push(["redeliverMany", filter, options]);
        return {
          id: null,
          matched: 1,
          redelivered: options.dryRun ? 0 : 1,
          held,
          ids: [summary.id],
          selection: { commands: { SALE: 1 }, oldestAt: null, urls: [null] },
        };
      },
      redelivery: async (id, partnerId) => {
        this.asked.push(["redelivery", id, partnerId]);
        throw new ServiceError("not_found");
      },
      backlog: async () => ({ pending: 0, oldestPendingAt: null, parked: 0, pull: null }),
      sendTest: async () => ({ ...summary, state: "pending" }),
    };
  }

  /** One open endpoint of the partner. */
  #endpoints(): HttpDependencies["endpoints"] {
    const open = {
      id: this.endpointId,
      partnerId: this.partner.id,
      kind: "origin",
      target: "https://partner.example",
      state: "open",
      failures: 5,
      lastReason: "dns",
      probes: 1,
      openedAt: new Date("2026-01-31T00:00:00Z"),
      probeAt: new Date("2026-01-31T00:00:05Z"),
      updatedAt: new Date("2026-01-31T00:00:00Z"),
    } as const;
    return {
      list: async (search) => {
        this.asked.push(["endpoints", search]);
        return { items: [open], next: null };
      },
      close: async (id, partnerId) => {
        this.asked.push(["close", id, partnerId]);
        const known = id === open.id && (partnerId === undefined || partnerId === open.partnerId);
        return known ? { ...open, state: "closed" } : undefined;
      },
    };
  }

  /** The id of the one notification there is. */
  get notificationId(): string {
    return String(this.asked[0]?.[1]);
  }
}

class AuditInMemory implements AuditStore {
  readonly records: AuditRecord[] = [];
  /** Has room for so many entries. */
  recordsMax = Number.POSITIVE_INFINITY;

  /** The parts of the fixture have no transactions: the entry is appended after the action. */
  during<Result>(_: unknown, run: () => Result): Result {
    return run();
  }

  async append(entry: AuditEntry, hash: (previous: string, seq: number) => string): Promise<AuditRecord> {
    if (this.records.length >= this.recordsMax) throw new Error("the disk is full");
    const seq = this.records.length + 1;
    const record = { ...entry, seq, hash: hash(this.records.at(-1)?.hash ?? "", seq) };
    this.records.push(record);
    return record;
  }

  async search(search: AuditSearch): Promise<readonly AuditRecord[]> {
    const { before = Number.POSITIVE_INFINITY, limit, fromMs = 0, toMs = Number.POSITIVE_INFINITY, ...texts } = search;
    const given = Object.entries(texts).filter(([, text]) => text !== undefined);
    const then = this.records.filter(({ seq, atMs }) => seq < before && fromMs <= atMs && atMs < toMs);
    const found = then.filter((one) => given.every(([key, text]) => one[key as keyof AuditRecord] === text));
    return found.reverse().slice(0, limit);
  }

  async following(seq: number, limit: number): ReturnType<AuditStore["following"]> {
    return this.records.slice(seq, seq + limit).map((record) => ({ ...record, mac: null }));
  }

  async sealedFrom(): Promise<undefined> {
    return undefined;
  }

  async start() {
    return { seq: 0, hash: firstHash };
  }

  async dropBefore(): Promise<number> {
    return 0;
  }

  async head(): Promise<undefined> {
    return undefined;
  }
}

function endedSessionsInMemory(): EndedSessionStore {
  const kept = new Map<string, number>();
  return {
    add: async (id, endsAtMs) => void kept.set(id.toString("hex"), endsAtMs),
    has: async (id) => (kept.get(id.toString("hex")) ?? 0) > Date.now(),
  };
}

function refuse(fields: readonly FieldProblem[]): void {
  const [first] = fields;
  if (first !== undefined) throw new ServiceError(first.code, first.message, { fields });
}

function partnerOfATest(): Partner {
  const raw = Buffer.alloc(32, 1);
  const settings = completeSettings({
    name: "A partner",
    callbackAddresses: ["203.0.113.0/24"],
    callingAddresses: ["127.0.0.1/32"],
  });
  const keys = {
    encryption: sealingKey("e", raw),
    signing: { id: "s", key: createSecretKey(raw) },
    webhook: [{ id: "w", key: webhookKey(`whsec_${raw.toString("base64")}`) }],
  };
  return { id: newId<"partner">(), state: "active", settings, keys, pauses: [] };
}

function recordOf({ id, state, settings }: Pick<Partner, "id" | "state" | "settings">): PartnerRecord {
  const now = new Date();
  return { id, state, settings, keys: [], createdAt: now, updatedAt: now };
}

function acquirerRecord(name: string) {
  const at = new Date(0);
  const registration = { profile: {}, hosts: ["bank.example:5000"], tls: "on", ca: "", certificate: "" } as const;
  return {
    name,
    ...registration,
    hasKey: false,
    hasMacKey: true,
    hasKeyEncryptionKey: false,
    createdAt: at,
    updatedAt: at,
  };
}

function transactionOf(partner: Partner, request: CommandRequest, done: boolean): Transaction {
  const id = newId<"transaction">();
  const state = done ? "SUCCESS" : "INIT";
  const fields = { id, reqId: request.reqId, status: state, ...(done && { isoResponseCode: "00" }) };
  return {
    partnerId: partner.id,
    id,
    origin: "command",
    command: request.command,
    state,
    reqId: request.reqId.toLowerCase(),
    externalId: null,
    originalId: null,
    originalExternalId: null,
    callBackUrl: null,
    chainId: newId<"chain">(),
    facts:
      request.command === "SALE"
        ? { kind: "card", command: "SALE", fields: { ...fields, amount: request.amount, tid: request.tid } }
        : request.command === "SETTLEMENT"
          ? { kind: "settlement", command: "SETTLEMENT", fields, settlementList: [] }
          : { kind: "system", fields },
    notification: done ? { id: newId<"notification">(), state: "pending" } : null,
    createdAtMs: Date.UTC(2026, 0, 31),
    amountMinor: null,
    currency: null,
    acquirer: "",
    site: null,
    batch: null,
    reversal: null,
    runBy: null,
    completedAtMs: null,
  };
}

function resultOf(completion: CompletionRequest) {
  const { externalId, amount } = completion;
  if (amount !== "bad") return { externalId, result: "accepted", transactionId: newId<"transaction">() } as const;
  const message = "amount is not valid.";
  const problem = new ServiceError("invalid_amount", message, {
    fields: [{ field: "amount", code: "invalid_amount", message }],
  });
  return { externalId, result: "refused", problem } as const;
}
