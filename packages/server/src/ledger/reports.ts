import { commands } from "@paybell/contract";
import { asAgreed } from "../commands/agreed-report.ts";
import { completionProblems, completionWarnings } from "../commands/check.ts";
import { reportedBatch } from "../commands/reported-batch.ts";
import { reportedFacts } from "../commands/reported-facts.ts";
import type { CompletionRequest } from "../commands/request.ts";
import { badFields, type FieldProblem, PaybellError } from "../errors.ts";
import type { EventSink } from "../events.ts";
import { type ChainId, newId, type PartnerId, readId, type TransactionId } from "../ids.ts";
import type { Metrics } from "../metrics.ts";
import { callbackUrlProblem } from "../partners/callback-url.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import type { NewNotification, Notifier, Slot } from "./notifier.ts";
import type { CompletionStore, Report, Reported, ReportedOriginal, TransactionStore } from "./store.ts";

export interface ReportsParts {
  readonly transactions: TransactionStore;
  readonly completions: CompletionStore;
  readonly directory: PartnerDirectory;
  readonly notifier: Notifier;
  readonly events: EventSink;
  readonly metrics: Pick<Metrics, "reports" | "notificationsCreated">;
  readonly sandbox: boolean;
  isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean>;
}

export interface ReportResult {
  readonly externalId: string;
  readonly result: "accepted" | "duplicate" | "refused";
  readonly transactionId?: TransactionId;
  readonly problem?: PaybellError;
}

type Originals = ReadonlyMap<string, ReportedOriginal>;

const noOriginals: Originals = new Map();
const noDevices: ReadonlySet<string> = new Set();

interface Sound {
  readonly completion: CompletionRequest;
  readonly partner: Partner;
  readonly id: TransactionId;
}
type Judged = Sound | { readonly completion: CompletionRequest; readonly problem: PaybellError };

/** Takes in commands that the operator's switch completed. Each stands alone: a bad one refuses nobody else. */
export class Reports {
  readonly #parts: ReportsParts;

  constructor(parts: ReportsParts) {
    this.#parts = parts;
  }

