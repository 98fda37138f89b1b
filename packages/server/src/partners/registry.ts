import { overlapHours as overlap } from "@paybell/contract";
import { badFields, type FieldProblem, ServiceError } from "../errors.ts";
import { safeFieldName } from "../guards/safe-text.ts";
import { type KeyId, newId, type PartnerId } from "../ids.ts";
import { type Page, pageOf } from "../page.ts";
import { apiKeyHash, newSecret } from "./keys.ts";
import type { MasterKey } from "./master-key.ts";
import type { ApiKeyScope, PartnerSettings, PartnerState, RotatedKind } from "./partner.ts";
import {
  type CallbackUrlRules,
  type ClientCertificateInput,
  clientCertificateProblems,
  validUntil,
} from "./settings/callback-rules.ts";
import { isObject } from "./settings/setting.ts";
import {
  completeSettings,
  contactProblems,
  type DefaultSettings,
  type PartnerInput,
  scheduleProblems,
  settingsProblems,
} from "./settings/settings.ts";
import type {
  CallbackKeyToStore,
  FoundTerminal,
  NewKey,
  PartnerStore,
  Rotation,
  StoredKey,
  StoredPartner,
  TerminalStore,
} from "./store.ts";
import { completeTerminal, type Terminal, type TerminalInput, terminalProblems } from "./terminal.ts";

/** Why a terminal is busy. */
const openMoney =
  "its batch is not empty, or was settled late and no Settlement has reported it yet, a PreAuth is open, or a command " +
  "is in flight";

/** Shown once. Keys as base64 of 32 bytes, webhookSecret as whsec_ and base64, apiKey as pb_ and base64url. */
export interface NewSecrets {
  readonly apiKey: string;
  readonly encryptionKey: string;
  readonly signingKey: string;
  readonly webhookSecret: string;
}

/** One version of a key, with what concerns its kind. */
export interface KeyVersion extends Pick<StoredKey, "id" | "kind" | "activeFrom" | "expiresAt" | "createdAt"> {
  /** The upper bound of its seals as an encryption key: counted in blocks, before use. */
  readonly seals?: number;
  /** For an additional API key: its name. */
  readonly name?: string;
  /** For such an API key: its scopes. Absent: everything. */
  readonly scopes?: readonly ApiKeyScope[];
  /** For an API key, to the minute; null: never. */
  readonly lastUsedAt?: Date | null;
}

export interface PartnerRecord extends Omit<StoredPartner, "keys"> {
  readonly keys: readonly KeyVersion[];
}

/** The new version encrypts and signs from `activeFrom` on; the old one is refused, or not used, from `expiresOld` on. */
export interface RotatedKey extends Rotation {
  readonly id: KeyId;
  readonly kind: RotatedKind;
  /** Shown once. */
  readonly secret: string;
}

export interface RegistryParts {
  readonly partners: PartnerStore;
  readonly terminals: TerminalStore;
  readonly masterKey: MasterKey;
  readonly defaults: DefaultSettings;
  readonly rules: CallbackUrlRules;
  /** The number of days for which an open PreAuth fixes its terminal's mid. */
  readonly preAuthDays: number;
  /** The retention of history, which every retry schedule has to fit into. */
  readonly historyDays: number;
  /** Whether it has a mail server. Default: no. */
  readonly sendsMail?: boolean;
  readonly cardNumberProblem: CardNumberCheck;
  /** Called after each change of a partner; its result is awaited, its failure is ignored. */
  changed(id: PartnerId): Promise<void>;
}

const terminalsFoundMax = 50;
const keyKinds = ["apiKey", "encryptionKey", "signingKey", "webhookSecret"] as const satisfies readonly RotatedKind[];

/** Registers and changes partners, their keys and terminals. Every refusal is a ServiceError. */
export class PartnerRegistry {
  readonly #parts: RegistryParts;

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  /** A new partner's settings, where its registration does not name them. */
  get defaults(): DefaultSettings {
    return this.#parts.defaults;
  }

