import { createHash } from "node:crypto";

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
  following(seq: number, limit: number): Promise<readonly AuditRecord[]>;
  /** The beginning of the chain: the last dropped entry, or none and {@link firstHash}. */
  start(): Promise<Pick<AuditRecord, "seq" | "hash">>;
  /** Drops some of the oldest entries, all of them before this time. @returns the number dropped; 0 if none are left */
  dropBefore(beforeMs: number): Promise<number>;
}

/** The hash before the first entry. */
export const firstHash = "0".repeat(64);

function auditHash(previous: string, seq: number, entry: AuditEntry): string {
  const { atMs, actor, role, tokenId, address, action, subject, before, after } = entry;
  // A list of strings as JSON: no two entries have the same.
  const text = JSON.stringify([previous, seq, atMs, actor, role, tokenId, address, action, subject, before, after]);
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Called if an entry could not be stored. */
export type OnAuditFailed = (error: unknown, entry: Pick<AuditEntry, "action" | "subject" | "actor">) => void;

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
  const stored = asStored(entry);
  return store.append(stored, (previous, seq) => auditHash(previous, seq, stored));
}

/** The database has U+FFFD for half of a surrogate pair, such as where a text was cut: the hash is of that. */
function asStored(entry: AuditEntry): AuditEntry {
  const wellFormed = (value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);
  const fields = Object.entries(entry).map(([name, value]) => [name, wellFormed(value)]);
  return Object.fromEntries(fields) as AuditEntry;
}

/** The result of verifying the whole chain. */
export interface Verified {
  readonly entries: number;
  /** The number of the first stored entry: earlier ones were dropped by retention. */
  readonly from: number;
  /** The last hash. Comparing it with one noted earlier shows whether entries were cut off since. */
  readonly hash: string;
  /** The first entry that does not follow from the previous one; undefined if all do. */
  readonly brokenAt?: number;
}

const pageRows = 1_000;

export async function verifyAudit(store: Pick<AuditStore, "following" | "start">): Promise<Verified> {
  const start = await store.start();
  const from = start.seq + 1;
  let { seq, hash } = start;
  for (;;) {
    const page = await store.following(seq, pageRows);
    for (const record of page) {
      if (record.seq !== seq + 1 || record.hash !== auditHash(hash, record.seq, record)) {
        return { entries: seq - start.seq, from, hash, brokenAt: seq + 1 };
      }
      ({ seq, hash } = record);
    }
    if (page.length < pageRows) return { entries: seq - start.seq, from, hash };
  }
}
