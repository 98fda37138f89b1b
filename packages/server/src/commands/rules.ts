import { paymentTypes, type Signing } from "@paybell/contract";
import type { ErrorCode, FieldProblem } from "../errors.ts";
import { amountOrZeroProblem, amountProblem } from "./amount.ts";
import type { TextField } from "./field.ts";

/** What a request or a report is judged against beside itself. */
export interface CheckContext {
  /** The partner's: it decides which fields are signed. */
  readonly signing: Signing;
  /** Device ids that the operator registered for the partner: known not to be card numbers. */
  readonly registeredDeviceIds: ReadonlySet<string>;
}

/** One rule of one field that is broken; `rule` goes on from the field's name. Never repeats the value. */
export function broken(field: string, code: ErrorCode, rule: string): FieldProblem {
  return { field, code, message: `${field} ${rule}.` };
}

/** What the shape counts in characters, bounded here in bytes. */
export function bytesProblem(path: string, field: TextField, value: string): FieldProblem | undefined {
  const { maxBytes } = field;
  if (maxBytes === undefined || value.length * 3 <= maxBytes) return undefined;
  const bytes = Buffer.byteLength(value, "utf8");
  return bytes <= maxBytes ? undefined : broken(path, "too_long", `may have at most ${maxBytes} bytes, found ${bytes}`);
}

/** `decimals` undefined: the currency is not known here, and the most that any has are allowed. */
export function amountRule(amount: string, decimals: number | undefined): FieldProblem | undefined {
  const found = amountProblem(amount, decimals);
  return found === undefined ? undefined : broken("amount", "invalid_amount", found);
}

/** The same for what may be zero. */
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
