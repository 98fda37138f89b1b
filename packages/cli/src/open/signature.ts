import { createHmac } from "node:crypto";
import {
  type FieldSet,
  fieldSets,
  type IpnKind,
  ipnFields,
  type Signing,
  signedFields,
  signedString,
} from "@paybell/contract";
import type { NamedKeys, OpenFinding } from "./seal.ts";

type Wire = Readonly<Record<string, unknown>>;

/** The first difference of two signed strings. */
export interface Difference {
  readonly unit: "field" | "character";
  /** From 1. */
  readonly position: number;
  readonly ours: string;
  readonly theirs: string;
}

export interface Judged {
  readonly finding: OpenFinding;
  readonly signedString: string;
  readonly expected: string;
  readonly found: string;
  readonly firstDifference: Difference | undefined;
}

interface Agreed {
  readonly signing: Signing;
  readonly fields: FieldSet;
}

/** Whether the IPN's own signature is right; if not, which key and which text it belongs to. */
export function judgeSignature(kind: IpnKind, wire: Wire, agreed: Agreed, keys: NamedKeys): Judged {
  const { signing, fields } = agreed;
  const text = signedString(kind, wire, signing, fields);
  const found = typeof wire["signature"] === "string" ? wire["signature"] : "";
  const [first] = keys.signing;
  const expected = first === undefined ? "" : hmac(text, first.raw);
  const base = { signedString: text, expected, found };
  const right = keys.signing.find((key) => matches(text, found, key.raw));
  if (right !== undefined) {
    const told = `right, over ${modeText(signing)}, with ${right.name}`;
    // During a rotation it may be another version's than the first.
    const rightExpected = hmac(text, right.raw);
    return {
      ...base,
      expected: rightExpected,
      finding: { step: "signature", level: "right", text: told },
      firstDifference: undefined,
    };
  }
  for (const variant of variants(kind, wire, agreed, text)) {
    for (const { name, raw } of keyVariants(keys)) {
      if (!matches(variant.text, found, raw)) continue;
      const told = `wrong as configured; it is that of ${variant.what}, with ${name}`;
      const remedy = [variant.remedy, keyRemedy(name)].filter((one) => one !== "").join(" ");
      // Another mode is a different text altogether, so the first difference means nothing.
      const isAlike = text.startsWith("{") === variant.text.startsWith("{");
      const firstDifference = isAlike ? differenceOf(text, variant.text) : undefined;
      return { ...base, firstDifference, finding: { step: "signature", level: "wrong", text: told, remedy } };
    }
  }
  return { ...base, firstDifference: undefined, finding: unexplained(found) };
}

/** With any bytes as the key. Nobody waits for the answer, so it need not take constant time. */
function hmac(text: string, key: Buffer): string {
  return createHmac("sha256", key).update(text, "utf8").digest("hex");
}

function matches(text: string, found: string, key: Buffer): boolean {
  return hmac(text, key) === found.toLowerCase();
}

function unexplained(found: string): OpenFinding {
  const shape = /^[0-9a-f]{64}$/i.test(found)
    ? ""
    : found === ""
      ? ": there is none"
      : ": it is not 32 bytes in hexadecimal";
  return {
    step: "signature",
    level: "wrong",
    text: `wrong${shape}, under every key and mode that was tried`,
    remedy:
      "Compare signingKey with the one that registration or the last rotation gave, and signing with GET /v1/self. " +
      "If both are right, a signed value was changed: --compare asks Paybell for the transaction.",
  };
}

interface Variant {
  readonly what: string;
  readonly text: string;
  readonly remedy: string;
}

