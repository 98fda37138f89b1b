import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { cardNumberProblem } from "../commands/requests/rules.ts";
import { badFields, ServiceError } from "../errors.ts";
import { newId } from "../ids.ts";
import { pageOf } from "../page.ts";
import type { Log } from "../telemetry/log.ts";
import { dayIn } from "../time.ts";
import { type ClearingCandidate, dayOf, isPayment, type JudgedLine, judge } from "./match.ts";
import {
  type ClearingLayout,
  type ClearingLine,
  type LineKind,
  readClearing,
  UnreadableClearing,
} from "./read-file.ts";
import type {
  ClaimedFile,
  ClearingException,
  ClearingFile,
  ClearingStore,
  ExceptionSearch,
  KindTotal,
  MatchedLine,
  NewEntry,
  WatchedAcquirer,
} from "./store.ts";

interface ClearingParts {
  readonly store: ClearingStore;
  /** The form of an acquirer's files; undefined: there is no such acquirer. @throws ServiceError if it has no files */
  readonly layoutOf: (acquirer: string) => Promise<ClearingLayout | undefined>;
  /** The signed proof of a notification's delivery; undefined: there is none. */
  readonly prove: (notificationId: string) => Promise<unknown>;
  readonly nowMs: () => number;
  readonly log: Log;
  readonly everyMs?: number;
  /** The days for which files and exceptions are kept. */
  readonly keptDays: number;
}

/** An instance that matches a file holds it for so long after each chunk. */
const heldForMs = 60_000;
/** Lines that are stored, looked up and recorded together: measured, with 250 a file takes a third longer. */
const chunkLines = 500;
/** Lines that are compared in one turn of the event loop. */
const turnLines = 250;
const linesMax = 5_000_000;
const dayMs = 86_400_000;
/** Later than any line: of a file without payments. */
const noDay = "9999-12-31";
/** The books are copied back to this far before the first file: an old date in it must not copy the whole ledger. */
const copiedDaysMax = 35;
/** A result is visible a moment after the time that it has: the end of the last span is copied, and judged, again. */
const againMs = 600_000;
const sliceMs = 3_600_000;

/**
 * The acquirer's clearing files, compared with the ledger.
 *
 * A file is read once, whole, into chunks of lines without card numbers; one instance at a time then matches it chunk
 * by chunk. A line that means no transaction waits for `daysMax` days, because the transaction may still come. A
 * transaction that no file has is missing after the same time.
 */
