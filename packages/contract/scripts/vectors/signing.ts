import {
  type FieldSet,
  type IpnKind,
  type Signing,
  sign,
  signedString,
  toWire,
  type WireNames,
} from "../../src/index.ts";
import { extensions, ipns, signingKey, signings } from "./material.ts";

export interface SigningVector {
  readonly name: string;
  readonly kind: IpnKind;
  readonly signing: Signing;
  /** Absent: the specification's. */
  readonly fields?: FieldSet;
  readonly wire: Readonly<Record<string, unknown>>;
  readonly signedString: string;
  readonly signature: string;
}

/** Every body under every agreement and both sets of names, and values that implementations often get wrong. */
export function signingVectors(): SigningVector[] {
  const regular = (["card", "settlement"] as const).flatMap((kind) =>
    (["table", "sample"] as const).flatMap((names) =>
      (["specification", "agreed", "whole"] as const).map((agreement) =>
        vector(`${kind} IPN, ${names} names, ${agreementNames[agreement]}`, kind, signings[agreement], {
          ...toWire(kind, ipns[kind], names),
        }),
      ),
    ),
  );
  return [...regular, ...oddVectors(), ...extendedVectors()];
}

const agreementNames = {
  specification: "the specification's signing order",
  agreed: "an agreed list",
  whole: "the whole IPN",
} as const;

function oddVectors(): SigningVector[] {
  const card = (changes: Record<string, unknown>, names: WireNames = "table") => ({
    ...toWire("card", ipns.card, names),
    ...changes,
  });
  const fields = signings.specification;
  return [
    vector("empty, null and missing values keep their key", "card", fields, {
      ...card({ approveCode: "", cardScheme: null }),
      traceNo: undefined,
    }),
    vector("values are signed as they stand, an & too", "card", fields, card({ merchantTransId: "a&amount=1" })),
    vector("values are signed as UTF-8", "card", fields, card({ merchantTransId: "đơn hàng ☕ 😀" })),
    vector("a cardScheme in mixed case is signed as sent", "card", fields, card({ cardScheme: "Visa" })),
    vector("a signature already there is never signed", "card", fields, card({ signature: "00" })),
    vector(
      "a signature already there is never signed, the whole IPN",
      "card",
      signings.whole,
      card({ signature: "00" }),
    ),
    vector("keys are ordered by UTF-16 code units, the whole IPN", "card", signings.whole, {
      ...card({}),
      "😀": "first of the two",
      "\ufb33": "second",
      "10": "a number-like key",
      "9": "another",
    }),
  ];
}

function extendedVectors(): SigningVector[] {
  return (["card", "settlement"] as const).flatMap((kind) =>
    (["specification", "agreed", "whole"] as const).map((agreement) => {
      const wire = toWire(kind, { ...ipns[kind], ...extensions[kind] }, "table", "extended");
      return vector(`extended ${kind} IPN, ${agreementNames[agreement]}`, kind, signings[agreement], wire, "extended");
    }),
  );
}

function vector(
  name: string,
  kind: IpnKind,
  signing: Signing,
  wire: Record<string, unknown>,
  fields?: FieldSet,
): SigningVector {
  const text = signedString(kind, wire, signing, fields);
  return {
    name,
    kind,
    signing,
    ...(fields && { fields }),
    wire,
    signedString: text,
    signature: sign(text, signingKey("sk-1")),
  };
}