  /**
   * @returns one result each, in their order
   * @throws PaybellError `unavailable` when nothing at all could be made durable; what was not is `refused` otherwise
   */
  async report(completions: readonly CompletionRequest[]): Promise<readonly ReportResult[]> {
    const judged = await Promise.all(completions.map((completion) => this.#judge(completion)));
    const isFollowing = completions.some(({ originalExternalId }) => originalExternalId);
    const originals = isFollowing ? await this.#originals(judged) : noOriginals;
    const results = await this.#acceptInOrder(judged, originals);
    const unavailable = results.filter((result) => result.problem?.code === "unavailable");
    if (unavailable.length > 0 && unavailable.length === results.length) throw unavailable[0]?.problem;
    for (const [index, { result }] of results.entries()) {
      this.#parts.metrics.reports.inc({ command: knownCommand(completions[index]), result });
    }
    return results;
  }

  async #judge(given: CompletionRequest): Promise<Judged> {
    let completion = given;
    try {
      const partnerId = readId<"partner">(given.partnerId);
      // Thousands a second come here: nothing is waited for that is at hand.
      const known =
        partnerId && (this.#parts.directory.peek(partnerId) ?? (await this.#parts.directory.find(partnerId)));
      const partner = requireReportable(known);
      completion = asAgreed(given, partner.settings.reports);
      const problems = this.#problemsOf(completion, partner, noDevices);
      if (problems.length > 0) await this.#forgiveDevice(completion, partner, problems);
      const id = completion.id ? readId<"transaction">(completion.id) : undefined;
      return { completion, partner, id: id ?? newId<"transaction">() };
    } catch (error) {
      if (!(error instanceof PaybellError)) throw error;
      return { completion, problem: error };
    }
  }

  /**
   * What follows another of this call is written once that one is durable: its notification must find it pending. Where
   * something could not be made durable, nothing that comes after it is: all of that is reported again.
   */
  async #acceptInOrder(judged: readonly Judged[], originals: Originals): Promise<readonly ReportResult[]> {
    const [first = [], ...later] = turnsOf(judged);
    const results = await Promise.all(first.map((one) => this.#accept(one, originals)));
    if (later.length === 0) return results;
    const resultOf = new Map(first.map((one, index) => [one, results[index]]));
    for (const turn of later) {
      const problem = [...resultOf.values()].find((result) => result?.problem?.code === "unavailable")?.problem;
      const tried = turn.map((one) => (problem && !("problem" in one) ? { ...one, problem } : one));
      const answers = await Promise.all(tried.map((one) => this.#accept(one, originals)));
      for (const [index, one] of turn.entries()) resultOf.set(one, answers[index]);
    }
    return judged.flatMap((one) => resultOf.get(one) ?? []);
  }

  async #accept(judged: Judged, originals: Originals): Promise<ReportResult> {
    const { externalId } = judged.completion;
    if ("problem" in judged) return { externalId, result: "refused", problem: judged.problem };
    try {
      const reported = await this.#write(judged, originals);
      if (reported.outcome === "id_taken") {
        throw badFields([{ field: "id", code: "invalid_value", message: "id names another transaction." }]);
      }
      return { externalId, result: reported.outcome, transactionId: reported.id };
    } catch (error) {
      if (!(error instanceof PaybellError)) throw error;
      return { externalId, result: "refused", problem: error };
    }
  }

  /** @param devices device ids of the partner that are known not to be card numbers */
  #problemsOf(completion: CompletionRequest, partner: Partner, devices: ReadonlySet<string>): FieldProblem[] {
    const problems = completionProblems(completion, {
      registeredDeviceIds: devices,
      zeroAmounts: partner.settings.reports.zeroAmounts,
    });
    const { callBackUrl } = completion;
    if (!callBackUrl) return problems;
    const { callbackAddresses } = partner.settings;
    const problem = callbackUrlProblem("callBackUrl", callBackUrl, { sandbox: this.#parts.sandbox }, callbackAddresses);
    return problem ? [...problems, problem] : problems;
  }

  /** What looks like a card number may be the id of a registered device: asked for only where it decides. */
  async #forgiveDevice(completion: CompletionRequest, partner: Partner, found: readonly FieldProblem[]): Promise<void> {
    const { deviceId } = completion;
    const looksLikeCard = found.some(({ field, code }) => field === "deviceId" && code === "card_number_in_clear");
    const isDevice = deviceId && looksLikeCard && (await this.#parts.isRegisteredDevice(partner.id, deviceId));
    const [first, ...others] = isDevice ? this.#problemsOf(completion, partner, new Set([deviceId])) : found;
    if (first) throw badFields([first, ...others]);
  }

  async #write(sound: Sound, originals: Originals): Promise<Reported> {
    const { partner, completion } = sound;
    const report = toReport(sound, originals);
    const { notification: draft } = report;
    const slot =
      draft && !draft.follows && draft.settlesBatch === null
        ? this.#parts.notifier.reserve(partner.id, draft.content.length, draft.callBackUrl)
        : undefined;
    const notification = draft && { ...draft, lease: slot?.instance ?? null };
    const reported = await this.#parts.completions.report({ ...report, notification }).catch((error: unknown) => {
      slot?.release();
      throw error;
    });
    if (reported.outcome !== "accepted") {
      slot?.release();
      return reported;
    }
    if (notification) this.#passOn(notification, slot, reported.atMs);
    const warnings = completionWarnings(completion, partner.settings);
    if (warnings.length > 0) {
      this.#parts.events.record({
        kind: "delimiter_sent",
        partnerId: partner.id,
        subjectId: report.id,
        detail: { fields: warnings },
      });
    }
    return reported;
  }

  #passOn(notification: NewNotification, slot: Slot | undefined, atMs: number): void {
    this.#parts.metrics.notificationsCreated.inc({ command: notification.command });
    if (slot) slot.send(notification, atMs);
    else this.#parts.notifier.bornDue(notification.partnerId, notification.callBackUrl);
  }

  /** The originals that are known, by partner and external id: reported before, or in this same call. */
  async #originals(judged: readonly Judged[]): Promise<Originals> {
    const sound = judged.filter((one): one is Sound => !("problem" in one));
    const wanted = new Map<PartnerId, Set<string>>();
    for (const { partner, completion } of sound) {
      if (!completion.originalExternalId) continue;
      const ids = wanted.get(partner.id) ?? new Set();
      wanted.set(partner.id, ids.add(completion.originalExternalId));
    }
    const found = new Map<string, ReportedOriginal>();
    for (const [partnerId, externalIds] of wanted) {
      const originals = await this.#parts.transactions.findReported(partnerId, [...externalIds]);
      for (const [externalId, original] of originals) found.set(`${partnerId} ${externalId}`, original);
    }
    // In their order, so that a Void in one call with its Complete and its PreAuth belongs to the chain of all three.
    for (const { partner, completion, id } of sound) {
      const key = `${partner.id} ${completion.externalId}`;
      if (!wanted.get(partner.id)?.has(completion.externalId) || found.has(key)) continue;
      const original = found.get(`${partner.id} ${completion.originalExternalId}`);
      const chainId = original?.chainId ?? (id as string as ChainId);
      const { fields } = reportedFacts(completion, { id });
      const batchId = reportedBatch(partner.id, fields) ?? original?.batchId ?? null;
      found.set(key, { id, chainId, command: completion.command, batchId });
    }
    return found;
  }
}

