import { type Signing, signedFields } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";

/** A registered terminal. Empty strings are unknown. */
export interface Terminal {
  readonly tid: string;
  readonly mid: string;
  readonly merchantId: string;
  readonly merchantName: string;
  readonly merchantAddress: string;
  readonly deviceId: string;
  readonly appName: string;
  /** The registered name of its acquirer; empty: that of the settings. */
  readonly acquirer: string;
}

/** The input of a terminal's registration; the tid is in the path. */
export type TerminalInput = Pick<Terminal, "mid"> & Partial<Omit<Terminal, "tid" | "mid">>;

/** In characters (UTF-16 code units). */
export const terminalLengthsMax: Readonly<Record<keyof Terminal, number>> = {
  tid: 16,
  mid: 20,
  merchantId: 64,
  merchantName: 128,
  merchantAddress: 256,
  deviceId: 64,
  appName: 64,
  acquirer: 32,
};

export function completeTerminal(tid: string, input: TerminalInput): Terminal {
  return {
    tid,
    mid: input.mid,
    merchantId: input.merchantId ?? "",
    merchantName: input.merchantName ?? "",
    merchantAddress: input.merchantAddress ?? "",
    deviceId: input.deviceId ?? "",
    appName: input.appName ?? "",
    acquirer: input.acquirer ?? "",
  };
}

/** Everything wrong with a terminal's registration. `signing` determines which fields are signed. */
export function terminalProblems(tid: string, input: unknown, signing: Signing): FieldProblem[] {
  const given: Readonly<Record<string, unknown>> = { mid: "", ...(input as Partial<TerminalInput>) };
  const signed = signedOf(signing);
  // The tid is in the path: in the body it would be a second one.
  const { tid: _, ...bodyLengthsMax } = terminalLengthsMax;
  return [["tid", tid] as const, ...Object.entries(given)].flatMap(([field, value], at): FieldProblem[] => {
    const problem = (code: FieldProblem["code"], rule: string) => [{ field, code, message: `${field} ${rule}.` }];
    const known: Readonly<Record<string, number>> = at === 0 ? terminalLengthsMax : bodyLengthsMax;
    const lengthMax = Object.hasOwn(known, field) ? known[field] : undefined;
    if (lengthMax === undefined) return problem("unknown_field", "is not known here");
    if (value === undefined) return [];
    if (typeof value !== "string") return problem("wrong_type", "must be a string");
    if (value === "" && (field === "tid" || field === "mid")) return problem("missing_field", "must not be empty");
    if (value.length > lengthMax) return problem("too_long", `has over ${lengthMax} characters`);
    if (!value.isWellFormed() || value.includes("\0")) {
      return problem("invalid_text", "holds NUL or half of a surrogate pair");
    }
    if (signed.has(field) && /[&\p{Cc}]/u.test(value)) {
      return problem("delimiter_in_signed_field", "is signed for this partner and holds & or a control character");
    }
    return [];
  });
}

function signedOf(signing: Signing): ReadonlySet<string> {
  // Whole IPNs are signed as canonical JSON, which is unambiguous.
  if (signing.mode === "whole") return new Set();
  return new Set([...signedFields("card", signing), ...signedFields("settlement", signing)]);
}
