import { type IpnKind, paymentTypes, type Signing, signedFields } from "@paybell/contract";
import type { ErrorCode, FieldProblem } from "../../errors.ts";
import { holdsCardNumber, merchantIdHoldsCardNumber } from "../../guards/card-number.ts";
import { isUuidV4 } from "../../ids.ts";
import { amountOrZeroProblem, amountProblem } from "../amount.ts";
import type { TextField } from "./request.ts";

export interface RuleContext {
  /** The partner's setting: it determines which fields are signed. */
  readonly signing: Signing;
}

/**
 * The problems without that of a deviceId which looks like a card number, if the operator registered that device for the
 * partner. The registration is read only if it decides.
 */
export async function exemptDevice(
  problems: readonly FieldProblem[],
  isRegistered: () => Promise<boolean>,
): Promise<readonly FieldProblem[]> {
  const isOfDevice = ({ field, code }: FieldProblem) => field === "deviceId" && code === "card_number_in_clear";
  if (!problems.some(isOfDevice) || !(await isRegistered())) return problems;
  return problems.filter((problem) => !isOfDevice(problem));
}

/** A broken rule of one field; `rule` continues from the field's name. Never repeats the value. */
export function broken(field: string, code: ErrorCode, rule: string): FieldProblem {
  return { field, code, message: `${field} ${rule}.` };
}

/** The shape counts characters; this bounds the bytes. */
export function bytesProblem(path: string, field: TextField, value: string): FieldProblem | undefined {
  const { maxBytes } = field;
  if (maxBytes === undefined || value.length * 3 <= maxBytes) return undefined;
  const bytes = Buffer.byteLength(value, "utf8");
  return bytes <= maxBytes ? undefined : broken(path, "too_long", `may have at most ${maxBytes} bytes, found ${bytes}`);
}

/** `decimals` undefined: the currency is not known here, and the maximum of all currencies is allowed. */
export function amountRule(amount: string, decimals: number | undefined): FieldProblem | undefined {
  const found = amountProblem(amount, decimals);
  return found === undefined ? undefined : broken("amount", "invalid_amount", found);
}

/** The same for an amount that may be zero. */
export function amountOrZeroRule(amount: string, decimals: number | undefined): FieldProblem | undefined {
  const found = amountOrZeroProblem(amount, decimals);
  return found === undefined ? undefined : broken("amount", "invalid_amount", found);
}

export function currencyRule(currency: string, decimals: number | undefined): FieldProblem | undefined {
  if (currency === "" || decimals !== undefined) return undefined;
  return broken("currency", "invalid_currency", "is no ISO 4217 code in capitals");
}

/** An empty value is no problem here. */
export function oneOf(field: string, value: string, allowed: readonly string[]): FieldProblem | undefined {
  if (value === "" || allowed.includes(value)) return undefined;
  return broken(field, "invalid_value", `must be one of ${allowed.join(", ")}`);
}

export function paymentTypeRule(paymentType: string): FieldProblem | undefined {
  return oneOf("paymentType", paymentType, paymentTypes);
}

export function reqIdRule(field: "reqId" | "originalReqId", value: string): FieldProblem | undefined {
  return value === "" || isUuidV4(value) ? undefined : broken(field, "invalid_req_id", "is no UUID v4");
}

/** Neither PostgreSQL nor a strict JSON parser accepts NUL, and half of a surrogate pair has no UTF-8 form. */
export function isSendable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

export function textProblem(field: string, text: string): FieldProblem | undefined {
  if (isSendable(text)) return undefined;
  return broken(field, "invalid_text", "holds NUL or half of a surrogate pair, which no IPN can carry");
}

/** Replaces every character that cannot be sent by U+FFFD, in a text that must not be refused. */
export function replaceUnsendable(text: string): string {
  return isSendable(text) ? text : text.toWellFormed().replaceAll("\0", "\ufffd");
}

const merchantId = /(^|\.)(mid|merchantId)$/;
const transactionCertificate = /(^|\.)tc$/;
/** Eight bytes, one in 20,000 of which would pass as a card number. Digits with only a filler after them may be one. */
const cryptogram = /^(?=[0-9]*[A-F])(?![0-9]+F+$)[0-9A-F]{16}$/i;

/** The check for one field. The message never repeats the value. */
export function cardNumberProblem(field: string, text: string): FieldProblem | undefined {
  if (transactionCertificate.test(field) && cryptogram.test(text)) return undefined;
  const holds = merchantId.test(field) ? merchantIdHoldsCardNumber(text) : holdsCardNumber(text);
  if (!holds) return undefined;
  return broken(
    field,
    "card_number_in_clear",
    "holds what looks like a full card number, a card's security code, PIN or track",
  );
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const delimiterPattern = /[&\u0000-\u001f\u007f-\u009f]/;

/** The IPN fields filled by a command's field, if the names differ. */
const filledBy: Readonly<Record<string, readonly string[]>> = {
  mid: ["mid", "merchantId"],
  merchantId: ["mid", "merchantId"],
  callBackUrl: ["callbackUrl"],
  "card.number": ["cardNumber"],
  "card.scheme": ["cardScheme"],
  "card.aid": ["aid"],
  "card.swipeType": ["swipeType"],
  "card.holder": ["cardHolder"],
  "card.expiry": ["expDate"],
  "card.tc": ["tc"],
};

/**
 * A signed value that contains `&` or a control character: key=value pairs are joined with `&` without escaping, so two
 * different IPNs could have one signed string (section 5.1). With `whole` signing nothing is joined, and nothing is
 * refused.
 */
export function delimiterProblem(
  field: string,
  text: string,
  kind: IpnKind,
  signing: Signing,
): FieldProblem | undefined {
  if (signing.mode === "whole" || !delimiterPattern.test(text)) return undefined;
  const signed = signedFields(kind, signing);
  if (!(filledBy[field] ?? [field]).some((name) => signed.includes(name))) return undefined;
  return broken(field, "delimiter_in_signed_field", "is signed and holds & or a control character");
}