function requireReportable(partner: Partner | undefined): Partner {
  if (!partner) {
    throw badFields([{ field: "partnerId", code: "unknown_partner", message: "No partner has this partnerId." }]);
  }
  if (partner.state === "disabled") throw new PaybellError("partner_disabled");
  return partner;
}

/** As many as a chain has: a PreAuth, its Complete, and the Void of that. */
const turnsOfChain = 3;

/** First what follows nothing of this call, then what follows that, and so on; settlements come last. */
function turnsOf(judged: readonly Judged[]): readonly (readonly Judged[])[] {
  if (!judged.some(({ completion }) => completion.originalExternalId || completion.command === "SETTLEMENT")) {
    return [judged];
  }
  const named = new Map(
    judged.map(({ completion }) => [`${completion.partnerId} ${completion.externalId}`, completion]),
  );
  const turns: Judged[][] = Array.from({ length: turnsOfChain + 1 }, () => []);
  for (const one of judged) turns[turnOf(one.completion, named)]?.push(one);
  return turns.filter((turn) => turn.length > 0);
}

function turnOf(completion: CompletionRequest, named: ReadonlyMap<string, CompletionRequest>): number {
  if (completion.command === "SETTLEMENT") return turnsOfChain;
  const { partnerId } = completion;
  let turn = 0;
  let original = named.get(`${partnerId} ${completion.originalExternalId}`);
  // Two may name each other.
  while (original !== undefined && turn < turnsOfChain - 1) {
    turn += 1;
    original = named.get(`${partnerId} ${original.originalExternalId}`);
  }
  return turn;
}

/** Metrics are open to read, and each label is kept: nothing that a caller made up becomes one. */
function knownCommand(completion: CompletionRequest | undefined): string {
  return commands.find((known) => known === completion?.command) ?? "unknown";
}

function toReport({ partner, completion, id }: Sound, originals: Originals): Report {
  const originalExternalId = completion.originalExternalId || null;
  const original = originalExternalId === null ? undefined : originals.get(`${partner.id} ${originalExternalId}`);
  const chainId = original?.chainId ?? (id as string as ChainId);
  const voidsPreAuth = completion.command === "VOID" && original?.command === "PREAUTH";
  const facts = reportedFacts(completion, { id, voidsPreAuth });
  const originalId = original?.id ?? null;
  const batchId = reportedBatch(partner.id, facts.fields) ?? original?.batchId ?? null;
  const isOrdered = partner.settings.ordering === "chain";
  const report = {
    partnerId: partner.id,
    id,
    externalId: completion.externalId,
    originalExternalId,
    originalId,
    chainId,
    callBackUrl: completion.callBackUrl || null,
    command: completion.command,
    state: completion.status === "SUCCESS" ? ("SUCCESS" as const) : ("ERROR" as const),
    reqId: completion.reqId ? completion.reqId.toLowerCase() : null,
    batchId,
    facts,
  };
  if (facts.kind === "system") return { ...report, notification: null };
  const notification = {
    partnerId: partner.id,
    id: newId<"notification">(),
    transactionId: id,
    originalId,
    originalExternalId: originalId === null ? originalExternalId : null,
    chainId,
    command: facts.command,
    callBackUrl: report.callBackUrl,
    follows: originalExternalId !== null && isOrdered,
    settlesBatch: isOrdered && facts.kind === "settlement" ? batchId : null,
    facts,
    content: JSON.stringify(facts),
    lease: null,
  };
  return { ...report, notification };
}
