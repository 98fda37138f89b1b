import { createHash } from "node:crypto";
import { type Command, commands } from "@paybell/contract";
import { BoundedMap } from "../../bounded-map.ts";
import { systemClock } from "../../clock.ts";
import { completionProblems, completionWarnings, redactItem } from "../../commands/reports/check-completion.ts";
import type { CompletionRequest } from "../../commands/reports/completion.ts";
import { convertReport } from "../../commands/reports/convert-report.ts";
import { reportDifference, reportedBatch, reportedFacts } from "../../commands/reports/reported-facts.ts";
import { broken, exemptDevice } from "../../commands/requests/rules.ts";
import { badFields, type FieldProblem, ServiceError } from "../../errors.ts";
import { chainOf, newId, type PartnerId, readId, type TransactionId } from "../../ids.ts";
import type { Partner, PartnerDirectory, ReportSettings } from "../../partners/partner.ts";
import { callbackUrlProblem } from "../../partners/settings/callback-rules.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { type Notifier, notificationOf } from "../notifier.ts";
import type { CompletionStore, Reported, ReportedCompletion, ReportedOriginal, TransactionStore } from "../store.ts";

type Identity = Pick<ReportSettings, "identity">;

/** The key of a switch's report. If a Sale and its Void share a number, the command is part of it. */
function identityOf({ identity }: Identity, externalId: string, command: Command): string {
  return identity === "externalId" ? externalId : `${externalId} #${command}`;
}

// Where a PreAuth and its Complete share a number, only the Complete can still be undone; a Void never can in Paybell.
const undoable = ["PREAUTH_COMPLETE", "SALE", "PREAUTH"] as const satisfies readonly Command[];
/** The possible originals of a command, the more likely first. */
const originalsOf: Readonly<Partial<Record<Command, readonly Command[]>>> = {
  VOID: undoable,
  PREAUTH_COMPLETE: ["PREAUTH"],
  REVERSAL: [...undoable, "VOID"],
};

type Following = Pick<CompletionRequest, "command" | "originalExternalId" | "originalCommand">;

/** The possible keys of a report's original, the more likely first; empty if it names none. */
export function originalIdentities(settings: Identity, completion: Following): readonly string[] {
  const { command, originalExternalId = "", originalCommand } = completion;
  if (originalExternalId === "") return [];
  if (settings.identity === "externalId") return [originalExternalId];
  const originalCommands = originalCommand ? [originalCommand as Command] : (originalsOf[command] ?? []);
  // Reports from before the command was part of the key are stored under the number only.
  return [
    ...originalCommands.map((original) => identityOf(settings, originalExternalId, original)),
    originalExternalId,
  ];
}

export interface ReportsParts {
  readonly transactions: TransactionStore;
  readonly completions: CompletionStore;
  readonly directory: PartnerDirectory;
  readonly notifier: Notifier;
  /** Awaited: a refused item is recorded before it is answered. */
  readonly events: { record(event: NewEvent): Promise<void> | void };
  readonly metrics: Pick<Metrics, "reports" | "notificationsCreated">;
  readonly sandbox: boolean;
  isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean>;
}

export interface ReportResult {
  readonly externalId: string;
  readonly result: "accepted" | "duplicate" | "conflict" | "refused";
  readonly transactionId?: TransactionId;
  readonly problem?: ServiceError;
}

/** A refused item as it arrived, and the reason. */
export interface RefusedItem {
  readonly item: unknown;
  readonly externalId: string;
  readonly problems: readonly { readonly field: string; readonly code: string }[];
}

/** The number of refused items remembered as recorded, because a switch repeats refused items. */
const refusedRecordedMax = 10_000;

type Originals = ReadonlyMap<string, ReportedOriginal>;

const noOriginals: Originals = new Map();

interface ValidReport {
  readonly completion: CompletionRequest;
  readonly partner: Partner;
  readonly id: TransactionId;
  /** Its key among the partner's reports. */
  readonly identity: string;
  /** Possible keys of its original, the more likely first. */
  readonly originals: readonly string[];
}
type Judged = ValidReport | { readonly completion: CompletionRequest; readonly problem: ServiceError };

