import type { Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import {
  approvedCode,
  malfunctionCode,
  noAnswerCode,
  notSentCode,
  partialCode,
  responseCodePattern,
} from "../response-codes.ts";
import { broken, delimiterProblem, replaceUnsendable } from "./requests/rules.ts";

export interface AcquirerReply {
  /** ISO 8583 field 39. */
  readonly responseCode: string;
  /** Field 38. */
  readonly approveCode: string;
  /** Field 37. */
  readonly refId: string;
  /** TC of the chip; empty where the acquirer returns none. */
  readonly tc: string;
  /** Approved for this part of the amount (code 10), and the acquirer's profile accepts that. */
  readonly approvedMinor?: bigint;
  /** The issuer's answer to the chip (field 55: ARPC, scripts), for the POS: returned to the caller, never stored. */
  readonly emv?: string;
  /** It does not say whether it approves: no valid code, or an approval code beside a code that is in no list. */
  readonly isAmbiguous?: boolean;
}

export type AcquirerOutcome =
  | {
      readonly kind: "answered";
      readonly answer: AcquirerReply;
      readonly approvals: ReadonlySet<string>;
      /** The command accepts an approval of a part of its amount. */
      readonly allowPartial?: boolean;
    }
  /** It was asked, or may have been, and did not answer in time. */
  | { readonly kind: "no_answer" }
  /** The message was certainly not sent. */
  | { readonly kind: "not_sent" }
  /** The asking process is dead, and it is not known whether an answer arrived. */
  | { readonly kind: "instance_gone" };

/** The meaning of an outcome for the transaction and for the money. */
export interface Judgement {
  readonly state: "SUCCESS" | "ERROR";
  readonly isoResponseCode: string;
  /** The money may have moved, and must not have: a Reversal follows. */
  readonly reverse: boolean;
  /** The part of the amount that was approved; undefined: all of it. */
  readonly approvedMinor?: bigint;
  /** Empty without an answer. */
  readonly answer: Omit<AcquirerReply, "responseCode" | "approvedMinor" | "emv" | "isAmbiguous">;
  /** Irregularities of the answer: none stops the IPN, all are reported to the operator. */
  readonly warnings: readonly FieldProblem[];
}

const silence = { approveCode: "", refId: "", tc: "" };

/**
 * Only 00 is success, and an approved part if the command and the acquirer's profile accept it. An approval under any
 * other code, and what may be one, is reversed: the partner gets ERROR, so nobody may be charged.
 */
export function judge(outcome: AcquirerOutcome, signing: Signing): Judgement {
  switch (outcome.kind) {
    case "answered":
      return judgeAnswer(accepted(outcome), outcome.approvals, signing);
    case "no_answer":
      return failed(noAnswerCode, true);
    case "not_sent":
      return failed(notSentCode, false);
    case "instance_gone":
      return failed(malfunctionCode, true);
  }
}

function failed(isoResponseCode: string, reverse: boolean, warnings: readonly FieldProblem[] = []): Judgement {
  return { state: "ERROR", isoResponseCode, reverse, answer: silence, warnings };
}

/** An accepted part is a success like any other. */
function accepted({ answer, allowPartial }: Extract<AcquirerOutcome, { readonly kind: "answered" }>): AcquirerReply {
  const { approvedMinor: _, ...all } = answer;
  if (allowPartial !== true || answer.approvedMinor === undefined || answer.responseCode !== partialCode) return all;
  return { ...answer, responseCode: approvedCode };
}

function judgeAnswer(answer: AcquirerReply, approvals: ReadonlySet<string>, signing: Signing): Judgement {
  const { responseCode, approvedMinor } = answer;
  if (!responseCodePattern.test(responseCode)) {
    // Its meaning is unknown. Reversing a declined one does no harm; not reversing an approval does.
    return failed(malfunctionCode, true, [broken("isoResponseCode", "invalid_value", "from the acquirer is no code")]);
  }
  const success = responseCode === approvedCode;
  const texts = {
    approveCode: replaceUnsendable(answer.approveCode),
    refId: replaceUnsendable(answer.refId),
    tc: replaceUnsendable(answer.tc),
  };
  return {
    state: success ? "SUCCESS" : "ERROR",
    isoResponseCode: responseCode,
    reverse: !success && (approvals.has(responseCode) || answer.isAmbiguous === true),
    ...(approvedMinor !== undefined && { approvedMinor }),
    answer: texts,
    warnings: answerWarnings(texts, success ? signing : undefined),
  };
}

/** @param signing undefined: the IPN has none of these values, so none of them is signed */
function answerWarnings(texts: Judgement["answer"], signing: Signing | undefined): FieldProblem[] {
  const names = ["approveCode", "refId", "tc"] as const;
  return names.flatMap((name) => {
    // A link to a host has replaced them already.
    const replaced = texts[name].includes("\ufffd")
      ? broken(name, "invalid_text", "from the acquirer held NUL or half of a surrogate pair, replaced by U+FFFD")
      : undefined;
    const delimiter = signing && delimiterProblem(name, texts[name], "card", signing);
    return [replaced, delimiter].filter((problem) => problem !== undefined);
  });
}
