import { Buffer } from "node:buffer";
import { createCipheriv } from "node:crypto";
import { type NotAuthenticReason, seal, toWire } from "../../src/index.ts";
import {
  encryptionKey,
  extensions,
  fixedIv,
  ipns,
  signedJson,
  signings,
  usual,
  type WrittenAgreement,
} from "./material.ts";

export interface RefusedVector extends WrittenAgreement {
  readonly name: string;
  /** For readers. A receiver gives the same answer to all of them. */
  readonly why: string;
  /** The reason that our implementation reports to the owner of the keys. */
  readonly reason: NotAuthenticReason;
  readonly body: string;
}

type Case = readonly [name: string, why: string, body: string, agreement?: WrittenAgreement];

const cbc: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-cbc", encoding: "base64" } };
const jwe: WrittenAgreement = { ...usual, sealing: { cipher: "jwe", encoding: "base64" } };
const hex: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-gcm", encoding: "hex" } };
const base64url: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-gcm", encoding: "base64url" } };
const whole: WrittenAgreement = { ...usual, signing: signings.whole };

const plain = signedJson("card", toWire("card", ipns.card, "table"), usual.signing);
const list = signedJson("settlement", toWire("settlement", ipns.settlement, "table"), usual.signing);

const signedWhole = signedJson("card", toWire("card", ipns.card, "table"), whole.signing);
const extended = signedJson(
  "card",
  toWire("card", { ...ipns.card, ...extensions.card }, "table", "extended"),
  usual.signing,
  "sk-1",
  "extended",
);

function sealed(text: string, { sealing } = usual): string {
  return seal(text, sealing, encryptionKey("ek-1"), fixedIv);
}

function posted(data: unknown): string {
  return JSON.stringify({ data });
}

/** A POST of a signed IPN that was changed before it was encrypted. */
function changed(text: string, from: string | RegExp, to: string): string {
  return posted(sealed(text.replace(from, to)));
}

/** This length leaves one byte over, so that the base64 ends in == (JSON may end in white space). */
const padded = sealed(plain + " ".repeat((3 + 1 - ((12 + Buffer.byteLength(plain) + 16) % 3)) % 3));

/** A POST of a JWE with another header, and a tag that is valid for that header. */
function jweWith(header: object): string {
  const header64 = Buffer.from(JSON.stringify(header)).toString("base64url");
  const cipher = createCipheriv("aes-256-gcm", encryptionKey("ek-1").key, fixedIv(12)).setAAD(Buffer.from(header64));
  const content = Buffer.concat([cipher.update(plain), cipher.final()]);
  const parts = [fixedIv(12), content, cipher.getAuthTag()].map((part) => part.toString("base64url"));
  return posted([header64, "", ...parts].join("."));
}

function gcm(bytes: Buffer): string {
  const cipher = createCipheriv("aes-256-gcm", encryptionKey("ek-1").key, fixedIv(12));
  return Buffer.concat([fixedIv(12), cipher.update(bytes), cipher.final(), cipher.getAuthTag()]).toString("base64");
}

function flipped(data: string, at: number): string {
  const bytes = Buffer.from(data, "base64");
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return posted(bytes.toString("base64"));
}

const inQuotes = JSON.stringify(sealed(plain));
const header = { alg: "dir", enc: "A256GCM", kid: "ek-1" };
const jweParts = sealed(plain, jwe).split(".");
const twice = "a key appears twice";
const gcmFails = "AES-GCM does not open";
const twoNames = "one field under two of its names";
const settlementList = /"settlementList":\[.*\]/;