  /** Registers a partner with four new keys. Invalid settings are refused, all of them named. */
  async register(input: PartnerInput): Promise<{ partner: PartnerRecord; secrets: NewSecrets }> {
    this.#refuse(input, [...settingsProblems(input, this.#parts.rules), ...this.#serviceProblems(input)]);
    const id = newId<"partner">();
    const made = keyKinds.map((kind) => this.#newKey(id, kind));
    const settings = completeSettings(input, this.#parts.defaults);
    const stored = await this.#parts.partners.insert({ id, settings, keys: made.map((key) => key.stored) });
    const secrets = Object.fromEntries(made.map((key) => [key.stored.kind, key.text]));
    return { partner: this.#record(stored), secrets: secrets as unknown as NewSecrets };
  }

  /**
   * Changes the settings in `patch`, which may depend on those that stand. A field of transactionTypes or reports that
   * it does not name is unchanged.
   *
   * @param approve throws if this caller may not make the change; no other change of the partner comes between
   */
  async change(
    id: PartnerId,
    change: Partial<PartnerInput> | ((standing: PartnerSettings) => Partial<PartnerInput>),
    approve: (standing: PartnerSettings, next: PartnerSettings, partner: PartnerRecord) => void = () => undefined,
  ): Promise<PartnerRecord> {
    return await this.#change(id, (standing, partner) => {
      const settings = this.#next(standing, typeof change === "function" ? change(standing) : change);
      approve(standing, settings, this.#record(partner));
      return { settings };
    });
  }

  /** The settings as they are and as a change would make them. @throws ServiceError as {@link change} does */
  async preview(
    id: PartnerId,
    patch: Partial<PartnerInput>,
  ): Promise<{ readonly standing: PartnerSettings; readonly next: PartnerSettings }> {
    const standing = completeSettings((await this.#require(id)).settings, this.#parts.defaults);
    return { standing, next: this.#next(standing, patch) };
  }

  #next(standing: PartnerSettings, patch: Partial<PartnerInput>): PartnerSettings {
    const merged = {
      ...standing,
      ...Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)),
    };
    this.#refuse(patch, [...settingsProblems(merged, this.#parts.rules), ...this.#serviceProblems(patch)]);
    const transactionTypes = { ...standing.transactionTypes, ...patch.transactionTypes };
    const reports = { ...standing.reports, ...patch.reports };
    if (standing.reports.identity !== "externalId" && reports.identity === "externalId") throw identityStays();
    return completeSettings({ ...merged, transactionTypes, reports }, this.#parts.defaults);
  }

  async setState(id: PartnerId, state: PartnerState): Promise<PartnerRecord> {
    return await this.#change(id, () => ({ state }));
  }

  async find(id: PartnerId): Promise<PartnerRecord | undefined> {
    const stored = await this.#parts.partners.find(id);
    return stored && this.#record(stored);
  }

  /** In the order of registration. */
  async list(page: { readonly after?: string; readonly limit: number }): Promise<Page<PartnerRecord>> {
    const rows = await this.#parts.partners.list(page.after as PartnerId | undefined, page.limit + 1);
    return pageOf(
      rows.map((row) => this.#record(row)),
      page.limit,
      (partner) => partner.id,
    );
  }

  /**
   * Creates a new version of a key. Encryption and signing: the old version is used until the overlap ends, because the
   * partner has to install the new one first; with an overlap of 0 the new one is used at once. Webhook secret: both
   * sign until then. API key: both are valid until then; additional ones are unchanged.
   */
  async rotate(id: PartnerId, kind: RotatedKind, overlapHours: number): Promise<RotatedKey> {
    refuse(rotationProblems(kind, overlapHours));
    const key = this.#newKey(id, kind);
    const activeAtOnce = kind === "webhookSecret" || kind === "apiKey";
    const rotation = await this.#parts.partners.rotate(id, key.stored, overlapHours * 3_600, activeAtOnce);
    if (rotation === undefined) throw new ServiceError("not_found");
    await this.#notify(id);
    return { id: key.stored.id, kind, secret: key.text, ...rotation };
  }

  /**
   * Replaces the client certificate that is presented to the partner's server.
   *
   * @throws ServiceError `not_found`, or naming what is wrong; no error repeats the key
   */
  async putCallbackCertificate(id: PartnerId, input: ClientCertificateInput): Promise<PartnerRecord> {
    refuse(clientCertificateProblems(input, Date.now()));
    const keyId = newId<"key">();
    const { certificate, key } = input;
    const plain = Buffer.from(JSON.stringify({ certificate, key }));
    const material = this.#parts.masterKey.seal(plain, { partnerId: id, keyId, kind: "callbackKey" });
    return await this.#replaceCallbackKey(id, { id: keyId, material, endsAt: validUntil(certificate) });
  }

  /** @throws ServiceError `not_found` */
  async removeCallbackCertificate(id: PartnerId): Promise<PartnerRecord> {
    return await this.#replaceCallbackKey(id, null);
  }

  async #replaceCallbackKey(id: PartnerId, key: CallbackKeyToStore | null): Promise<PartnerRecord> {
    const stored = await this.#parts.partners.replaceCallbackKey(id, key);
    if (stored === undefined) throw new ServiceError("not_found");
    await this.#notify(id);
    return this.#record(stored);
  }

  /** Registers or changes a terminal; missing fields of `input` become empty. */
  async putTerminal(id: PartnerId, tid: string, input: TerminalInput): Promise<Terminal> {
    const partner = await this.#require(id);
    // A registered deviceId may look like a card number, but is known not to be one.
    const { deviceId: _, ...guarded } = input;
    this.#refuse({ tid, ...guarded }, terminalProblems(tid, input, partner.settings.signing));
    const put = await this.#parts.terminals.upsert(id, completeTerminal(tid, input), this.#parts.preAuthDays);
    if (put.outcome === "taken") {
      const how = put.isRegistered ? "is registered for" : "was claimed by a command of";
      const why = put.isRegistered ? "" : `, and money is open on it: ${openMoney}`;
      throw new ServiceError("terminal_taken", `tid ${tid} with this mid ${how} the partner ${put.holder}${why}.`);
    }
    if (put.outcome === "busy") {
      throw new ServiceError("terminal_busy", `tid ${tid} keeps its mid and acquirer: ${openMoney}.`);
    }
    if (put.outcome === "no_such_acquirer") {
      const message = "acquirer is not the name of a registered one.";
      throw badFields([{ field: "acquirer", code: "invalid_value", message }]);
    }
    return put.terminal;
  }

  /**
   * Releases a terminal, registered or claimed by a command, for other partners.
   *
   * @returns the terminal as it was
   * @throws ServiceError `not_found`, `terminal_busy`
   */
  async removeTerminal(id: PartnerId, tid: string): Promise<Terminal> {
    await this.#require(id);
    const removed = await this.#parts.terminals.remove(id, tid, this.#parts.preAuthDays);
    if (removed.outcome === "not_found") throw new ServiceError("not_found", "The partner has no such terminal.");
    if (removed.outcome === "busy") {
      throw new ServiceError("terminal_busy", `tid ${tid} is in use: ${openMoney}.`);
    }
    return removed.terminal;
  }

  async terminal(id: PartnerId, tid: string): Promise<Terminal | undefined> {
    return await this.#parts.terminals.find(id, tid);
  }

  /** In the order of tid. */
  async terminals(id: PartnerId, page: { readonly after?: string; readonly limit: number }): Promise<Page<Terminal>> {
    await this.#require(id);
    const rows = await this.#parts.terminals.list(id, page.after, page.limit + 1);
    return pageOf(rows, page.limit, (terminal) => terminal.tid);
  }

  /** By tid, mid or the beginning of the merchant's name. */
  async findTerminals(text: string): Promise<readonly FoundTerminal[]> {
    return await this.#parts.terminals.search(text, terminalsFoundMax);
  }

  #refuse(given: object, problems: readonly FieldProblem[]): void {
    refuse(withCardNumbers(given, problems, this.#parts.cardNumberProblem).map(withShortName));
  }

  /** What the service's own settings do not allow. */
  #serviceProblems({ retry, contactMails }: Partial<PartnerInput>): FieldProblem[] {
    const { historyDays, sendsMail = false } = this.#parts;
    return [...scheduleProblems(retry, historyDays), ...contactProblems(contactMails, sendsMail)];
  }

  async #require(id: PartnerId): Promise<StoredPartner> {
    const stored = await this.#parts.partners.find(id);
    if (stored === undefined) throw new ServiceError("not_found");
    return stored;
  }

  async #change(
    id: PartnerId,
    next: (
      standing: PartnerSettings,
      partner: StoredPartner,
    ) => { readonly state?: PartnerState; readonly settings?: PartnerSettings },
  ): Promise<PartnerRecord> {
    const { partners, defaults } = this.#parts;
    const stored = await partners.change(id, (row) => next(completeSettings(row.settings, defaults), row));
    if (stored === undefined) throw new ServiceError("not_found");
    await this.#notify(id);
    return this.#record(stored);
  }

  async #notify(id: PartnerId): Promise<void> {
    // The change is durable; every cache sees it within five seconds anyway.
    await this.#parts.changed(id).catch(() => undefined);
  }

