import { hostname } from "node:os";
import type { AuditRecord, AuditStore } from "./audit.ts";

export const exportFormats = ["json-lines", "syslog"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Facility 13, log audit, and severity 5, notice (RFC 5424, section 6.2.1). */
const priority = 13 * 8 + 5;
const msgIdCharactersMax = 32;
const pageRows = 1_000;

/**
 * Formats one entry as a line without its end. `syslog` is RFC 5424 with the entry as JSON in its message. The JSON is
 * ASCII, so that no collector has to guess an encoding.
 */
export function exportedLine(record: AuditRecord, format: ExportFormat, host: string = hostname()): string {
  const { atMs, ...rest } = record;
  const at = new Date(atMs).toISOString();
  const json = JSON.stringify({ at, ...rest }).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  if (format === "json-lines") return json;
  const msgId = record.action.replace(/[^\x21-\x7e]/g, "").slice(0, msgIdCharactersMax) || "-";
  return `<${priority}>1 ${at} ${host} paybell ${process.pid} ${msgId} - ${json}`;
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
