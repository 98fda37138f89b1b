import fc from "fast-check";

/** A terminal's next step in a random sequence; `at` counts back to the message that it refers to. */
export interface TillStep {
  readonly kind:
    | "sale"
    | "preAuth"
    | "complete"
    | "void"
    | "refund"
    | "reverse"
    | "reverseUnseen"
    | "repeat"
    | "settle";
  readonly till: 0 | 1;
  readonly at: number;
  readonly amountMinor: bigint;
}

/** One arbitrary for each property of a step. Amounts are small, so that they are met again. */
export const tillStep = {
  kind: fc.constantFrom(
    ...(["sale", "sale", "preAuth", "complete", "void", "void", "refund", "refund"] as const),
    ...(["reverse", "reverseUnseen", "repeat", "settle"] as const),
  ),
  till: fc.constantFrom(0, 1),
  at: fc.nat(6),
  amountMinor: fc.bigInt(1n, 5n),
} as const;
