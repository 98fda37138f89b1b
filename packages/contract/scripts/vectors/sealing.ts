import {
  type FieldSet,
  fromWire,
  type IpnKind,
  type Sealing,
  type Signing,
  seal,
  sealings,
  sign,
  signedString,
  toWire,
  type WireNames,
} from "../../src/index.ts";
import {
  type EncryptionKeyId,
  encryptionKey,
  fixedIv,
  ipns,
  type SigningKeyId,
  signingKey,
  signings,
} from "./material.ts";

/** The settings for opening one message: ids of the file's keys, in the order in which they are tried. */
export interface WrittenAgreement {
  readonly sealing: Sealing;
  readonly signing: Signing;
  readonly encryptionKeys: readonly EncryptionKeyId[];
  readonly signingKeys: readonly SigningKeyId[];
  /** The receiver's setting; default the specification's. */
  readonly fields?: readonly FieldSet[];
}

export interface SealingVector extends WrittenAgreement {
  readonly name: string;
  readonly kind: IpnKind;
  readonly keyId: EncryptionKeyId;
  readonly ivHex: string;
  readonly plain: string;
  readonly data: string;
  readonly body: string;
  /** The IPN that the receiver gets, by the tables' names. */
  readonly ipn: unknown;
}

export const usual: WrittenAgreement = {
  sealing: { cipher: "aes-256-gcm", encoding: "base64" },
  signing: signings.specification,
  encryptionKeys: ["ek-1"],
  signingKeys: ["sk-1"],
};

/** A signed IPN as JSON text. */
export function signedJson(
  kind: IpnKind,
  wire: Record<string, unknown>,
  signing: Signing,
  key: SigningKeyId = "sk-1",
  fields: FieldSet = "specification",
) {
  return JSON.stringify({ ...wire, signature: sign(signedString(kind, wire, signing, fields), signingKey(key)) });
}

/** Complete notifications: both bodies in every cipher and encoding, then both sets of names, then a rotation. */
export function sealingVectors(): SealingVector[] {
  const regular = (["card", "settlement"] as const).flatMap((kind) =>
    sealings.map((sealing) => {
      const encoded = sealing.cipher === "jwe" ? "" : `, ${sealing.encoding}`;
      return vector(`${kind} IPN, ${sealing.cipher}${encoded}`, kind, { ...usual, sealing });
    }),
  );
  const rotated = { encryptionKeys: ["ek-1", "ek-2"], signingKeys: ["sk-1", "sk-2"] } as const;
  return [
    ...regular,
    vector(
      "card IPN, the sample's names, the whole IPN signed",
      "card",
      { ...usual, signing: signings.whole },
      "sample",
    ),
    vector(
      "settlement IPN, the sample's names, an agreed list",
      "settlement",
      { ...usual, signing: signings.agreed },
      "sample",
    ),
    ...(["aes-256-gcm", "aes-256-cbc", "jwe"] as const).map((cipher) =>
      vector(
        `card IPN, ${cipher}, sealed and signed with the second keys while both are accepted`,
        "card",
        { ...usual, ...rotated, sealing: { cipher, encoding: "base64" } },
        "table",
        ["ek-2", "sk-2"],
      ),
    ),
  ];
}

function vector(
  name: string,
  kind: IpnKind,
  agreement: WrittenAgreement,
  names: WireNames = "table",
  [keyId, signingKeyId]: readonly [EncryptionKeyId, SigningKeyId] = ["ek-1", "sk-1"],
): SealingVector {
  const plain = signedJson(kind, toWire(kind, ipns[kind], names), agreement.signing, signingKeyId);
  const data = seal(plain, agreement.sealing, encryptionKey(keyId), fixedIv);
  const ivHex = fixedIv(agreement.sealing.cipher === "aes-256-cbc" ? 16 : 12).toString("hex");
  return {
    name,
    kind,
    ...agreement,
    keyId,
    ivHex,
    plain,
    data,
    body: JSON.stringify({ data }),
    ipn: fromWire(plain).ipn,
  };
}