  #newKey(partnerId: PartnerId, kind: RotatedKind): { stored: NewKey; text: string } {
    const id = newId<"key">();
    const { raw, text } = newSecret(kind);
    const material =
      kind === "apiKey" ? apiKeyHash(text) : this.#parts.masterKey.seal(raw, { partnerId, keyId: id, kind });
    return { stored: { id, kind, material }, text };
  }

  #record(stored: StoredPartner): PartnerRecord {
    return {
      ...stored,
      settings: completeSettings(stored.settings, this.#parts.defaults),
      keys: stored.keys.map(({ seals, name, scopes, lastUsedAt, ...key }) => ({
        ...key,
        ...(key.kind === "encryptionKey" && { seals }),
        ...(key.kind === "apiKey" && { lastUsedAt }),
        ...(name !== "" && { name }),
        ...(scopes !== null && { scopes }),
      })),
    };
  }
}

/** A caller chose the name of an unknown field. */
function withShortName(problem: FieldProblem): FieldProblem {
  if (problem.code !== "unknown_field") return problem;
  const field = safeFieldName(problem.field);
  return field === problem.field ? problem : { ...problem, field, message: `${field} is not a known field.` };
}

function refuse(problems: readonly FieldProblem[]): void {
  const [first, ...rest] = problems;
  if (first !== undefined) throw badFields([first, ...rest]);
}

