import {
  cardSchemeFor,
  defaultPaymentType,
  type IpnKind,
  ipnFields,
  notifiedCommands,
  type SettlementEntry,
} from "@paybell/contract";
import type { CardCommandFacts } from "./complete-card.ts";
import { type CompletionRequest, completionKind } from "./completion.ts";

/** The IPN facts of a reported command, by the names of its table; a system command has none, and is only recorded. */
export type ReportedFacts =
  | CardCommandFacts
  | {
      readonly kind: "settlement";
      readonly command: "SETTLEMENT";
      readonly fields: Readonly<Record<string, string>>;
      readonly settlementList: readonly SettlementEntry[];
      readonly currency?: string;
    }
  | { readonly kind: "system"; readonly fields: Readonly<Record<string, string>> };

export interface ReportedAs {
  /** The transaction's id: the switch's own if it assigned one. */
  readonly id: string;
  /** The Void's original is known to be a PreAuth. */
  readonly voidsPreAuth?: boolean;
}

/** The facts of an accepted report. Values stay as given; unknown ones are derived from other fields where possible. */
export function reportedFacts(completion: CompletionRequest, as: ReportedAs): ReportedFacts {
  const { command } = completion;
  if (command === "SETTLEMENT") {
    const { settlementList = [], currency = "" } = completion;
    const facts = { kind: "settlement", command, fields: settlementFields(completion, as.id), settlementList } as const;
    return currency === "" ? facts : { ...facts, currency };
  }
  const card = notifiedCommands.find((notified) => notified === command);
  if (card === undefined || card === "SETTLEMENT") return { kind: "system", fields: tableFields(completion, as.id) };
  const facts = { kind: "card", command: card, fields: cardFields(completion, as.id) } as const;
  return as.voidsPreAuth === true ? { ...facts, voidsPreAuth: true } : facts;
}

/**
 * The string fields of its table that a report may have, in its order. Cached, because thousands of reports per second
 * use them.
 */
const textNames: Readonly<Record<IpnKind, readonly (keyof CompletionRequest)[]>> = {
  card: textNamesOf("card"),
  settlement: textNamesOf("settlement"),
};

function textNamesOf(kind: IpnKind): readonly (keyof CompletionRequest)[] {
  const texts = ipnFields(kind).filter(({ name, type }) => type === "string" && name !== "signature" && name !== "id");
  return texts.map(({ name }) => name as keyof CompletionRequest);
}

function tableFields(completion: CompletionRequest, id: string): Record<string, string> {
  const fields: Record<string, string> = { id };
  for (const name of textNames[completionKind(completion.command)]) {
    const value = completion[name];
    if (typeof value === "string" && value !== "") fields[name] = value;
  }
  return fields;
}

/** quantity is the number of Sales minus that of Voids (section 2.3); without Voids that number is zero. */
function settlementFields(completion: CompletionRequest, id: string): Record<string, string> {
  const fields = tableFields(completion, id);
  const { saleQuantity, voidQuantity } = fields;
  if (voidQuantity === "0") fields["voidTotalAmount"] ??= "0";
  if (saleQuantity !== undefined && voidQuantity !== undefined) {
    fields["quantity"] ??= String(Number(saleQuantity) - Number(voidQuantity));
  }
  return fields;
}

/**
 * mid and merchantId mean the same (section 2.2), paymentType has a default there, and a scheme follows from its AID.
 */
function cardFields(completion: CompletionRequest, id: string): Record<string, string> {
  const fields = tableFields(completion, id);
  const same = fields["mid"] ?? fields["merchantId"];
  if (same !== undefined) {
    fields["mid"] ??= same;
    fields["merchantId"] ??= same;
  }
  fields["paymentType"] ??= defaultPaymentType;
  const { aid } = fields;
  if (aid !== undefined && fields["cardScheme"] === undefined) {
    const scheme = cardSchemeFor(aid);
    if (scheme !== "") fields["cardScheme"] = scheme;
  }
  return fields;
}
