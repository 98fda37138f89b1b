import { headerNames, hmacKey, parseJson, webhookKey, webhookSignatureMatches } from "@paybell/contract";
import { freshnessSecondsDefault } from "@paybell/partner";
import type { Capture } from "./capture.ts";
import type { NamedKey, NamedKeys } from "./named-keys.ts";

/** One step of opening: what was found, and what to do where it is wrong. */
export interface OpenFinding {
  readonly step: "body" | "headers" | "freshness" | "seal" | "content" | "signature";
  /** `note`: does not decide whether it is authentic. */
  readonly level: "right" | "note" | "wrong";
  readonly text: string;
  readonly remedy?: string;
}

const three = [headerNames.id, headerNames.timestamp, headerNames.signature] as const;

/** Checks the three webhook- headers. `body` is the one that they sign, if that can be determined. */
export function judgeHeaders(
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
  try {
    return JSON.stringify(parseJson(body));
  } catch {
    return body;
  }
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
    return { step: "freshness", level: "wrong", text: "webhook-timestamp is no number of seconds since 1970" };
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
