import { hostname } from "node:os";
import type { AuditRecord, AuditStore } from "./audit.ts";

export const exportFormats = ["json-lines", "syslog"] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Facility 13, log audit, and severity 5, notice (RFC 5424, section 6.2.1). */
const priority = 13 * 8 + 5;
const msgIdCharactersMax = 32;
const pageRows = 1_000;

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
