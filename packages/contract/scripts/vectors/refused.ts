import { Buffer } from "node:buffer";
import { createCipheriv } from "node:crypto";
import { type NotAuthenticReason, seal, toWire } from "../../src/index.ts";
import { encryptionKey, fixedIv, ipns, signings } from "./material.ts";
import { signedJson, usual, type WrittenAgreement } from "./sealing.ts";

export interface RefusedVector extends WrittenAgreement {
  readonly name: string;
  /** For readers. A receiver gives the same answer to all of them. */
  readonly why: string;
  /** The reason that our implementation reports to the owner of the keys. */
  readonly reason: NotAuthenticReason;
  readonly body: string;
}

type Case = readonly [name: string, why: string, reason: NotAuthenticReason, body: string, WrittenAgreement?];

const cbc: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-cbc", encoding: "base64" } };
const jwe: WrittenAgreement = { ...usual, sealing: { cipher: "jwe", encoding: "base64" } };
const hex: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-gcm", encoding: "hex" } };
const base64url: WrittenAgreement = { ...usual, sealing: { cipher: "aes-256-gcm", encoding: "base64url" } };
const whole: WrittenAgreement = { ...usual, signing: signings.whole };

const plain = signedJson("card", toWire("card", ipns.card, "table"), usual.signing);

function sealed(text: string, { sealing } = usual): string {
  return seal(text, sealing, encryptionKey("ek-1"), fixedIv);
}

/** This length leaves one byte over, so that the base64 ends in == (JSON may end in white space). */
const padded = sealed(plain + " ".repeat((3 + 1 - ((12 + Buffer.byteLength(plain) + 16) % 3)) % 3));

function posted(data: unknown): string {
  return JSON.stringify({ data });
}

/** A JWE with another header, and a tag that is valid for that header. */
function jweWith(header: object): string {
  const header64 = Buffer.from(JSON.stringify(header)).toString("base64url");
  const cipher = createCipheriv("aes-256-gcm", encryptionKey("ek-1").key, fixedIv(12)).setAAD(Buffer.from(header64));
  const content = Buffer.concat([cipher.update(plain), cipher.final()]);
  return [
    header64,
    "",
    fixedIv(12).toString("base64url"),
    content.toString("base64url"),
    cipher.getAuthTag().toString("base64url"),
  ].join(".");
}

function gcm(bytes: Buffer): string {
  const cipher = createCipheriv("aes-256-gcm", encryptionKey("ek-1").key, fixedIv(12));
  return Buffer.concat([fixedIv(12), cipher.update(bytes), cipher.final(), cipher.getAuthTag()]).toString("base64");
}

function flipped(data: string, at: number): string {
  const bytes = Buffer.from(data, "base64");
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes.toString("base64");
}

const envelopes: readonly Case[] = [
  ["no JSON", "the body is not JSON", "envelope", "data=abc"],
  ["another root", "the body is a list", "envelope", posted(sealed(plain)).replace(/^(.*)$/, "[$1]")],
  ["no data", "the field data is missing", "envelope", "{}"],
  ["data is no string", "data is a number", "envelope", '{"data":7}'],
  ["data twice", "a key appears twice", "envelope", `{"data":"AAAA","data":${JSON.stringify(sealed(plain))}}`],
  [
    "data twice, once escaped",
    "a key appears twice",
    "envelope",
    `{"d\\u0061ta":"","data":${JSON.stringify(sealed(plain))}}`,
  ],
  [
    "a field beside data",
    "section 2.1 knows one field",
    "envelope",
    JSON.stringify({ data: sealed(plain), kind: "card" }),
  ],
];