/** The cases by the reason that our implementation reports, in the order of the file. */
const cases: readonly (readonly [NotAuthenticReason, readonly Case[]])[] = [
  [
    "envelope",
    [
      ["no JSON", "the body is not JSON", "data=abc"],
      ["another root", "the body is a list", `[${posted(sealed(plain))}]`],
      ["no data", "the field data is missing", "{}"],
      ["data is no string", "data is a number", '{"data":7}'],
      ["data twice", twice, `{"data":"AAAA","data":${inQuotes}}`],
      ["data twice, once escaped", twice, `{"d\\u0061ta":"","data":${inQuotes}}`],
      ["a field beside data", "section 2.1 knows one field", `{"data":${inQuotes},"kind":"card"}`],
    ],
  ],
  [
    "encoding",
    [
      ["empty data", "too short for an IV and a tag", posted("")],
      ["base64 with a line break", "white space is not base64", posted(sealed(plain).replace(/^.{76}/, "$&\n"))],
      ["base64 without its padding", "padding must be canonical", posted(padded.replace(/={1,2}$/, ""))],
      ["base64 with stray bits", "the bits that are left over must be zero", posted(padded.replace(/.==$/, "B=="))],
      ["base64url where base64 is agreed", "another alphabet", posted(sealed(plain, base64url))],
      ["base64 where base64url is agreed", "another alphabet", posted(sealed(plain)), base64url],
      ["hexadecimal with half a byte", "an odd number of digits", posted(sealed(plain, hex).slice(0, -1)), hex],
      [
        "hexadecimal with a character whose low byte is a digit",
        "U+0130 is no 0, though its low byte is",
        posted(sealed(plain, hex).replace("0", "\u0130")),
        hex,
      ],
      ["hexadecimal with a foreign digit", "g is no digit", posted(`${sealed(plain, hex).slice(0, -1)}g`), hex],
      [
        "AES-CBC with half a block",
        "ciphertext must be whole blocks",
        posted(Buffer.from(sealed(plain, cbc), "base64").subarray(0, -8).toString("base64")),
        cbc,
      ],
      ["JWE of four parts", "a compact JWE has five", posted(jweParts.slice(0, 4).join(".")), jwe],
      ["JWE with an encrypted key", "with dir that part is empty", posted(jweParts.with(1, "AAAA").join(".")), jwe],
      ["JWE with a short tag", "the tag has 16 bytes", posted(sealed(plain, jwe).slice(0, -6)), jwe],
    ],
  ],
  [
    "jwe_header",
    [
      ["JWE, zip", "compression is refused", jweWith({ ...header, zip: "DEF" }), jwe],
      ["JWE, another alg", "alg comes from configuration", jweWith({ ...header, alg: "A256KW" }), jwe],
      ["JWE, another enc", "enc comes from configuration", jweWith({ ...header, enc: "A128GCM" }), jwe],
      ["JWE, crit", "an extension that is not understood", jweWith({ ...header, crit: ["exp"] }), jwe],
      ["JWE, no kid", "the key must be named", jweWith({ alg: "dir", enc: "A256GCM" }), jwe],
    ],
  ],
  ["unknown_key", [["JWE, unknown kid", "no key has this id", jweWith({ ...header, kid: "ek-9" }), jwe]]],
  [
    "decryption",
    [
      ["one changed bit of the IV", gcmFails, flipped(sealed(plain), 0)],
      ["one changed bit of the ciphertext", gcmFails, flipped(sealed(plain), 40)],
      ["one changed bit of the tag", gcmFails, flipped(sealed(plain), Buffer.from(sealed(plain), "base64").length - 1)],
      [
        "another key",
        "sealed with a key that is not accepted",
        posted(sealed(plain)),
        { ...usual, encryptionKeys: ["ek-2"] },
      ],
      ["another cipher", "AES-CBC where AES-GCM is agreed", posted(sealed(plain, cbc))],
    ],
  ],
  [
    "not_json",
    [
      [
        "AES-CBC, one changed bit of the IV",
        "the JSON's first byte changes with it",
        flipped(sealed(plain, cbc), 0),
        cbc,
      ],
    ],
  ],
  ["not_text", [["not UTF-8", "a byte that UTF-8 does not have", posted(gcm(Buffer.from('{"id":"\xff"}', "latin1")))]]],
  [
    "not_json",
    [
      ["a byte order mark", "JSON begins without one", posted(sealed(`\ufeff${plain}`))],
      ["no JSON inside", "the content is not JSON", posted(sealed("aid=A0&amount=1"))],
      ["a list inside", "the content is no object", posted(sealed(`[${plain}]`))],
      ["a lone surrogate", "it has no UTF-8 form, so it cannot be signed", changed(plain, "ORDER-42", "\\ud800")],
    ],
  ],
  [
    "duplicate_key",
    [
      ["a key twice", twice, changed(plain, "{", '{"amount":"1",')],
      ["a key twice, once escaped", "\\u0061mount is amount", changed(plain, "{", '{"\\u0061mount":"1",')],
      ["a key twice, white space before the colon", twice, changed(plain, "{", '{"amount" :"1",')],
      ["a key twice in settlementList", twice, changed(list, '{"reqId"', '{"refNo":"1","reqId"')],
      ["a key twice that we do not know", twice, changed(plain, "{", '{"later":"1","later":"1",')],
      ["an empty key twice", "the empty string is a key, too", changed(plain, "{", '{"":"1","":"1",')],
    ],
  ],
  [
    "two_names",
    [
      ["deviceId and device_id", twoNames, changed(plain, "{", '{"device_id":"PB0012345678",')],
      ["deviceId and deviceID", twoNames, changed(list, "{", '{"deviceID":"PB0012345678",')],
      ["reqId and reqID in settlementList", twoNames, changed(list, '{"reqId"', '{"reqID":"1","reqId"')],
    ],
  ],
  [
    "wrong_type",
    [
      ["a number", "every scalar is a string", changed(plain, '"amount":"150000"', '"amount":150000')],
      ["null", "every scalar is a string", changed(plain, '"tid":""', '"tid":null')],
      ["a list for a scalar", "amount is a string", changed(plain, '"amount":"150000"', '"amount":["150000"]')],
      [
        "settlementList is no list",
        "settlementList is a list of objects",
        changed(list, settlementList, '"settlementList":""'),
      ],
      [
        "settlementList of strings",
        "settlementList is a list of objects",
        changed(list, settlementList, '"settlementList":["412345678901"]'),
      ],
    ],
  ],
  [
    "signature",
    [
      ["a changed amount", "amount is signed", changed(plain, '"amount":"150000"', '"amount":"150001"')],
      ["a changed character anywhere", "the whole IPN is signed", changed(signedWhole, "POS", "Pos"), whole],
      ["no signature", "the signature is missing", posted(sealed(JSON.stringify(toWire("card", ipns.card, "table"))))],
      [
        "an empty signature",
        "64 hexadecimal digits are expected",
        changed(plain, /"signature":"\w+"/, '"signature":""'),
      ],
      [
        "half a signature",
        "64 hexadecimal digits are expected",
        changed(plain, /"signature":"(\w{32})\w+"/, '"signature":"$1"'),
      ],
      [
        "another signing key",
        "signed with a key that is not accepted",
        posted(sealed(plain)),
        { ...usual, signingKeys: ["sk-2"] },
      ],
      [
        "another agreement",
        "signed in the specification's order where the whole IPN is agreed",
        posted(sealed(plain)),
        whole,
      ],
      [
        "an extended IPN where the specification's fields are agreed",
        "its signature covers more fields",
        posted(sealed(extended)),
      ],
      [
        "the specification's fields where the extended ones are agreed",
        "its signature covers fewer fields",
        posted(sealed(plain)),
        { ...usual, fields: ["extended"] },
      ],
    ],
  ],
];

/** Bodies that a receiver must refuse, all with the same answer. */
export function refusedVectors(): RefusedVector[] {
  return cases.flatMap(([reason, those]) =>
    those.map(([name, why, body, agreement = usual]) => ({ name, why, reason, ...agreement, body })),
  );
}