function rotationProblems(kind: string, overlapHours: number): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!(keyKinds as readonly string[]).includes(kind)) {
    problems.push({ field: "key", code: "invalid_value", message: `key must be one of ${keyKinds.join(", ")}.` });
  }
  if (!(overlapHours >= 0 && overlapHours <= overlap.max)) {
    const message = `overlapHours must be a number from 0 to ${overlap.max}.`;
    problems.push({ field: "overlapHours", code: "invalid_value", message });
  }
  return problems;
}

/** Otherwise two different reports under one number would become one, and the second would be lost. */
function identityStays(): ServiceError {
  const field = "reports.identity";
  return badFields([{ field, code: "invalid_value", message: `${field} cannot go back to externalId.` }]);
}

/** Checks a field's text for card numbers; undefined if it contains none. */
export type CardNumberCheck = (field: string, text: string) => FieldProblem | undefined;

/** No setting is nested more deeply: what is deeper is refused by its shape, which repeats nothing of it. */
const depthMax = 4;

/**
 * Adds to the problems of settings every card number in their keys and values. Of a setting that holds one nothing else
 * is reported, because the message might repeat it.
 */
function withCardNumbers(given: object, problems: readonly FieldProblem[], check: CardNumberCheck): FieldProblem[] {
  const found = Object.entries(given).map(([name, value]) => ({ name, numbers: numbersOf(name, value, "", check) }));
  const holding = new Set(found.filter(({ numbers }) => numbers.length > 0).map(({ name }) => name));
  const others = problems.filter(({ field }) => !holding.has(field) && !holding.has(settingOf(field)));
  return [...others, ...found.flatMap(({ numbers }) => numbers)];
}

function numbersOf(key: string, value: unknown, path: string, check: CardNumberCheck, depth = 1): FieldProblem[] {
  const field = path + safeFieldName(key);
  const problem = check(field, key);
  return problem === undefined ? numbersIn(field, value, check, depth) : [problem];
}

function numbersIn(field: string, value: unknown, check: CardNumberCheck, depth: number): FieldProblem[] {
  if (typeof value === "string") return [check(field, value)].filter((problem) => problem !== undefined);
  if (depth === depthMax) return [];
  if (Array.isArray(value)) return value.flatMap((one, at) => numbersIn(`${field}[${at}]`, one, check, depth + 1));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => numbersOf(key, inner, `${field}.`, check, depth + 1));
}

/** The first part of a path such as `reports.schemes.NAPAS` or `retry[3]`. */
function settingOf(field: string): string {
  return field.split(/[.[]/, 1)[0] ?? "";
}
