import { createHash, createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { hostname } from "node:os";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../clock.ts";

/** One action: by whom, from where, and its change. It contains no secret. */
export interface AuditEntry {
  readonly atMs: number;
  readonly actor: string;
  readonly role: string;
  readonly tokenId: string;
  readonly address: string;
  readonly action: string;
  readonly subject: string;
  /** JSON text, or empty. */
  readonly before: string;
  readonly after: string;
}

export interface AuditRecord extends AuditEntry {
  readonly seq: number;
  readonly hash: string;
}

interface StoredRecord extends AuditRecord {
  /** Under the audit key; null: it is of an older version. */
  readonly mac: Buffer | null;
}

export interface AuditSearch {
  readonly actor?: string | undefined;
  readonly subject?: string | undefined;
  readonly action?: string | undefined;
  readonly tokenId?: string | undefined;
  readonly address?: string | undefined;
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** The newest first: only those before this one. */
  readonly before?: number | undefined;
  readonly limit: number;
}

/** Computes an entry's hash from that of the previous one. */
export type AuditHash = (previous: string, seq: number) => string;

/** An action whose transactions append its entry. */
export interface AuditAction {
  /** Called when everything is changed. Reads of partners and the like see the change. */
  compose(subject: string): Promise<AuditEntry>;
  hashOf(entry: AuditEntry): AuditHash;
  /** It is stored with the change, which is about to be committed. */
  appended(): void;
  failed(error: unknown, entry: AuditEntry): void;
}

/** Stores the audit: entries are added, and never changed. */
export interface AuditStore {
  /** @throws ServiceError `unavailable` if the audit stays locked: then nothing was appended */
  append(entry: AuditEntry, hash: AuditHash): Promise<AuditRecord>;
  /** Runs an action: each of its transactions that changes something appends the entry last, or is rolled back. */
  during<Result>(action: AuditAction, run: () => Result): Result;
  search(search: AuditSearch): Promise<readonly AuditRecord[]>;
  /** The entries after this one, in order. */
  following(seq: number, limit: number): Promise<readonly StoredRecord[]>;
  /** The number of the entry from which on every one has a MAC; undefined: not yet. */
  sealedFrom(): Promise<number | undefined>;
  /** The beginning of the chain: the last dropped entry, or none and {@link firstHash}. */
  start(): Promise<Pick<AuditRecord, "seq" | "hash">>;
  /**
   * Drops some of the oldest entries, all of them before this time, with an entry of its own in the same transaction.
   *
   * @param made the entry, by the number of those that are dropped
   * @returns that number; 0 if none are left
   */
  dropBefore(
    beforeMs: number,
    made: (entries: number) => readonly [entry: AuditEntry, hash: AuditHash],
  ): Promise<number>;
  /** The last entry; undefined: there is none. */
  head(): Promise<AuditHead | undefined>;
}

/** The actor of what the service does by itself. */
export const byService = { actor: "paybell", role: "service", tokenId: "", address: "" } as const;

/** The hash before the first entry. */
export const firstHash = "0".repeat(64);

function auditHash(previous: string, seq: number, entry: AuditEntry): string {
  const { atMs, actor, role, tokenId, address, action, subject, before, after } = entry;
  // A list of strings as JSON: no two entries have the same.
  const text = JSON.stringify([previous, seq, atMs, actor, role, tokenId, address, action, subject, before, after]);
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Called if an entry could not be stored. */
type OnAuditFailed = (error: unknown, entry: Pick<AuditEntry, "action" | "subject" | "actor">) => void;

/** The audit for its users: appending and reading. */
export function auditIn(store: AuditStore, onFailed: OnAuditFailed) {
  return {
    async append(entry: AuditEntry): Promise<AuditRecord> {
      try {
        return await appendTo(store, entry);
      } catch (error) {
        onFailed(error, entry);
        throw error;
      }
    },
    /**
     * Runs an action that is SQL. @param compose makes the entry, once everything is changed. @param appended called
     * when it is stored with the change, which is about to be committed
     */
    during<Result>(compose: (subject: string) => Promise<AuditEntry>, appended: () => void, run: () => Result): Result {
      return store.during(
        {
          compose: async (subject) => asStored(await compose(subject)),
          hashOf: (entry) => (previous, seq) => auditHash(previous, seq, entry),
          appended,
          failed: onFailed,
        },
        run,
      );
    },
    search: (search: AuditSearch) => store.search(search),
  };
}

export function appendTo(store: Pick<AuditStore, "append">, entry: AuditEntry): Promise<AuditRecord> {
  return store.append(...prepared(entry));
}

/** An entry as it is stored, and its hash. */
function prepared(entry: AuditEntry): readonly [entry: AuditEntry, hash: AuditHash] {
  const stored = asStored(entry);
  return [stored, (previous, seq) => auditHash(previous, seq, stored)];
}

/** The database has U+FFFD for half of a surrogate pair, such as where a text was cut: the hash is of that. */
function asStored(entry: AuditEntry): AuditEntry {
  const wellFormed = (value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);
  const fields = Object.entries(entry).map(([name, value]) => [name, wellFormed(value)]);
  return Object.fromEntries(fields) as AuditEntry;
}

/** An entry's number and hash, noted elsewhere. */
export type AuditHead = Pick<AuditRecord, "seq" | "hash">;

/** The result of verifying the whole chain. */
export interface Verified {
  readonly entries: number;
  /** The number of the first stored entry: earlier ones were dropped by retention. */
  readonly from: number;
  /** The last hash. Comparing it with one noted earlier shows whether entries were cut off since. */
  readonly hash: string;
  /** The first entry that does not follow from the previous one, or has a wrong MAC; undefined if there is none. */
  readonly brokenAt?: number;
  /** The expected entry is missing, or another one. */
  readonly unexpected?: true;
}

const pageRows = 1_000;

interface AuditChecks {
  /** Undefined: MACs are not verified. */
  readonly keys?: Pick<AuditKeys, "isRight"> | undefined;
  /** The entry of this number must have this hash. */
  readonly expect?: AuditHead | undefined;
}

export async function verifyAudit(
  store: Pick<AuditStore, "following" | "start" | "sealedFrom">,
  { keys, expect }: AuditChecks = {},
): Promise<Verified> {
  const start = await store.start();
  const sealedFrom = (keys && (await store.sealedFrom())) ?? Number.POSITIVE_INFINITY;
  const hasRightMac = ({ seq, hash, mac }: StoredRecord, after: Buffer | null) =>
    keys === undefined || (mac === null ? seq < sealedFrom : keys.isRight(mac, entryText(seq, hash), after));
  const from = start.seq + 1;
  let { seq, hash } = start;
  let mac: Buffer | null = null;
  // Retention dropped an older one, and checked the chain then.
  let isExpected = expect === undefined || expect.seq < start.seq || isDeepStrictEqual(expect, start);
  const result = () => ({ entries: seq - start.seq, from, hash, ...(isExpected ? {} : { unexpected: true as const }) });
  for (;;) {
    const page = await store.following(seq, pageRows);
    for (const record of page) {
      const follows = record.seq === seq + 1 && record.hash === auditHash(hash, record.seq, record);
      if (!follows || !hasRightMac(record, mac)) {
        // Retention may have dropped what follows: the chain is read again, from its new beginning.
        const wasDropped = (await store.start()).seq > seq;
        return wasDropped ? await verifyAudit(store, { keys, expect }) : { ...result(), brokenAt: seq + 1 };
      }
      ({ seq, hash, mac } = record);
      isExpected ||= seq === expect?.seq && hash === expect.hash;
    }
    if (page.length < pageRows) return result();
  }
}

export interface AuditKeyVersion {
  readonly key: KeyObject;
  /** Every instance knows it by then. */
  readonly usedFromMs: number;
}

/** The keys of the audit's MACs, by version, and the pepper of tokens' hashes. The database has none of them. */
export class AuditKeys {
  #versions: readonly AuditKeyVersion[];
  readonly #pepper: KeyObject;
  readonly #nowMs: () => number;

  /** @param versions the first is version 1; the last that is used by now makes MACs, and all verify them */
  constructor(versions: readonly AuditKeyVersion[], pepper: KeyObject, nowMs: () => number) {
    this.#versions = versions;
    this.#pepper = pepper;
    this.#nowMs = nowMs;
  }

  /** A rotation added versions. */
  learn(versions: readonly AuditKeyVersion[]): void {
    this.#versions = versions;
  }

  /** The version, then HMAC-SHA256. @param after an earlier MAC of the chain: a later one has no lower version */
  mac(text: string, after: Buffer | null = null): Buffer {
    const nowMs = this.#nowMs();
    const used = this.#versions.findLastIndex(({ usedFromMs }) => usedFromMs <= nowMs) + 1;
    const earlier = versionOf(after);
    return this.#mac(earlier <= this.#versions.length ? Math.max(used, earlier) : used, text);
  }

  /** @param after an earlier MAC of the chain: the key of an older version cannot continue it */
  isRight(mac: Buffer, text: string, after: Buffer | null = null): boolean {
    const version = versionOf(mac);
    if (version < Math.max(1, versionOf(after)) || version > this.#versions.length) return false;
    const right = this.#mac(version, text);
    return mac.length === right.length && timingSafeEqual(mac, right);
  }

  /** The stored form of a token's hash: a copy of the database does not tell whether a token is in it. */
  pepper(hash: Buffer): Buffer {
    return createHmac("sha256", this.#pepper).update(hash).digest();
  }

  #mac(version: number, text: string): Buffer {
    const of = this.#versions[version - 1];
    if (of === undefined) throw new Error(`There is no audit key of version ${version}.`);
    return Buffer.concat([Buffer.of(version), createHmac("sha256", of.key).update(text).digest()]);
  }
}

function versionOf(mac: Buffer | null): number {
  return mac?.[0] ?? 0;
}

/** The text that an entry's MAC covers. Its hash covers every column, and the hash before. */
export function entryText(seq: number, hash: string): string {
  return `audit entry\n${seq}\n${hash}`;
}

const dayMs = 86_400_000;

/**
 * Drops entries past their retention, and records that. The chain stays intact: it begins after the last dropped entry.
 * @returns the number dropped
 */
export async function dropOldAudit(
  store: Pick<AuditStore, "dropBefore">,
  clock: Pick<Clock, "nowMs">,
  auditDays: number,
): Promise<number> {
  const atMs = clock.nowMs();
  const beforeMs = atMs - auditDays * dayMs;
  const before = new Date(beforeMs).toISOString();
  const dropSome = () =>
    store.dropBefore(beforeMs, (entries) => {
      const after = JSON.stringify({ entries, before });
      return prepared({ atMs, ...byService, action: "dropOldAudit", subject: "", before: "", after });
    });
  let dropped = 0;
  for (let some = await dropSome(); some > 0; some = await dropSome()) dropped += some;
  return dropped;
}

export const exportFormats = ["json-lines", "syslog"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Facility 13, log audit, and severity 5, notice (RFC 5424, section 6.2.1). */
const priority = 13 * 8 + 5;
const msgIdCharactersMax = 32;

/** Formats one entry as a line without its end. `syslog` is RFC 5424 with the entry as JSON in its message. */
export function exportedLine(record: AuditRecord, format: ExportFormat, host: string = hostname()): string {
  const { atMs, ...rest } = record;
  const at = new Date(atMs).toISOString();
  const json = asciiJson({ at, ...rest });
  return format === "json-lines" ? json : syslogLine({ at, name: record.action, priority, host }, json);
}

/** JSON in ASCII, so that no collector has to guess an encoding. */
export function asciiJson(value: object): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export interface SyslogHeader {
  readonly at: string;
  /** Its MSGID, as far as that may contain it. */
  readonly name: string;
  readonly priority: number;
  readonly host: string;
}

export function syslogLine({ at, name, priority: number, host }: SyslogHeader, message: string): string {
  const msgId = name.replace(/[^\x21-\x7e]/g, "").slice(0, msgIdCharactersMax) || "-";
  return `<${number}>1 ${at} ${host} paybell ${process.pid} ${msgId} - ${message}`;
}

/** The lines of all entries after this one, in order, a page at a time. */
export async function* exportedAfter(
  store: Pick<AuditStore, "following">,
  after: number,
  format: ExportFormat,
): AsyncGenerator<{ readonly seq: number; readonly lines: string }> {
  let seq = after;
  for (;;) {
    const page = await store.following(seq, pageRows);
    const last = page.at(-1);
    if (last === undefined) return;
    seq = last.seq;
    yield { seq, lines: page.map(({ mac: _, ...record }) => `${exportedLine(record, format)}\n`).join("") };
  }
}
