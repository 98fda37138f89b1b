import {
  type CardIpn,
  defaultSealing,
  defaultSigning,
  extensionFields,
  type FieldSet,
  fromWire,
  headerNames,
  hmacKey,
  type IpnKind,
  ipnFields,
  NotAuthentic,
  parseJson,
  type SettlementIpn,
  type WireNames,
  webhookKey,
  webhookSignatureMatches,
} from "@paybell/contract";
import { freshnessSecondsDefault, IpnRefused } from "@paybell/partner";
import type { Credentials } from "../client/credentials.ts";
import { jsonIn } from "../shell/files.ts";
import { kidOf, type NamedKey, type NamedKeys, type OpenFinding, unseal } from "./seal.ts";
import { type Difference, judgeSignature } from "./signature.ts";

/** A captured POST. */
export interface Capture {
  /** The body as sent, as far as the capture has it. */
  readonly body: string;
  /** Names in lower case; undefined if only the body was captured. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** The analysis of a capture, step by step, as far as it gets. */
export interface Explanation {
  readonly authentic: boolean;
  readonly findings: readonly OpenFinding[];
  readonly kind?: IpnKind;
  readonly wireNames?: WireNames;
  readonly signedString?: string;
  readonly expected?: string;
  readonly found?: string;
  readonly firstDifference?: Difference;
  readonly ipn?: CardIpn | SettlementIpn;
}

type Settings = Pick<Credentials, "cipher" | "encoding" | "signing" | "fields">;

/** Opens a capture as a receiver with these settings does, and searches for the reason if it cannot. */
export function explain(capture: Capture, keys: NamedKeys, settings: Settings, nowMs: number): Explanation {
  const signed = judgeHeaders(capture, keys, nowMs);
  const data = dataOf(signed.body);
  const soFar = [data.finding, ...signed.findings];
  if (data.text === undefined) return judged(soFar);

  const { cipher = defaultSealing.cipher, encoding = defaultSealing.encoding } = settings;
  const version = kidOf(data.text) ?? capture.headers?.[headerNames.key];
  const unsealed = unseal(data.text, { cipher, encoding }, keys, version);
  if (unsealed.content === undefined) return judged([...soFar, unsealed.finding]);

  const agreed = [settings.fields ?? "specification"].flat();
  const content = readContent(unsealed.content, agreed);
  const opened = [...soFar, unsealed.finding, content.finding];
  if (content.wire === undefined) return judged(opened);

  const { kind, wire, ipn, wireNames, fields } = content;
  const { finding, firstDifference, ...signature } = judgeSignature(
    kind,
    wire,
    { signing: settings.signing ?? defaultSigning, fields },
    keys,
  );
  const difference = firstDifference === undefined ? {} : { firstDifference };
  return { ...judged([...opened, finding]), kind, wireNames, ...signature, ...difference, ipn };
}

function judged(findings: readonly OpenFinding[]): Explanation {
  const reached = findings.some(({ step, level }) => step === "signature" && level === "right");
  return { authentic: reached && findings.every(({ level }) => level !== "wrong"), findings };
}

/** Section 2.1: an object with the one field `data`. */
function dataOf(body: string): { readonly text?: string; readonly finding: OpenFinding } {
  const wrong = (text: string, remedy: string): { finding: OpenFinding } => ({
    finding: { step: "body", level: "wrong", text, remedy },
  });
  let value: unknown;
  try {
    value = parseJson(body);
  } catch {
    if (/^[A-Za-z0-9+/_.-]{38,}={0,2}$/.test(body.trim())) {
      return { text: body.trim(), finding: { step: "body", level: "note", text: "data alone, without its envelope" } };
    }
    if (/^\s*\[object /.test(body))
      return wrong("is not JSON: an object was converted to a string", new IpnRefused("stringified_body").remedy);
    return wrong(`is not JSON${looksLike(body)}`, 'Capture the raw bytes of the request: {"data": "…"}.');
  }
  if (typeof value === "string") return wrong("is a string within a string", new IpnRefused("stringified_body").remedy);
  const { data, ...others } = Object(value) as Readonly<Record<string, unknown>>;
  if (typeof data !== "string") {
    const opened = "transaction_type" in others;
    return opened
      ? wrong("is an IPN that was opened already", "Give the sealed body, as it was POSTed.")
      : wrong("has no field data that is text", "It is not what Paybell sends (section 2.1).");
  }
  const names = Object.keys(others);
  if (names.length > 0) return wrong(`has more fields than data: ${names.join(", ")}`, "Paybell sends data alone.");
  const text = `{"data": …}, ${Buffer.byteLength(body)} bytes`;
  return { text: data, finding: { step: "body", level: "right", text } };
}

function looksLike(body: string): string {
  if (/^\s*</.test(body)) return ": it looks like HTML or XML";
  if (/^\w+=/.test(body)) return ": it looks like a form";
  if (/^\s*\{\s*"data"\s*:\s*"[^"]*$/.test(body)) return ": it looks cut short";
  return body.startsWith("\u001f") ? ": it looks like gzip" : "";
}

type Content =
  | { readonly finding: OpenFinding; readonly wire?: undefined }
  | {
      readonly finding: OpenFinding;
      readonly kind: IpnKind;
      readonly wire: Readonly<Record<string, unknown>>;
      readonly ipn: CardIpn | SettlementIpn;
      readonly wireNames: WireNames;
      readonly fields: FieldSet;
    };

function readContent(content: string, agreed: readonly FieldSet[]): Content {
  try {
    const [only = "specification", other] = agreed;
    const first = fromWire(content, only);
    // With both agreed on, it is read as it presents itself. Its signature tells whether that is true.
    const presented = extensionFields(first.kind).every(({ name }) => name in first.wire)
      ? "extended"
      : "specification";
    const fields = other === undefined ? only : presented;
    const { kind, wire, ipn } = fromWire(content, fields);
    const aliased = aliasesOf(kind).filter(([, alias]) => alias in wire);
    const names = aliased.map(([name, alias]) => `${alias} for ${name}`);
    const told =
      names.length === 0
        ? "field names of the specification's tables"
        : `field names of its samples: ${names.join(", ")}`;
    const finding: OpenFinding = { step: "content", level: "right", text: `a ${kind} IPN, ${told}` };
    return { finding, kind, wire, ipn, wireNames: names.length === 0 ? "table" : "sample", fields };
  } catch (error) {
    if (!(error instanceof NotAuthentic)) throw error;
    return { finding: { step: "content", level: "wrong", text: contentText(error.reason, content) } };
  }
}

function aliasesOf(kind: IpnKind): (readonly [string, string])[] {
  return ipnFields(kind).flatMap((field: { name: string; alias?: string }) =>
    field.alias === undefined ? [] : [[field.name, field.alias] as const],
  );
}

function contentText(reason: NotAuthentic["reason"], content: string): string {
  if (reason === "duplicate_key") return "a JSON key is in it twice: a receiver refuses it";
  if (reason !== "two_names" && reason !== "wrong_type") return "it opened, but is not a JSON object";
  const wire = parseJson(content) as Readonly<Record<string, unknown>>;
  if (reason === "two_names") {
    const both = (["card", "settlement"] as const)
      .flatMap(aliasesOf)
      .filter(([name, alias]) => name in wire && alias in wire)
      .map(([name, alias]) => `${name} and ${alias}`);
    return `a field is in it under both of its names: ${[...new Set(both)].join(", ") || "in settlementList"}`;
  }
  const odd = Object.keys(wire).filter((name) => typeof wire[name] !== "string" && name !== "settlementList");
  return `a value is of the wrong type: ${odd.join(", ") || "in settlementList"}. All scalars are strings (section 2)`;
}

const three = [headerNames.id, headerNames.timestamp, headerNames.signature] as const;

/** Checks the three webhook- headers. `body` is the one that they sign, if that can be determined. */
function judgeHeaders(
  { body, headers = {} }: Capture,
  keys: NamedKeys,
  nowMs: number,
): { readonly findings: readonly OpenFinding[]; readonly body: string } {
  const missing = three.filter((name) => headers[name] === undefined);
  if (missing.length === three.length) {
    const text = "not in the capture: webhook-signature and freshness were not checked";
    return { body, findings: [{ step: "headers", level: "note", text }] };
  }
  if (missing.length > 0) {
    const remedy = "Let your proxy pass all of them, and capture all of them.";
    return { body, findings: [{ step: "headers", level: "wrong", text: `${missing.join(", ")} is missing`, remedy }] };
  }
  const signed = whoSigned(body, headers, keys);
  return { body: signed.body, findings: [signed.finding, freshness(headers[headerNames.timestamp] ?? "", nowMs)] };
}

/** Bodies that are often captured instead of the one that was sent. */
function bodiesLike(body: string): { readonly body: string; readonly change: string; readonly harmless: boolean }[] {
  const variants = [
    { body: body.replace(/\r?\n$/, ""), change: "without the line end at its end", harmless: true },
    { body: body.trim(), change: "without the white space around it", harmless: true },
    { body: rewritten(body), change: "as JSON.stringify writes it", harmless: false },
  ];
  return [{ body, change: "", harmless: true }, ...variants.filter((variant) => variant.body !== body)];
}

function rewritten(body: string): string {
  return JSON.stringify(jsonIn(body)) ?? body;
}

function whoSigned(
  body: string,
  headers: Readonly<Record<string, string>>,
  keys: NamedKeys,
): { readonly finding: OpenFinding; readonly body: string } {
  const [id = "", timestamp = "", signature = ""] = three.map((name) => headers[name]);
  const signs = (key: ReturnType<typeof hmacKey>, text: string) =>
    webhookSignatureMatches(signature, id, timestamp, text, [key]);
  for (const variant of bodiesLike(body)) {
    const key = keys.webhook.find((one) => signs(webhookKey(one.text), variant.body));
    if (key === undefined) continue;
    const text = `webhook-signature is right (${key.name}); notification ${id}`;
    if (variant.change === "") return { body, finding: { step: "headers", level: "right", text } };
    const changed = `${text}, of the body ${variant.change}`;
    if (variant.harmless) return { body: variant.body, finding: { step: "headers", level: "right", text: changed } };
    const remedy =
      "Something parsed the body and wrote it again: verify the raw bytes, before any JSON parser touches them.";
    return { body: variant.body, finding: { step: "headers", level: "wrong", text: changed, remedy } };
  }
  const swapped = [...keys.encryption, ...keys.signing].find((key) => signs(hmacKey(key.raw), body));
  return { body, finding: wrong(swapped) };
}

function wrong(swapped: NamedKey | undefined): OpenFinding {
  const text = "webhook-signature is not that of this body";
  const remedy =
    swapped === undefined
      ? "Compare webhookSecret with the one that registration or the last rotation gave. If it is right, the body " +
        "was changed."
      : `It is made with what you call ${swapped.name}: the keys are swapped.`;
  return { step: "headers", level: "wrong", text, remedy };
}

function freshness(timestamp: string, nowMs: number): OpenFinding {
  const ageSeconds = Math.floor(nowMs / 1000) - Number(timestamp);
  if (Number.isNaN(ageSeconds)) {
    return { step: "freshness", level: "wrong", text: "webhook-timestamp is not a number of seconds since 1970" };
  }
  const age = `${duration(Math.abs(ageSeconds))} ${ageSeconds < 0 ? "ahead of this machine's clock" : "old"}`;
  if (Math.abs(ageSeconds) <= freshnessSecondsDefault) {
    return { step: "freshness", level: "right", text: `webhook-timestamp is ${age}` };
  }
  return {
    step: "freshness",
    level: "note",
    text: `webhook-timestamp is ${age}: a receiver refuses it now, as ${freshnessSecondsDefault} s are allowed`,
    remedy:
      ageSeconds < 0 ? "Set this machine's clock (NTP)." : "A capture grows old. If it did not, set the clock (NTP).",
  };
}

function duration(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}