/** Texts that are signed in place of the agreed one: other modes, and what goes wrong when one builds it oneself. */
function variants(kind: IpnKind, wire: Wire, { signing, fields: fieldSet }: Agreed, agreed: string): Variant[] {
  const whole = { mode: "whole" } as const;
  const fields = { mode: "fields" } as const;
  const pairs = pairsOf(kind, wire, signing.mode === "whole" ? fields : signing, fieldSet);
  const join = (list: readonly (readonly [string, string])[]) => list.map((pair) => pair.join("=")).join("&");
  const { signature: _, ...unsigned } = wire;
  const seen = new Set<string>();
  const once = pairs.filter(([name]) => !seen.has(name) && seen.add(name));
  const aliases = new Map(ipnFields(kind).flatMap(({ name, alias = name }) => [[name, alias] as const]));
  return [
    { what: "the agreed text", text: agreed, remedy: "" },
    ...fieldSets.map((set) => ({
      what:
        set === "extended" ? "the fields of an extended IPN" : "the specification's fields, without the extended ones",
      text: signedString(kind, wire, signing, set),
      remedy: `Set fields to ${set}.`,
    })),
    { what: "the specification's fields", text: signedString(kind, wire, fields), remedy: "Set signing to fields." },
    { what: "the whole IPN", text: signedString(kind, wire, whole), remedy: "Set signing to whole." },
    {
      what: "the IPN as JSON.stringify writes it",
      text: JSON.stringify(unsigned),
      remedy: "Use RFC 8785: keys in order.",
    },
    {
      what: "the fields without the empty ones",
      text: join(pairs.filter(([, value]) => value !== "")),
      remedy: "An empty value keeps its key: tid=&mid=…",
    },
    { what: "the fields, isoResponseCode once", text: join(once), remedy: "It appears twice, at positions 4 and 6." },
    {
      what: "the fields in alphabetical order",
      text: join([...pairs].sort(([a], [b]) => (a < b ? -1 : 1))),
      remedy: "The order is the specification's (section 5.1).",
    },
    {
      what: "the fields under the sample's names",
      text: join(pairs.map(([name, value]) => [aliases.get(name) ?? name, value] as const)),
      remedy: "The tables' names are signed: approveCode, also where the body says approve_code.",
    },
    {
      what: "the fields with cardScheme in capitals",
      text: join(pairs.map(([name, value]) => [name, name === "cardScheme" ? value.toUpperCase() : value] as const)),
      remedy: "Values are signed as they are sent.",
    },
    {
      what: "the values alone",
      text: pairs.map(([, value]) => value).join(""),
      remedy: "Sign key=value, joined by &.",
    },
  ];
}

function pairsOf(kind: IpnKind, wire: Wire, signing: Signing, set: FieldSet): (readonly [string, string])[] {
  const table = new Map(ipnFields(kind, set).map((field) => [field.name as string, field]));
  return signedFields(kind, signing, set).map((name) => {
    const field: { readonly alias?: string } | undefined = table.get(name);
    return [name, String(wire[name] ?? wire[field?.alias ?? name] ?? "")] as const;
  });
}

function keyVariants({ signing, encryption, webhook }: NamedKeys): { readonly name: string; readonly raw: Buffer }[] {
  const undecoded = signing.map(({ name, text }) => ({ name: `the text of ${name}`, raw: Buffer.from(text) }));
  return [...signing, ...encryption, ...webhook, ...undecoded];
}

function keyRemedy(name: string): string {
  if (name.startsWith("signingKey")) return "";
  if (name.startsWith("the text")) return "The key is 32 bytes: decode the base64 first.";
  return `The keys are swapped: give what you call ${name} as signingKey.`;
}

function modeText(signing: Signing): string {
  if (signing.mode === "whole") return "the whole IPN (RFC 8785)";
  return signing.card === undefined && signing.settlement === undefined
    ? "the specification's fields"
    : "the agreed fields";
}

/** The first `key=value` in which two signed strings differ; where they are none, the first character. */
export function differenceOf(ours: string, theirs: string): Difference | undefined {
  if (ours === theirs) return undefined;
  if (isPairs(ours) && isPairs(theirs)) return differingField(ours.split("&"), theirs.split("&"));
  let at = 0;
  while (ours[at] === theirs[at]) at += 1;
  const around = (text: string) => text.slice(Math.max(0, at - aroundCharacters), at + aroundCharacters);
  return { unit: "character", position: at + 1, ours: around(ours), theirs: around(theirs) };
}

const aroundCharacters = 24;

function isPairs(text: string): boolean {
  return /^\w+=/.test(text);
}

function differingField(ours: readonly string[], theirs: readonly string[]): Difference {
  const at = ours.findIndex((pair, index) => pair !== theirs[index]);
  const position = at === -1 ? ours.length : at;
  const nothing = "nothing: it ends here";
  return {
    unit: "field",
    position: position + 1,
    ours: ours[position] ?? nothing,
    theirs: theirs[position] ?? nothing,
  };
}