const encodings: readonly Case[] = [
  ["empty data", "too short for an IV and a tag", "encoding", posted("")],
  [
    "base64 with a line break",
    "white space is not base64",
    "encoding",
    posted(`${sealed(plain).slice(0, 76)}\n${sealed(plain).slice(76)}`),
  ],
  ["base64 without its padding", "padding must be canonical", "encoding", posted(padded.replace(/={1,2}$/, ""))],
  [
    "base64 with stray bits",
    "the bits that are left over must be zero",
    "encoding",
    posted(padded.replace(/.==$/, "B==")),
  ],
  [
    "base64url where base64 is agreed",
    "another alphabet",
    "encoding",
    posted(seal(plain, base64url.sealing, encryptionKey("ek-1"), fixedIv)),
  ],
  ["base64 where base64url is agreed", "another alphabet", "encoding", posted(sealed(plain)), base64url],
  ["hexadecimal with half a byte", "an odd number of digits", "encoding", posted(sealed(plain, hex).slice(0, -1)), hex],
  [
    "hexadecimal with a character whose low byte is a digit",
    "U+0130 is no 0, though its low byte is",
    "encoding",
    posted(sealed(plain, hex).replace("0", "\u0130")),
    hex,
  ],
  ["hexadecimal with a foreign digit", "g is no digit", "encoding", posted(`${sealed(plain, hex).slice(0, -1)}g`), hex],
  [
    "AES-CBC with half a block",
    "ciphertext must be whole blocks",
    "encoding",
    posted(Buffer.from(sealed(plain, cbc), "base64").subarray(0, -8).toString("base64")),
    cbc,
  ],
  [
    "JWE of four parts",
    "a compact JWE has five",
    "encoding",
    posted(sealed(plain, jwe).split(".").slice(0, 4).join(".")),
    jwe,
  ],
  [
    "JWE with an encrypted key",
    "with dir that part is empty",
    "encoding",
    posted(sealed(plain, jwe).replace("..", ".AAAA.")),
    jwe,
  ],
  ["JWE with a short tag", "the tag has 16 bytes", "encoding", posted(sealed(plain, jwe).slice(0, -6)), jwe],
];

const headers: readonly Case[] = [
  [
    "JWE, zip",
    "compression is refused",
    "jwe_header",
    posted(jweWith({ alg: "dir", enc: "A256GCM", kid: "ek-1", zip: "DEF" })),
    jwe,
  ],
  [
    "JWE, another alg",
    "alg comes from configuration",
    "jwe_header",
    posted(jweWith({ alg: "A256KW", enc: "A256GCM", kid: "ek-1" })),
    jwe,
  ],
  [
    "JWE, another enc",
    "enc comes from configuration",
    "jwe_header",
    posted(jweWith({ alg: "dir", enc: "A128GCM", kid: "ek-1" })),
    jwe,
  ],
  [
    "JWE, crit",
    "an extension that is not understood",
    "jwe_header",
    posted(jweWith({ alg: "dir", enc: "A256GCM", kid: "ek-1", crit: ["exp"] })),
    jwe,
  ],
  ["JWE, no kid", "the key must be named", "jwe_header", posted(jweWith({ alg: "dir", enc: "A256GCM" })), jwe],
  [
    "JWE, unknown kid",
    "no key has this id",
    "unknown_key",
    posted(jweWith({ alg: "dir", enc: "A256GCM", kid: "ek-9" })),
    jwe,
  ],
];

const contents: readonly Case[] = [
  ["one changed bit of the IV", "AES-GCM does not open", "decryption", posted(flipped(sealed(plain), 0))],
  ["one changed bit of the ciphertext", "AES-GCM does not open", "decryption", posted(flipped(sealed(plain), 40))],
  [
    "one changed bit of the tag",
    "AES-GCM does not open",
    "decryption",
    posted(flipped(sealed(plain), Buffer.from(sealed(plain), "base64").length - 1)),
  ],
  [
    "another key",
    "sealed with a key that is not accepted",
    "decryption",
    posted(sealed(plain)),
    { ...usual, encryptionKeys: ["ek-2"] },
  ],
  ["another cipher", "AES-CBC where AES-GCM is agreed", "decryption", posted(sealed(plain, cbc))],
  [
    "AES-CBC, one changed bit of the IV",
    "the JSON's first byte changes with it",
    "not_json",
    posted(flipped(sealed(plain, cbc), 0)),
    cbc,
  ],
  ["not UTF-8", "a byte that UTF-8 does not have", "not_text", posted(gcm(Buffer.from('{"id":"\xff"}', "latin1")))],
  ["a byte order mark", "JSON begins without one", "not_json", posted(sealed(`\ufeff${plain}`))],
  ["no JSON inside", "the content is not JSON", "not_json", posted(sealed("aid=A0&amount=1"))],
  ["a list inside", "the content is no object", "not_json", posted(sealed(`[${plain}]`))],
  [
    "a lone surrogate",
    "it has no UTF-8 form, so it cannot be signed",
    "not_json",
    posted(sealed(plain.replace("ORDER-42", "\\ud800"))),
  ],
];

