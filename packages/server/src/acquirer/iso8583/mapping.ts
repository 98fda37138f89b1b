import { cardCommands, currencyDecimals, responseCodes } from "@paybell/contract";
import { actionCodeOf, approvedCode, partialCode, responseCodeOf, responseCodePattern } from "../../response-codes.ts";
import type { AcquirerAnswer, AcquirerMessage, AskedMessage, UnmatchedAnswer } from "../acquirer.ts";
import { type Codec, type FieldLayout, type IsoMessage, standardFields } from "./message/codec.ts";
import { IsoFormatError } from "./message/element.ts";
import type { ShownFields } from "./message/masking.ts";
import type { MessageName, MessageTemplate, NetworkName, Profile } from "./profile/schema.ts";
import { elementIn, isOfTotals, messageWriter, placeOf, templateReader, type Write } from "./profile/template.ts";
import { hostValues, type NetworkMessage } from "./profile/values.ts";

const processingCodeField = 3;
const amountField = 4;
const transmissionField = 7;
const traceNoField = 11;
const responseCodeField = 39;
const tidField = 41;
const midField = 42;
const currencyField = 49;
/** The fields that identify a message, as far as its answer repeats them. */
const identifyingFields = [processingCodeField, transmissionField, traceNoField, tidField, midField];
const settlements = ["SETTLEMENT", "SETTLEMENT_AFTER_UPLOAD"] as const;
/** Codes of ISO 8583:1987 that approve at some hosts, or leave it open: in progress, completed in part. */
const notDeclined: ReadonlySet<string> = new Set([approvedCode, "08", "09", partialCode, "11", "16", "32"]);
const declinesOfStandard = responseCodes.map(({ code }) => code).filter((code) => !notDeclined.has(code));

/** The ledger's messages as a host's profile writes them, and its answers as the ledger reads them. */
export class Mapping {
  readonly #profile: Profile;
  readonly #writers: Readonly<Record<MessageName, Write | null>>;
  readonly #network: Readonly<Record<NetworkName, Write | null>>;
  /** Field 39 of an approval, as the ledger knows it: a partial one is among them, so that it is reversed. */
  readonly approvals: ReadonlySet<string>;
  readonly #declines: ReadonlySet<string>;
  readonly #ownCodes: ReadonlyMap<string, MessageTemplate["responseCodes"]>;

  constructor(profile: Profile) {
    const host = hostValues(profile);
    const write = (template: MessageTemplate | null) => template && messageWriter(template, host);
    this.#profile = profile;
    this.#writers = mapped(profile.messages, write);
    const { signOn, echo, signOff } = profile.network;
    const network = { signOn, echo, signOff, keyRequest: profile.mac?.keyExchange?.request ?? null };
    this.#network = mapped(network, write);
    const named = Object.entries<MessageTemplate | null>({ ...profile.messages, ...network });
    this.#ownCodes = new Map(named.map(([name, template]) => [name, template?.responseCodes]));
    this.approvals = new Set([approvedCode, partialCode, ...profile.approvals]);
    this.#declines = new Set([...declinesOfStandard, ...profile.declines]);
  }

  /** @throws IsoFormatError if the host's profile cannot express it */
  request(message: AcquirerMessage): IsoMessage {
    const name = nameOf(message);
    const write = this.#writers[name];
    if (write === null) throw new IsoFormatError(`the host ${this.#profile.name} takes no ${name}`);
    return write(message, message.repeat);
  }

  /** Undefined if the host does not support it. */
  network(kind: NetworkName, message: NetworkMessage): IsoMessage | undefined {
    return this.#network[kind]?.(message, false);
  }