/** Accepts commands that the operator's switch completed. Items are independent: an invalid one affects no other. */
export class Reports {
  readonly #parts: ReportsParts;
  readonly #recorded = new BoundedMap<string, true>(refusedRecordedMax);

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  /** Counts and records refused items for the operator, because a payment must not go unnoticed. */
  async recordRefused(refused: readonly RefusedItem[]): Promise<void> {
    for (const { item } of refused) this.#parts.metrics.reports.inc({ command: knownCommand(item), result: "refused" });
    await Promise.all(refused.map((one) => this.#recordRefused(one)));
  }

  async #recordRefused({ item, externalId, problems }: RefusedItem): Promise<void> {
    const kept = redactItem(item);
    const detail = { externalId: redactItem(externalId), problems, item: kept };
    const digest = createHash("sha256").update(JSON.stringify(detail)).digest("base64");
    if (this.#recorded.get(digest)) return;
    this.#recorded.set(digest, true);
    const given = typeof item === "object" && item !== null && "partnerId" in item ? item.partnerId : undefined;
    const partnerId = typeof given === "string" ? (readId<"partner">(given) ?? null) : null;
    await this.#parts.events.record({ kind: "report_refused", partnerId, subjectId: null, detail });
  }

  /**
   * @returns one result for each, in order
   * @throws ServiceError `unavailable` if nothing could be made durable; otherwise the items that could not be are
   * `refused`
   */
  async report(completions: readonly CompletionRequest[]): Promise<readonly ReportResult[]> {
    const judged = await Promise.all(completions.map((completion) => this.#judge(completion)));
    const isFollowing = completions.some(({ originalExternalId }) => originalExternalId);
    const originals = isFollowing ? await this.#originals(judged) : noOriginals;
    const results = await this.#acceptInOrder(judged, originals);
    const unavailable = results.filter((result) => result.problem?.code === "unavailable");
    if (unavailable.length > 0 && unavailable.length === results.length) throw unavailable[0]?.problem;
    for (const [index, { result, problem }] of results.entries()) {
      // Refused ones are counted together with those that have another shape: `recordRefused`.
      if (result === "refused" && problem?.code !== "unavailable") continue;
      const counted = result === "refused" ? "unavailable" : result;
      this.#parts.metrics.reports.inc({ command: knownCommand(completions[index]), result: counted });
    }
    return results;
  }

  async #judge(given: CompletionRequest): Promise<Judged> {
    let completion = given;
    try {
      const partnerId = readId<"partner">(given.partnerId);
      // Thousands per second arrive here, so nothing is awaited that is in memory.
      const known =
        partnerId &&
        (this.#parts.directory.cached(partnerId) ??
          (await this.#parts.directory.find(partnerId).catch(unreadable(partnerId))));
      const partner = requireReportable(known);
      completion = convertReport(given, partner.settings.reports);
      const problems = this.#problemsOf(completion, partner);
      if (problems.length > 0) await this.#requireExempt(completion, partner, problems);
      const id = completion.id ? readId<"transaction">(completion.id) : undefined;
      const { reports } = partner.settings;
      return {
        completion,
        partner,
        id: id ?? newId<"transaction">(),
        identity: identityOf(reports, completion.externalId, completion.command),
        originals: originalIdentities(reports, completion),
      };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return { completion, problem: error };
    }
  }

  /**
   * A follow-up of another item of this call is written once that one is durable, because its notification must find
   * the other one pending. After an item that could not be made durable, nothing later of its partner is written: all of
   * that is reported again.
   */
  async #acceptInOrder(judged: readonly Judged[], originals: Originals): Promise<readonly ReportResult[]> {
    const [first = [], ...later] = wavesOf(judged);
    const results = await Promise.all(first.map((one) => this.#accept(one, originals)));
    if (later.length === 0) return results;
    const resultOf = new Map(first.map((one, index) => [one, results[index]]));
    let known = originals;
    for (const wave of later) {
      // One whose id is another transaction's, or that another call reported at the same time, is not stored as its
      // followers expect it.
      if ([...resultOf].some(([one, result]) => isStoredOtherwise(one, result))) {
        known = await this.#originals(judged.filter((one) => !resultOf.has(one)));
      }
      const unavailable = new Map<string, ServiceError>();
      for (const [{ completion }, result] of resultOf) {
        if (result?.problem?.code === "unavailable")
          unavailable.set(completion.partnerId.toLowerCase(), result.problem);
      }
      const tried = wave.map((one) => {
        const problem = unavailable.get(one.completion.partnerId.toLowerCase());
        return problem && !("problem" in one) ? { ...one, problem } : one;
      });
      const answers = await Promise.all(tried.map((one) => this.#accept(one, known)));
      for (const [index, one] of wave.entries()) resultOf.set(one, answers[index]);
    }
    return judged.flatMap((one) => resultOf.get(one) ?? []);
  }

  async #accept(judged: Judged, originals: Originals): Promise<ReportResult> {
    const { externalId } = judged.completion;
    if ("problem" in judged) return { externalId, result: "refused", problem: judged.problem };
    try {
      const valid = await this.#asReportedEarlier(judged);
      const reported = await this.#write(valid, originals);
      if (reported.outcome === "id_taken") {
        throw badFields([{ field: "id", code: "invalid_value", message: "id names another transaction." }]);
      }
      if (reported.outcome === "known") return await this.#repeated(valid, reported);
      return { externalId, result: reported.outcome, transactionId: reported.id };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return { externalId, result: "refused", problem: error };
    }
  }

  /** With its number only as its key, if it was reported before the command was part of this partner's keys. */
  async #asReportedEarlier(valid: ValidReport): Promise<ValidReport> {
    const { externalId, command } = valid.completion;
    if (valid.identity === externalId) return valid;
    const earlier = (await this.#parts.transactions.findReported(valid.partner.id, [externalId])).get(externalId);
    return earlier?.command === command ? { ...valid, identity: externalId } : valid;
  }

  /** An identical report is a duplicate. Anything else under a known externalId would be lost, so it is a conflict. */
  async #repeated(valid: ValidReport, known: Reported & { outcome: "known" }): Promise<ReportResult> {
    const { completion, partner } = valid;
    const { externalId, command, id: given = "" } = completion;
    const now = toReport(valid, noOriginals);
    const differs = reportDifference(now, known.before, given !== "");
    const transactionId = known.id;
    if (differs.length === 0) return { externalId, result: "duplicate", transactionId };
    const detail = { externalId, command, differs, item: redactItem(completion) };
    await this.#parts.events.record({ kind: "report_conflict", partnerId: partner.id, subjectId: known.id, detail });
    const fields = differs.map((field) => broken(field, "report_conflict", "differs from what was reported before"));
    const message = `This externalId was reported before; ${differs.join(", ")} differ.`;
    return {
      externalId,
      result: "conflict",
      transactionId,
      problem: new ServiceError("report_conflict", message, { fields }),
    };
  }

  #problemsOf(completion: CompletionRequest, partner: Partner): readonly FieldProblem[] {
    const problems = completionProblems(completion, partner.settings.reports);
    const { callBackUrl } = completion;
    if (!callBackUrl) return problems;
    const { sandbox } = this.#parts;
    const problem = callbackUrlProblem("callBackUrl", callBackUrl, { sandbox }, partner.settings);
    return problem ? [...problems, problem] : problems;
  }

  async #requireExempt({ deviceId = "" }: CompletionRequest, partner: Partner, found: readonly FieldProblem[]) {
    const isRegistered = () => this.#parts.isRegisteredDevice(partner.id, deviceId);
    const [first, ...others] = await exemptDevice(found, isRegistered);
    if (first) throw badFields([first, ...others]);
  }

  async #write(valid: ValidReport, originals: Originals): Promise<Reported> {
    const { partner, completion } = valid;
    const report = toReport(valid, originals);
    const begunMs = systemClock.monotonicMs();
    const reported = await this.#parts.completions.report(report);
    if (reported.outcome !== "accepted") return reported;
    const { notification } = report;
    if (notification && report.waitsForOriginal !== true) {
      this.#parts.metrics.notificationsCreated.inc({ command: notification.command });
      this.#parts.notifier.notify(notification, reported.atMs, begunMs);
    }
    const warnings = completionWarnings(completion, partner.settings);
    if (warnings.length > 0) {
      void this.#parts.events.record({
        kind: "delimiter_sent",
        partnerId: partner.id,
        subjectId: report.id,
        detail: { fields: warnings },
      });
    }
    return reported;
  }

  /** The known originals, by partner and key: reported before, or in this call. */
  async #originals(judged: readonly Judged[]): Promise<Originals> {
    const valid = judged.filter((one): one is ValidReport => !("problem" in one));
    const wanted = new Map<PartnerId, Set<string>>();
    for (const { partner, originals } of valid) {
      const identities = wanted.get(partner.id) ?? new Set();
      for (const identity of originals) identities.add(identity);
      wanted.set(partner.id, identities);
    }
    const found = new Map<string, ReportedOriginal>();
    for (const [partnerId, identities] of wanted) {
      if (identities.size === 0) continue;
      const originals = await this.#parts.transactions.findReported(partnerId, [...identities]);
      for (const [identity, original] of originals) found.set(`${partnerId} ${identity}`, original);
    }
    // Originals first, so that a Void in one call with its Complete and its PreAuth belongs to the chain of all three.
    for (const one of wavesOf(judged).flat()) {
      if ("problem" in one) continue;
      const { partner, completion, id, identity } = one;
      const key = `${partner.id} ${identity}`;
      if (!wanted.get(partner.id)?.has(identity) || found.has(key)) continue;
      const original = originalOf(one, found);
      const chainId = chainOf(id, original);
      const { fields } = reportedFacts(completion, { id });
      const batchId = reportedBatch(partner.id, fields) ?? original?.batchId ?? null;
      found.set(key, { id, chainId, command: completion.command, reqId: reqIdOf(completion), batchId });
    }
    return found;
  }
}

