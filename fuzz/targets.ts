import { deepEqual } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { NotAuthentic, openAndVerify, parseJson, seal, sign } from "@paybell/contract";
import type { SealingVector } from "../packages/contract/scripts/vectors/material.ts";
import { encryptionKey, signingKey } from "../packages/contract/scripts/vectors/material.ts";
import {
  asciiEncoding,
  bcdEncoding,
  isoMessage,
  standardLayout,
} from "../packages/server/src/acquirer/iso8583/message/codec.fixture.ts";
import { Codec } from "../packages/server/src/acquirer/iso8583/message/codec.ts";
import { IsoFormatError } from "../packages/server/src/acquirer/iso8583/message/element.ts";
import { ServiceError } from "../packages/server/src/errors.ts";
import { holdsCardNumber, maskCardNumbers } from "../packages/server/src/guards/card-number.ts";
import { readJson } from "../packages/server/src/input/json.ts";
import { AddressBlocks, networkOf, parseBlock } from "../packages/server/src/partners/settings/address-blocks.ts";
import { callbackUrlProblem } from "../packages/server/src/partners/settings/callback-rules.ts";
import type { FuzzTarget } from "./fuzz.ts";

const vectors = (
  JSON.parse(readFileSync(new URL("../packages/contract/vectors/sealing.json", import.meta.url), "utf8")) as {
    vectors: SealingVector[];
  }
).vectors;
const agreements = vectors.map(({ sealing, signing, encryptionKeys, signingKeys }) => ({
  sealing,
  signing,
  encryptionKeys: encryptionKeys.map(encryptionKey),
  signingKeys: signingKeys.map(signingKey),
}));
const bodies = new Set(vectors.map(({ body }) => body));
const texts = (...all: string[]) => all.map((text) => Buffer.from(text));

/** Runs it; the only error that it may end with is of this class. */
function mayRefuse<Result>(refusal: new (...args: never[]) => Error, read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof refusal) return undefined;
    throw error;
  }
}

function opens(input: Buffer): void {
  const body = input.toString("utf8");
  for (const how of agreements) {
    const opened = mayRefuse(NotAuthentic, () => openAndVerify(body, how));
    // White space around the envelope is JSON's; anything else that opens was forged.
    if (opened !== undefined && ![...bodies].some((known) => sameData(known, body))) throw new Error("a forgery opens");
  }
}

function sameData(known: string, body: string): boolean {
  const dataOf = (text: string) => (JSON.parse(text) as { data: string }).data;
  return decoded(dataOf(known)).equals(decoded(dataOf(body)));
}

/** One content has several spellings: hexadecimal in either case. */
function decoded(data: string): Buffer {
  return /^[0-9a-f]+$/i.test(data) ? Buffer.from(data, "hex") : Buffer.from(data);
}

/** Sealed and signed by a holder of the keys: the reader behind the encryption must handle any content. */
function reads(input: Buffer): void {
  const content = input.toString("utf8");
  const [how] = agreements;
  const [vector] = vectors;
  if (how === undefined || vector === undefined) throw new Error("there are no vectors");
  const key = encryptionKey(vector.keyId);
  sign(content, signingKey("sk-1"));
  mayRefuse(NotAuthentic, () => openAndVerify(JSON.stringify({ data: seal(content, how.sealing, key) }), how));
}

function readsJson(input: Buffer): void {
  const value = mayRefuse(ServiceError, () => readJson(input));
  const text = input.toString("utf8");
  const parsed = mayRefuse(SyntaxError, () => ({ value: parseJson(text) }));
  if (value !== undefined && parsed === undefined) throw new Error("a body is read that is not JSON");
  if (value !== undefined) deepEqual(value, parsed?.value);
  // A text without escapes is what Node's own reader makes of it.
  if (!text.includes("\\")) {
    const nodes = mayRefuse(SyntaxError, () => ({ value: JSON.parse(text) as unknown }));
    deepEqual(parsed, nodes);
  }
}

const list = new AddressBlocks(["203.0.113.0/24", "2001:db8::/32"]);

function judgesAddresses(input: Buffer): void {
  const text = input.toString("utf8");
  const block = parseBlock(text);
  if (block !== undefined) new AddressBlocks([text]);
  networkOf(text);
  if (list.contains(text) && list.refusal(text, false) !== undefined && !text.includes("%")) {
    throw new Error(`${text} is on the list and refused`);
  }
  for (const host of [text, `[${text}]`]) {
    const agreed = { callbackAddresses: ["203.0.113.0/24"], callbackPorts: [443] };
    callbackUrlProblem("callBackUrl", `https://${host}/`, { sandbox: false }, agreed);
  }
}

const codecs = [asciiEncoding, bcdEncoding].map((encoding) => new Codec(standardLayout(encoding)));

function unpacks(input: Buffer): void {
  for (const codec of codecs) {
    const message = mayRefuse(IsoFormatError, () => codec.unpack(input));
    if (message === undefined) continue;
    const packed = mayRefuse(IsoFormatError, () => codec.pack(message));
    if (packed !== undefined) deepEqual(codec.unpack(packed), message);
  }
}

function findsCards(input: Buffer): void {
  holdsCardNumber(input.toString("utf8"));
  if (holdsCardNumber(maskCardNumbers(input, input.length).toString("utf8"))) throw new Error("a card is kept");
}

export const targets: readonly FuzzTarget[] = [
  { name: "openers", seeds: texts(...bodies), run: opens },
  { name: "content", seeds: texts(...vectors.map(({ plain }) => plain)), run: reads },
  { name: "json", seeds: texts('{"a":[1,{"b":null}],"\\u0062":"c\\\\"}', "[]", '"x"', ...bodies), run: readsJson },
  {
    name: "addresses",
    seeds: texts("203.0.113.7", "2001:db8::1/64", "::ffff:203.0.113.7", "64:ff9b::cb00:7107", "fe80::1%eth0"),
    run: judgesAddresses,
  },
  {
    name: "iso8583",
    seeds: codecs.flatMap((codec) => [
      codec.pack(isoMessage("0800", { 11: "000001", 70: "001" })),
      codec.pack(isoMessage("0200", { 3: "000000", 4: "000000001000", 41: "T0000001" })),
    ]),
    run: unpacks,
  },
  {
    name: "cards",
    seeds: texts("4111 1111 1111 1111", '{"cvv":"123"}', "%34111111111111111", "a@b 13"),
    run: findsCards,
  },
];
