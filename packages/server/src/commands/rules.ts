import { paymentTypes, type Signing } from "@paybell/contract";
import type { ErrorCode, FieldProblem } from "../errors.ts";
import { amountOrZeroProblem, amountProblem } from "./amount.ts";
import type { TextField } from "./field.ts";

/** The context in which a request or a report is checked. */
export interface RuleContext {
  /** The partner's setting: it determines which fields are signed. */
  readonly signing: Signing;
  /** Device ids that the operator registered for the partner: known not to be card numbers. */
  readonly registeredDeviceIds: ReadonlySet<string>;
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

export function paymentTypeRule(paymentType: string): FieldProblem | undefined {
  if (paymentType === "" || paymentTypes.some((known) => known === paymentType)) return undefined;
  return broken("paymentType", "invalid_value", `must be one of ${paymentTypes.join(", ")}`);
}