function originalOf({ partner, identity, originals }: ValidReport, known: Originals): ReportedOriginal | undefined {
  const named = originals.find((original) => original !== identity && known.has(`${partner.id} ${original}`));
  return named === undefined ? undefined : known.get(`${partner.id} ${named}`);
}

/** The keys of this partner do not open: its reports wait. Whoever waits with them learns whose keys they are. */
function unreadable(id: PartnerId): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof ServiceError) throw cause;
    throw new ServiceError("unavailable", `The settings or keys of the partner ${id} cannot be read.`, { cause });
  };
}

function requireReportable(partner: Partner | undefined): Partner {
  if (!partner) {
    throw badFields([{ field: "partnerId", code: "unknown_partner", message: "No partner has this partnerId." }]);
  }
  if (partner.state === "disabled") throw new ServiceError("partner_disabled");
  return partner;
}

function isStoredOtherwise(one: Judged, result: ReportResult | undefined): boolean {
  return !("problem" in one) && result?.problem?.code !== "unavailable" && result?.transactionId !== one.id;
}

/** The length of a chain: a PreAuth, its Complete, the Void of that, and its Reversal. */
const wavesOfChain = 4;

/**
 * Splits into waves: first the items without an original in this call, then their follow-ups, and so on; settlements
 * come last.
 */