const list = signedJson("settlement", toWire("settlement", ipns.settlement, "table"), usual.signing);

const fields: readonly Case[] = [
  ["a key twice", "a key appears twice", "duplicate_key", posted(sealed(plain.replace("{", '{"amount":"1",')))],
  [
    "a key twice, once escaped",
    "\\u0061mount is amount",
    "duplicate_key",
    posted(sealed(plain.replace("{", '{"\\u0061mount":"1",'))),
  ],
  [
    "a key twice, white space before the colon",
    "a key appears twice",
    "duplicate_key",
    posted(sealed(plain.replace("{", '{"amount" :"1",'))),
  ],
  [
    "a key twice in settlementList",
    "a key appears twice",
    "duplicate_key",
    posted(sealed(list.replace('{"reqId"', '{"refNo":"1","reqId"'))),
  ],
  [
    "a key twice that we do not know",
    "a key appears twice",
    "duplicate_key",
    posted(sealed(plain.replace("{", '{"later":"1","later":"1",'))),
  ],
  [
    "deviceId and device_id",
    "one field under two of its names",
    "two_names",
    posted(sealed(plain.replace("{", '{"device_id":"PB0012345678",'))),
  ],
  [
    "deviceId and deviceID",
    "one field under two of its names",
    "two_names",
    posted(sealed(list.replace("{", '{"deviceID":"PB0012345678",'))),
  ],
  [
    "reqId and reqID in settlementList",
    "one field under two of its names",
    "two_names",
    posted(sealed(list.replace('{"reqId"', '{"reqID":"1","reqId"'))),
  ],
  [
    "a number",
    "every scalar is a string",
    "wrong_type",
    posted(sealed(plain.replace('"amount":"150000"', '"amount":150000'))),
  ],
  ["null", "every scalar is a string", "wrong_type", posted(sealed(plain.replace('"tid":""', '"tid":null')))],
  [
    "a list for a scalar",
    "amount is a string",
    "wrong_type",
    posted(sealed(plain.replace('"amount":"150000"', '"amount":["150000"]'))),
  ],
  [
    "settlementList is no list",
    "settlementList is a list of objects",
    "wrong_type",
    posted(sealed(list.replace(/"settlementList":\[.*\]/, '"settlementList":""'))),
  ],
  [
    "settlementList of strings",
    "settlementList is a list of objects",
    "wrong_type",
    posted(sealed(list.replace(/"settlementList":\[.*\]/, '"settlementList":["412345678901"]'))),
  ],
];

const signatures: readonly Case[] = [
  [
    "a changed amount",
    "amount is signed",
    "signature",
    posted(sealed(plain.replace('"amount":"150000"', '"amount":"150001"'))),
  ],
  [
    "a changed character anywhere",
    "the whole IPN is signed",
    "signature",
    posted(sealed(signedJson("card", toWire("card", ipns.card, "table"), whole.signing).replace("POS", "Pos"))),
    whole,
  ],
  [
    "no signature",
    "the signature is missing",
    "signature",
    posted(sealed(JSON.stringify(toWire("card", ipns.card, "table")))),
  ],
  [
    "an empty signature",
    "64 hexadecimal digits are expected",
    "signature",
    posted(sealed(plain.replace(/"signature":"\w+"/, '"signature":""'))),
  ],
  [
    "half a signature",
    "64 hexadecimal digits are expected",
    "signature",
    posted(sealed(plain.replace(/"signature":"(\w{32})\w+"/, '"signature":"$1"'))),
  ],
  [
    "another signing key",
    "signed with a key that is not accepted",
    "signature",
    posted(sealed(plain)),
    { ...usual, signingKeys: ["sk-2"] },
  ],
  [
    "another agreement",
    "signed in the specification's order where the whole IPN is agreed",
    "signature",
    posted(sealed(plain)),
    whole,
  ],
];

/** Bodies that a receiver must refuse, all with the same answer. */
export function refusedVectors(): RefusedVector[] {
  return [...envelopes, ...encodings, ...headers, ...contents, ...fields, ...signatures].map(
    ([name, why, reason, body, agreement = usual]) => ({ name, why, reason, ...agreement, body }),
  );
}
