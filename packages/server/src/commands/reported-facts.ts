import {
  cardSchemeFor,
  defaultPaymentType,
  ipnFields,
  type NotifiedCommand,
  notifiedCommands,
  type SettlementEntry,
} from "@paybell/contract";
import { type CompletionRequest, completionKind } from "./completion.ts";

/** A reported command's side of the IPN, by the names of its table; a system command has none, and is only recorded. */
export type ReportedFacts =
  | {
      readonly kind: "card";
      readonly command: Exclude<NotifiedCommand, "SETTLEMENT">;
      readonly voidsPreAuth?: boolean;
      readonly fields: Readonly<Record<string, string>>;
    }
  | {
      readonly kind: "settlement";
      readonly command: "SETTLEMENT";
      readonly fields: Readonly<Record<string, string>>;
      readonly settlementList: readonly SettlementEntry[];
    }
  | { readonly kind: "system"; readonly fields: Readonly<Record<string, string>> };

export interface ReportedAs {
  /** The transaction's: the switch's own where it gave one. */
  readonly id: string;
  /** The Void's original is known, and a PreAuth. */
  readonly voidsPreAuth?: boolean;
}

/**
 * The facts of a report that was accepted. Values stay as given; what follows from another field fills an unknown one.
 */
export function reportedFacts(completion: CompletionRequest, as: ReportedAs): ReportedFacts {
  const { command } = completion;
  const fields = { ...tableFields(completion), id: as.id };
  if (command === "SETTLEMENT") {
    return { kind: "settlement", command, fields, settlementList: completion.settlementList ?? [] };
  }
  const card = notifiedCommands.find((notified) => notified === command);
  if (card === undefined || card === "SETTLEMENT") return { kind: "system", fields };
  const facts = { kind: "card", command: card, fields: withDefaults(fields) } as const;
  return as.voidsPreAuth === true ? { ...facts, voidsPreAuth: true } : facts;
}

function tableFields(completion: CompletionRequest): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const { name, type } of ipnFields(completionKind(completion.command))) {
    const value = completion[name as keyof CompletionRequest];
    if (type === "string" && name !== "signature" && typeof value === "string" && value !== "") fields[name] = value;
  }
  return fields;
}

/** mid and merchantId mean the same (section 2.2), paymentType has a default there, a scheme follows from its AID. */
function withDefaults(fields: Readonly<Record<string, string>>): Record<string, string> {
  const { mid, merchantId, aid } = fields;
  const same = mid ?? merchantId;
  const scheme = aid === undefined ? "" : cardSchemeFor(aid);
  return {
    ...(same !== undefined && { mid: same, merchantId: same }),
    ...(scheme !== "" && { cardScheme: scheme }),
    paymentType: defaultPaymentType,
    ...fields,
  };
}
