import { createHash } from "node:crypto";

/** One action: who, from where, and what it changed. Nothing in it is a secret. */
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

/** Where it is kept: entries are added, and never changed. */
export interface AuditStore {
  /** @param hash makes the entry's from that of the one before it */
  append(entry: AuditEntry, hash: (previous: string, seq: number) => string): Promise<AuditRecord>;
  search(search: AuditSearch): Promise<readonly AuditRecord[]>;
  /** In their order, from after this one. */
  following(seq: number, limit: number): Promise<readonly AuditRecord[]>;
  /** Where the chain begins: the last entry that was dropped, or none and {@link firstHash}. */
  start(): Promise<Pick<AuditRecord, "seq" | "hash">>;
  /** Drops some of the oldest entries, all of them from before this moment. @returns how many; 0 when none are left */
  dropBefore(beforeMs: number): Promise<number>;
}

/** The hash before the first entry. */
export const firstHash = "0".repeat(64);

function auditHash(previous: string, seq: number, entry: AuditEntry): string {
  const { atMs, actor, role, tokenId, address, action, subject, before, after } = entry;
  // A list of texts as JSON: no two entries have the same.
  const text = JSON.stringify([previous, seq, atMs, actor, role, tokenId, address, action, subject, before, after]);
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** The audit as those who act see it: it is added to, and read. */
export function auditIn(store: AuditStore) {
  return {
    append: (entry: AuditEntry) => appendTo(store, entry),
    search: (search: AuditSearch) => store.search(search),
  };
}

export function appendTo(store: Pick<AuditStore, "append">, entry: AuditEntry): Promise<AuditRecord> {
  return store.append(entry, (previous, seq) => auditHash(previous, seq, entry));
}

/** What a look at the whole chain came to. */
export interface Verified {
  readonly entries: number;
  /** The number of the first that is kept: those before it were dropped when their time was over. */
  readonly from: number;
  /** The last hash: whoever noted it earlier can tell whether entries were cut off since. */
  readonly hash: string;
  /** The first entry that does not follow from the one before it; undefined when all do. */
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
