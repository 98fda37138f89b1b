import { type Signing, signedFields } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";

/** A terminal as it is registered. Empty texts are unknown. */
export interface Terminal {
  readonly tid: string;
  readonly mid: string;
  readonly merchantId: string;
  readonly merchantName: string;
  readonly merchantAddress: string;
  readonly deviceId: string;
  readonly appName: string;
}

/** What a registration says of a terminal; the tid is in its path. */
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
  };
}

/** Everything wrong with a terminal, all at once. Which fields are signed follows from the partner's agreement. */
export function terminalProblems(terminal: Terminal, signing: Signing): FieldProblem[] {
  // Whole IPNs are signed as canonical JSON, in which nothing is ambiguous.
  const signed =
    signing.mode === "whole"
      ? new Set<string>()
      : new Set([...signedFields("card", signing), ...signedFields("settlement", signing)]);
  return Object.entries(terminalLengthsMax).flatMap(([field, lengthMax]): FieldProblem[] => {
    const value = terminal[field as keyof Terminal];
    if (value === "" && (field === "tid" || field === "mid")) {
      return [{ field, code: "missing_field", message: `${field} must not be empty.` }];
    }
    if (value.length > lengthMax)
      return [{ field, code: "too_long", message: `${field} has over ${lengthMax} characters.` }];
    if (!value.isWellFormed() || value.includes("\0")) {
      return [{ field, code: "invalid_text", message: `${field} holds NUL or half of a surrogate pair.` }];
    }
    if (signed.has(field) && /[&\p{Cc}]/u.test(value)) {
      return [
        {
          field,
          code: "delimiter_in_signed_field",
          message: `${field} is signed for this partner and holds & or a control character.`,
        },
      ];
    }
    return [];
  });
}