export class Clearing {
  readonly #parts: ClearingParts;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #isAwake = false;
  #isDue = false;
  #running: Promise<void> = Promise.resolve();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ClearingParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setInterval(() => this.wake(), this.#parts.everyMs ?? 10_000);
  }

  /** Resolves after the chunk under way. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Matches what is due. */
  wake(): void {
    this.#isDue = true;
    if (this.#isAwake || this.#isStopping) return;
    this.#isAwake = true;
    this.#running = this.#workWhileDue();
  }

  /**
   * Reads a file. It is matched afterwards.
   *
   * @param named the acquirer's name; `default`: that of the settings
   * @returns its id; the earlier one's, if the same file came before
   * @throws ServiceError `invalid_value` of the acquirer, `clearing_unreadable` naming line and column
   */
  async receive(named: string, name: string, bytes: AsyncIterable<Uint8Array>): Promise<string> {
    const { store } = this.#parts;
    const acquirer = storedName(named);
    const layout = await this.layoutOf(acquirer);
    const id = newId<"clearing">();
    const read = await this.#read(id, layout, bytes).catch(async (error: unknown) => {
      await store.discard(id).catch(() => undefined);
      throw error instanceof UnreadableClearing ? unreadable(error) : error;
    });
    // If that has no answer, it may have been added: its lines stay.
    const added = await store.add({ id, acquirer, name, ...read });
    if (added !== id) await store.discard(id);
    else this.wake();
    return added;
  }

  async #read(id: string, layout: ClearingLayout, bytes: AsyncIterable<Uint8Array>) {
    const { store } = this.#parts;
    const sha256 = createHash("sha256");
    const totals = new Map<string, { kind: LineKind; currency: string; lines: number; minor: bigint }>();
    let [lines, chunks, firstDay] = [0, 0, noDay];
    const waiting: ClearingLine[] = [];
    // The next lines are read while these are stored.
    let storing: Promise<void> = Promise.resolve();
    const flush = async () => {
      await storing;
      storing = store.addChunk(id, chunks, waiting.splice(0, chunkLines));
      storing.catch(() => undefined);
      chunks += 1;
    };
    try {
      for await (const page of readClearing(hashing(bytes, sha256), layout)) {
        for (const line of page) {
          const { kind, currency, minor, day } = line;
          const sum = totals.get(`${kind} ${currency}`) ?? { kind, currency, lines: 0, minor: 0n };
          sum.lines += 1;
          sum.minor += BigInt(minor);
          totals.set(`${kind} ${currency}`, sum);
          if (isPayment(line) && day < firstDay) firstDay = day;
        }
        lines += page.length;
        if (lines > linesMax)
          throw new UnreadableClearing(page[0]?.line ?? 1, undefined, `a file has at most ${linesMax} lines`);
        waiting.push(...page);
        while (waiting.length >= chunkLines) await flush();
      }
      if (waiting.length > 0) await flush();
    } finally {
      // Nothing is stored after the end, or it would stay when the file is refused.
      await storing.catch(() => undefined);
    }
    await storing;
    // On a day without business it has the line that names the columns, without which it was not read.
    const mayBeEmpty = layout.section.format === "csv" && layout.section.header;
    if (lines === 0 && !mayBeEmpty) throw new UnreadableClearing(1, undefined, "the file has no line that counts");
    const sums = [...totals.values()].map(({ minor, ...sum }): KindTotal => ({ ...sum, totalMinor: `${minor}` }));
    const day = firstDay === noDay ? dayOf(this.#parts.nowMs(), layout.timeZone) : firstDay;
    return { sha256: sha256.digest(), lines, chunks, totals: sums, firstDay: day };
  }

  /** @throws ServiceError `invalid_value` if there is no such acquirer, or it has no files */
  async layoutOf(acquirer: string): Promise<ClearingLayout> {
    const layout = await this.#parts.layoutOf(storedName(acquirer));
    if (layout !== undefined) return layout;
    throw badFields([
      { field: "acquirer", code: "invalid_value", message: "acquirer: there is no acquirer of this name." },
    ]);
  }

  /** @throws ServiceError `not_found` */
  async file(id: string): Promise<ClearingFile> {
    const found = await this.#parts.store.file(id);
    if (found === undefined) throw new ServiceError("not_found", "There is no such clearing file.");
    return found;
  }

  async files({ acquirer, limit, ...search }: Parameters<ClearingStore["files"]>[0]) {
    const found = await this.#parts.store.files({
      ...search,
      acquirer: acquirer && storedName(acquirer),
      limit: limit + 1,
    });
    return pageOf(found, limit, ({ id }) => id);
  }

  async exceptions({ acquirer, limit, ...search }: ExceptionSearch) {
    const named = { ...search, acquirer: acquirer && storedName(acquirer) };
    return pageOf(await this.#parts.store.exceptions({ ...named, limit: limit + 1 }), limit, ({ id }) => id);
  }

  /** @throws ServiceError `not_found` */
  async exception(id: string): Promise<ClearingException> {
    const found = await this.#parts.store.exception(id);
    if (found === undefined) throw new ServiceError("not_found", "There is no such exception.");
    return found;
  }

  /** @throws ServiceError `not_found`, `exception_resolved`, `card_number_in_clear` */
  async resolve(id: string, reason: string): Promise<ClearingException> {
    const problem = cardNumberProblem("reason", reason);
    if (problem !== undefined) throw badFields([problem]);
    await this.exception(id);
    if (!(await this.#parts.store.resolve(id, reason))) throw new ServiceError("exception_resolved");
    return await this.exception(id);
  }

  /** A file that comes while another is matched wakes it once more. */
  async #workWhileDue(): Promise<void> {
    while (this.#isDue && !this.#isStopping) {
      this.#isDue = false;
      await this.#work().catch((error: unknown) => {
        this.#parts.log.warn({ err: error }, "a clearing file could not be matched; it is tried again");
      });
    }
    this.#isAwake = false;
  }

  async #work(): Promise<void> {
    const { store, nowMs } = this.#parts;
    for (let file = await store.claim(heldForMs); file !== undefined; file = await store.claim(heldForMs)) {
      if (!(await this.#match(file))) return;
    }
    if (nowMs() - this.#sweptAtMs < sliceMs || this.#isStopping) return;
    this.#sweptAtMs = nowMs();
    await store.dropOld(nowMs() - this.#parts.keptDays * dayMs);
    for (const watched of await store.watched()) await this.#sweep(watched);
  }

  /** @returns whether it was matched to its end */
  async #match({ id, acquirer, firstDay, nextChunk, chunks }: ClaimedFile): Promise<boolean> {
    const { store } = this.#parts;
    const layout = await this.layoutOf(acquirer);
    if (!(await this.#copyBooks(acquirer, dayIn(layout.timeZone, firstDay)[0]))) return false;
    const lookUp = (chunk: number) => {
      const found = this.#lookUp(acquirer, id, chunk);
      found.catch(() => undefined);
      return found;
    };
    let next = lookUp(nextChunk);
    // Lines that are recorded count once, also if they are recorded again: the next ones do not wait for the note.
    let noted = Promise.resolve(true);
    for (let chunk = nextChunk; chunk < chunks; chunk += 1) {
      const { lines, candidates } = await next;
      if (this.#isStopping) break;
      // The transactions of the next lines do not depend on these: they are looked up while these are recorded.
      if (chunk + 1 < chunks) next = lookUp(chunk + 1);
      const matched = await this.#recordLines(acquirer, id, lines, candidates, layout);
      if (!(await noted)) return false;
      noted = store.advance(id, chunk, matched, heldForMs);
      noted.catch(() => undefined);
    }
    if (!(await noted) || this.#isStopping) return false;
    const [watched] = (await store.watched()).filter((one) => one.acquirer === acquirer);
    if (watched !== undefined) await this.#sweep(watched);
    await store.end(id);
    return true;
  }

  /** @returns whether it was copied to its end */
  async #copyBooks(acquirer: string, fromMs: number): Promise<boolean> {
    const { store, nowMs } = this.#parts;
    const toMs = nowMs();
    const earliestMs = Math.max(fromMs - 2 * dayMs, toMs - copiedDaysMax * dayMs);
    const [known] = (await store.watched()).filter((one) => one.acquirer === acquirer);
    // The first day of a file may not have come, by a mistake in it.
    const spans =
      known === undefined
        ? [[earliestMs, toMs]]
        : [
            [earliestMs, Math.min(known.copiedFromMs, toMs)],
            [known.copiedToMs - againMs, toMs],
          ];
    for (const [beginMs = 0, endMs = 0] of spans) {
      // Two at a time: measured one by one, a million transactions took 25 s.
      for (let at = beginMs; at < endMs; at += 2 * sliceMs) {
        if (this.#isStopping) return false;
        const middleMs = Math.min(at + sliceMs, endMs);
        await Promise.all([
          store.copyBooks(acquirer, at, middleMs),
          store.copyBooks(acquirer, middleMs, Math.min(middleMs + sliceMs, endMs)),
        ]);
      }
    }
    await store.watch(acquirer, {
      copiedFromMs: Math.min(earliestMs, known?.copiedFromMs ?? earliestMs),
      copiedToMs: toMs,
      judgedToMs: Math.min(known?.judgedToMs ?? Math.max(fromMs, earliestMs) + againMs, toMs + againMs),
    });
    return true;
  }

  async #lookUp(acquirer: string, fileId: string, chunk: number) {
    const lines = await this.#parts.store.chunk(fileId, chunk);
    return { lines, candidates: await this.#parts.store.candidates(acquirer, lines) };
  }

  /** @returns how many of them were matched */
  async #recordLines(
    acquirer: string,
    fileId: string,
    lines: readonly ClearingLine[],
    candidates: readonly (readonly ClearingCandidate[])[],
    layout: ClearingLayout,
  ): Promise<number> {
    const { store } = this.#parts;
    const matched: MatchedLine[] = [];
    const entries: NewEntry[] = [];
    const byLine = new Map<number, { line: ClearingLine; with: ClearingCandidate }>();
    for (const [nth, line] of lines.entries()) {
      if (nth % turnLines === 0) await nextTurn();
      const judged = judge(line, candidates[nth] ?? [], layout);
      if (judged.kind === "matched" && isPayment(line)) {
        matched.push({ line: line.line, with: judged.with });
        byLine.set(line.line, { line, with: judged.with });
      } else entries.push(await this.#entryOf(acquirer, fileId, line, judged, layout));
    }
    const duplicates = await store.record(acquirer, fileId, { matched, entries });
    const again = duplicates.flatMap(({ line }) => byLine.get(line) ?? []);
    if (again.length > 0) {
      const differences = [{ field: "line", here: "in another line before", there: "once more" }] as const;
      const doubled = again.map(({ line, with: one }) =>
        entryAbout("different", acquirer, fileId, line, one, differences),
      );
      await store.record(acquirer, fileId, { matched: [], entries: doubled });
    }
    return matched.length - again.length;
  }

  async #entryOf(
    acquirer: string,
    fileId: string,
    line: ClearingLine,
    judged: JudgedLine,
    { section, timeZone }: ClearingLayout,
  ): Promise<NewEntry> {
    if (judged.kind === "unknown") {
      const isFree = line.kind === "fee" && line.refId === "" && line.trace === "";
      const kept = { acquirer, fileId, line, partnerId: null, transactionId: null, differences: [], proof: null };
      if (isFree) return { ...kept, kind: "fee", state: "kept", dueAtMs: null };
      const nowMs = this.#parts.nowMs();
      // Its day may not have come, as 99991231 in the place of none.
      const dueAtMs = Math.min(dayIn(timeZone, line.day)[0], nowMs) + section.daysMax * dayMs;
      return { ...kept, kind: "missing_here", state: dueAtMs <= nowMs ? "open" : "waiting", dueAtMs };
    }
    if (judged.kind === "different") {
      return entryAbout("different", acquirer, fileId, line, judged.with, judged.differences);
    }
    if (line.kind === "fee") return { ...entryAbout("fee", acquirer, fileId, line, judged.with), state: "kept" };
    const { notificationId } = judged.with;
    const proof = notificationId === null ? null : ((await this.#parts.prove(notificationId)) ?? null);
    return { ...entryAbout("chargeback", acquirer, fileId, line, judged.with), proof };
  }

  /** Judges what waited long enough: lines without a transaction, and transactions without a line. */
  async #sweep({ acquirer, lastFileId, judgedToMs }: WatchedAcquirer): Promise<void> {
    const { store, nowMs } = this.#parts;
    const layout = await this.#parts.layoutOf(acquirer).catch(() => undefined);
    // It was removed, or its profile has no files any more.
    if (layout === undefined) return;
    if (!(await this.#copyBooks(acquirer, nowMs() - dayMs))) return;
    await this.#lookAgain(acquirer, layout);
    await store.resolveFound(acquirer);
    const beforeMs = nowMs() - layout.section.daysMax * dayMs;
    let fromMs = judgedToMs - againMs;
    for (;;) {
      const missing = await store.missing(acquirer, fromMs, beforeMs, chunkLines);
      const entries = missing.map((one) => entryAbout("missing_there", acquirer, lastFileId, null, one));
      if (entries.length > 0) await store.record(acquirer, lastFileId, { matched: [], entries });
      if (missing.length < chunkLines || this.#isStopping) break;
      fromMs = missing.at(-1)?.atMs ?? fromMs;
    }
    if (!this.#isStopping) await store.watch(acquirer, { judgedToMs: Math.max(judgedToMs, beforeMs) });
  }

  async #lookAgain(acquirer: string, layout: ClearingLayout): Promise<void> {
    const { store, nowMs } = this.#parts;
    let after: string | undefined;
    for (;;) {
      const page = await store.waiting(acquirer, after, chunkLines);
      const lines = page.map(({ line }) => line);
      const candidates = await store.candidates(acquirer, lines);
      const overdue: (typeof page)[number][] = [];
      for (const [nth, entry] of page.entries()) {
        const found = candidates[nth] ?? [];
        if (judge(entry.line, found, layout).kind === "unknown") {
          if (entry.dueAtMs <= nowMs()) overdue.push(entry);
          continue;
        }
        const matched = await this.#recordLines(acquirer, entry.fileId, [entry.line], [found], layout);
        await store.endWaiting(entry, matched);
      }
      if (overdue.length > 0) await store.openWaiting(acquirer, overdue);
      after = page.at(-1)?.id;
      if (page.length < chunkLines || this.#isStopping) return;
    }
  }
}

/** The acquirer of the settings has no name where acquirers are stored. */
function storedName(acquirer: string): string {
  return acquirer === "default" ? "" : acquirer;
}

function entryAbout(
  kind: NewEntry["kind"],
  acquirer: string,
  fileId: string,
  line: ClearingLine | null,
  { partnerId, id }: ClearingCandidate,
  differences: NewEntry["differences"] = [],
): NewEntry {
  const about = { partnerId, transactionId: id, acquirer, fileId, line, differences };
  return { ...about, kind, state: "open", proof: null, dueAtMs: null };
}

async function* hashing(bytes: AsyncIterable<Uint8Array>, hash: { update(chunk: Uint8Array): unknown }) {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}

function unreadable({ message, line, column }: UnreadableClearing): ServiceError {
  const field = column === undefined ? `line ${line}` : `line ${line}, column ${column}`;
  return new ServiceError("clearing_unreadable", `The file cannot be read: ${message}`, {
    fields: [{ field, code: "invalid_value", message }],
  });
}