function wavesOf(judged: readonly Judged[]): readonly (readonly Judged[])[] {
  if (!judged.some(({ completion }) => completion.originalExternalId || completion.command === "SETTLEMENT")) {
    return [judged];
  }
  const named = new Map<string, ValidReport>();
  for (const one of judged) if (!("problem" in one)) named.set(`${one.partner.id} ${one.identity}`, one);
  const waves: Judged[][] = Array.from({ length: wavesOfChain + 1 }, () => []);
  for (const one of judged) waves[waveOf(one, named)]?.push(one);
  return waves.filter((wave) => wave.length > 0);
}

function waveOf(judged: Judged, named: ReadonlyMap<string, ValidReport>): number {
  if (judged.completion.command === "SETTLEMENT") return wavesOfChain;
  let wave = 0;
  let original = "problem" in judged ? undefined : namedOriginal(judged, named);
  // Two may refer to each other.
  while (original !== undefined && wave < wavesOfChain - 1) {
    wave += 1;
    original = namedOriginal(original, named);
  }
  return wave;
}

function namedOriginal(
  { partner, identity, originals }: ValidReport,
  named: ReadonlyMap<string, ValidReport>,
): ValidReport | undefined {
  const found = originals.find((original) => original !== identity && named.has(`${partner.id} ${original}`));
  return found === undefined ? undefined : named.get(`${partner.id} ${found}`);
}

/** Metrics are public and each label is stored, so a caller's text never becomes a label. */
function knownCommand(item: unknown): string {
  const command = typeof item === "object" && item !== null && "command" in item ? item.command : undefined;
  return commands.find((known) => known === command) ?? "unknown";
}

function toReport(valid: ValidReport, known: Originals): ReportedCompletion {
  const { partner, completion, id, identity, originals } = valid;
  const original = originalOf(valid, known);
  const originalExternalId = originals.at(-1) ?? null;
  const chainId = chainOf(id, original);
  const voidsPreAuth = completion.command === "VOID" && (original?.command ?? completion.originalCommand) === "PREAUTH";
  const facts = reportedFacts(completion, {
    id,
    voidsPreAuth,
    ...(original && { originalReqId: original.reqId ?? "" }),
  });
  const originalId = original?.id ?? null;
  const batchId = reportedBatch(partner.id, facts.fields) ?? original?.batchId ?? null;
  const report = {
    partnerId: partner.id,
    id,
    externalId: identity,
    originalExternalId,
    originalId,
    chainId,
    callBackUrl: completion.callBackUrl || null,
    command: completion.command,
    state: completion.status === "SUCCESS" ? ("SUCCESS" as const) : ("ERROR" as const),
    reqId: reqIdOf(completion),
    batchId,
    facts,
  };
  if (facts.kind === "system") return { ...report, notification: null };
  const about = { partnerId: partner.id, transactionId: id, originalId, originalExternalId, chainId };
  const notification = notificationOf({ ...about, callBackUrl: report.callBackUrl, facts, batchId }, partner.settings);
  return { ...report, notification, waitsForOriginal: waitsForOriginal(completion, original) };
}

function reqIdOf({ reqId }: CompletionRequest): string | null {
  return reqId ? reqId.toLowerCase() : null;
}

/** Whether the IPN depends on an original that is unknown and not described in the report. */
function waitsForOriginal(completion: CompletionRequest, original: ReportedOriginal | undefined): boolean {
  const { command, originalExternalId = "", originalCommand = "", transaction_type: type = "" } = completion;
  if (command !== "VOID" || original !== undefined || originalExternalId === "") return false;
  return originalCommand === "" && type === "";
}