  /** The elements that a request and its answer share, and no other current request has. */
  matchKeyOf(message: IsoMessage): string {
    const { mti } = message;
    const asked = mti.slice(0, 2) + (Number(mti[2]) - (Number(mti[2]) % 2)).toString();
    return [asked, ...this.#profile.matchBy.map((field) => textOf(message, field))].join("|");
  }

  /** Undefined for an answer to what moves no money, and settles none. */
  unmatchedAnswer(answer: IsoMessage): UnmatchedAnswer | undefined {
    const code = textOf(answer, processingCodeField);
    const names: readonly MessageName[] = [...cardCommands, ...settlements].filter((name) => {
      const template = this.#profile.messages[name];
      if (template === null || !isAnswerTo(template.mti, answer.mti)) return false;
      return code === "" || code === template.fields[processingCodeField];
    });
    if (names.length === 0) return undefined;
    const read = this.answer(answer, answer, names[0]);
    const { approveCode, refId } = read;
    // Hosts leave out some of what they should repeat: an answer is matched by what it does.
    const repeated = new Set([...identifyingFields, ...this.#profile.matchBy].filter((field) => textOf(answer, field)));
    const named = identifyingFields.map((field) => [`field${field}`, shown(textOf(answer, field))]);
    return {
      ...read,
      tid: textOf(answer, tidField),
      traceNo: textOf(answer, traceNoField),
      isSettlement: names.some(isSettlement),
      known: { mti: answer.mti, ...Object.fromEntries(named), approveCode: shown(approveCode), refId: shown(refId) },
      mayAnswer: (message) => {
        if (!names.includes(nameOf(message))) return false;
        const asked = this.#requestOf(message);
        if (asked === undefined) return false;
        const same = [...repeated].filter((field) => asked.fields.has(field));
        return same.includes(traceNoField) && same.every((field) => textOf(asked, field) === textOf(answer, field));
      },
    };
  }

  /** Undefined if it cannot have been sent. */
  #requestOf(message: AskedMessage): IsoMessage | undefined {
    try {
      return this.request(message as AcquirerMessage);
    } catch {
      return undefined;
    }
  }

  /**
   * The response code of ISO 8583:1987 that an answer has; empty if the host gives none that is valid.
   *
   * @param name of the message that it answers, which may have codes of its own
   */
  codeOf(answer: IsoMessage, name?: MessageName | NetworkName): string {
    const { answer: kept, responseCodes: shared, standard } = this.#profile;
    const given = this.#read(answer, kept.responseCode);
    const own = name && this.#ownCodes.get(name);
    const code = own?.[given] ?? shared[given] ?? (standard === "1993" ? responseCodeOf(given) : given);
    return responseCodePattern.test(code) ? code : "";
  }

  /**
   * The response code is empty if the host gives none that is valid: then the outcome is not known.
   *
   * @param name of the request
   */
  answer(answer: IsoMessage, request: IsoMessage, name?: MessageName): AcquirerAnswer {
    const { approveCode, refId, tc, emv: emvField, settlementDate, totals } = this.#profile.answer;
    const read = (place: number | string | null) => this.#read(answer, place);
    const code = this.codeOf(answer, name);
    const emv = read(emvField);
    const date = read(settlementDate);
    const ownFigures = this.#figures(answer, request);
    const ownTotals = totals.map((field) => [String(field), read(field)] as const).filter(([, text]) => text !== "");
    const isListed = this.approvals.has(code) || this.#declines.has(code);
    // Some hosts fill the field of a decline with zeros.
    const isAmbiguous = code === "" || (!isListed && /[^0]/.test(read(approveCode)));
    const isPartial = code === partialCode || (code === approvedCode && isForAnotherAmount(answer, request));
    const approvedMinor = isPartial ? this.#approvedPart(answer, request) : undefined;
    return {
      responseCode: isPartial ? partialCode : code,
      approveCode: read(approveCode),
      refId: read(refId),
      tc: read(tc),
      ...(isAmbiguous && { isAmbiguous }),
      ...(approvedMinor !== undefined && { approvedMinor }),
      ...(emv !== "" && { emv }),
      ...(date !== "" && { settlementDate: date }),
      ...(ownTotals.length > 0 && { ownTotals: Object.fromEntries(ownTotals) }),
      ...(ownFigures !== undefined && { ownFigures }),
    };
  }

  /** @param place a field, or the element of a field */
  #read(message: IsoMessage, place: number | string | null): string {
    if (typeof place === "number") return textOf(message, place);
    if (place === null) return "";
    const { field, tag } = placeOf(place);
    const structure = this.#profile.structures[String(field)];
    if (tag === "" || structure === undefined) return textOf(message, field);
    return cleaned(elementIn(message.fields.get(field) ?? "", tag, structure));
  }

  /** The part that the host approved, in our own units, if this profile accepts one. */
  #approvedPart(answer: IsoMessage, request: IsoMessage): bigint | undefined {
    if (this.#profile.partialApprovals === "reverse") return undefined;
    const [asked, given] = [request, answer].map(({ fields }) => BigInt(fields.get(amountField) ?? 0));
    const unit = unitOf(currencyIn(request, this.#profile));
    if (asked === undefined || given === undefined || unit === undefined) return undefined;
    return given > 0n && given < asked && given % unit === 0n ? given / unit : undefined;
  }

  /** The host's totals, where they have the form in which the Settlement has ours. */
  #figures(answer: IsoMessage, request: IsoMessage): AcquirerAnswer["ownFigures"] {
    const { answer: kept, messages } = this.#profile;
    const unit = unitOf(currencyIn(request, this.#profile));
    const values = kept.totals.flatMap((field) => {
      const template = messages.SETTLEMENT.fields[String(field)];
      const text = textOf(answer, field);
      return template === undefined || text === "" ? [] : [...(templateReader(template)(text) ?? [])];
    });
    const numbers = values.filter(([, text]) => /^\d{1,18}$/.test(text));
    const figures = numbers.flatMap(([name, text]) => figureOf(name, text, unit));
    return figures.length === 0 ? undefined : Object.fromEntries(figures);
  }
}

/** The message of a profile by which it is written. */
export function nameOf(message: AcquirerMessage | AskedMessage): MessageName {
  return message.command === "SETTLEMENT" && message.afterUpload ? "SETTLEMENT_AFTER_UPLOAD" : message.command;
}

function isSettlement(name: MessageName): boolean {
  return settlements.some((one) => one === name);
}

/** A figure in our own units. An amount without its currency is none. */
function figureOf(
  name: string,
  text: string,
  unit: bigint | undefined,
): readonly (readonly [string, number | bigint])[] {
  const [, side, what] = /^(sale|void|refund)(Quantity|Total)$/.exec(name) ?? [];
  if (side === undefined) return [];
  if (what === "Quantity") return [[name, Number(text)]];
  if (unit === undefined) return BigInt(text) === 0n ? [[`${side}TotalMinor`, 0n]] : [];
  return [[`${side}TotalMinor`, BigInt(text) / unit]];
}

type InCurrency = readonly [currency: string, { readonly exponent: number }];

function currencyIn({ fields }: IsoMessage, { currencies }: Profile): InCurrency | undefined {
  return Object.entries(currencies).find(([, { number }]) => number === fields.get(currencyField));
}

/** Our smallest unit in the host's. */
function unitOf(currency: InCurrency | undefined): bigint | undefined {
  if (currency === undefined) return undefined;
  const [code, { exponent }] = currency;
  return 10n ** BigInt(exponent - (currencyDecimals(code) ?? exponent));
}

/** The codec's layout of this host's messages. */
export function layoutOf({ standard, encoding, fields }: Profile): ConstructorParameters<typeof Codec>[0] {
  const layout = new Map<number, FieldLayout>(
    [...standardFields[standard]].map(([number, format]) => [number, { format }]),
  );
  for (const [number, field] of Object.entries(fields)) {
    layout.set(Number(number), typeof field === "string" ? { format: field } : field);
  }
  return { encoding, fields: layout };
}

/** The private fields of this host that a trace may show. */
export function shownFieldsOf({ shownFields, answer, messages }: Profile): ShownFields {
  const { SETTLEMENT, SETTLEMENT_AFTER_UPLOAD } = messages;
  const written = [SETTLEMENT, SETTLEMENT_AFTER_UPLOAD].flatMap(({ fields }) => Object.entries(fields));
  const ours = written.filter(([, template]) => isOfTotals(template)).map(([place]) => placeOf(place).field);
  return { also: new Set(shownFields), totals: new Set([...answer.totals, ...ours]) };
}

/** The answer to what a host asks of us: what it sent, approved. */
export function approvalOf(message: IsoMessage): IsoMessage {
  return answerWith(message, approvedCode);
}

/**
 * The answer to a request of the host's; that to a repeat is none itself. Message types of ISO 8583:1993 begin with 1,
 * and have its action codes.
 */
export function answerWith({ mti, fields }: IsoMessage, code: string): IsoMessage {
  const answerMti = mti.slice(0, 2) + (Number(mti[2]) + 1).toString() + (Number(mti[3]) & ~1).toString();
  const own = mti.startsWith("1") ? actionCodeOf(code, mti) : code;
  return { mti: answerMti, fields: new Map([...fields, [responseCodeField, own]]) };
}

/**
 * A field without its padding: spaces, or NULs. A NUL inside becomes U+FFFD, because no text of PostgreSQL holds one.
 */
function textOf({ fields }: IsoMessage, field: number): string {
  return cleaned(fields.get(field) ?? "");
}

function cleaned(text: string): string {
  if (!text.includes("\0")) return text.trim();
  let end = text.length;
  while (text[end - 1] === "\0" || text[end - 1] === " ") end -= 1;
  return text.slice(0, end).replaceAll("\0", "\ufffd").trim();
}

/** The third digit is one higher; the fourth only marks a repeat. */
function isAnswerTo(request: string, answer: string): boolean {
  return answer.slice(0, 2) === request.slice(0, 2) && Number(answer[2]) === Number(request[2]) + 1;
}

function isForAnotherAmount(answer: IsoMessage, request: IsoMessage): boolean {
  const asked = request.fields.get(amountField);
  const given = answer.fields.get(amountField);
  return asked !== undefined && given !== undefined && BigInt(asked) !== BigInt(given);
}

/** As an event shows it. */
function shown(text: string): string {
  return text.replace(/[^ -~]/g, "?");
}

function mapped<Name extends string, From, To>(
  record: Readonly<Record<Name, From>>,
  map: (value: From) => To,
): Record<Name, To> {
  const entries = Object.entries<From>(record).map(([name, value]) => [name, map(value)]);
  return Object.fromEntries(entries) as Record<Name, To>;
}
