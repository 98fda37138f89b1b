import { type Cipher, headerNames } from "@paybell/contract";
import type { Bench, Case, CaseStep, Words } from "./judge.ts";
import {
  cardNotification,
  type Deviation,
  plainHeaders,
  settlementNotification,
  strangeKey,
  strangeSealingKey,
} from "./notification.ts";
import type { HttpPost } from "./post.ts";

/** Twice what freshness allows. */
const farSeconds = 600;

const forgedSale =
  "An attacker who can send this can report a payment that never happened: goods leave, and no money comes.";

const ambiguous = "Two programs can read different values from one IPN: one ships goods that the other did not book.";

const crashed: Words = {
  means:
    "An attacker who probes the URL sees that this message got further than others, and fills your log. A real " +
    "notification that fails in the same way is repeated for three days.",
  fix: "Catch every failure of verifying and decrypting (base64, decryption, UTF-8, JSON), and answer 400.",
};

/**
 * Requests that the service never sends: forged, altered, replayed. They must be answered 4xx, always in the same way.
 */
export const refusedCases: readonly Case[] = [
  forged("bad-signature", "a Sale with the signature of another IPN", {
    deviation: { signature: (signature) => signature.replaceAll(/./g, (digit) => (digit === "0" ? "1" : "0")) },
    means: "Being able to encrypt does not prove who sent the IPN. Only the signature does.",
    fix: "Compare signature with the HMAC-SHA256 of the signed string (section 5.1), in constant time.",
  }),
  forged("empty-signature", "a Sale whose signature is empty", {
    deviation: { signature: () => "" },
    fix: "An empty signature is wrong: do not skip the comparison when the signature is missing.",
  }),
  forged("tampered-content", "a Sale whose amount was changed after it was signed", {
    deviation: { signed: (wire) => ({ ...wire, amount: "9000000" }) },
    means: "A Sale of 1 is booked as one of 9,000,000.",
    fix: "Build the signed string from the received fields, and compare.",
  }),
  forged("tampered-body", "a body with one character changed", {
    deviation: { sentBody: (body) => body.replace(/.(?=.{8}"\}$)/, (byte) => (byte === "b" ? "c" : "b")) },
    fix: "Compute webhook-signature over the raw body and compare it before you decrypt.",
  }),
  forged("respaced-body", "a body with white space added after it was signed", {
    deviation: { sentBody: (body) => `${body} ` },
    means: "You do not verify the bytes that were sent: a change that your parser hides passes as signed.",
    fix: "Compute webhook-signature over the raw bytes of the body. Do not parse and re-serialise it first.",
  }),
  forged("wrong-encryption-key", "a Sale encrypted with another encryption key", {
    make: (bench) => ({ keys: { encryptionKey: strangeSealingKey(bench.keys.encryptionKey.id) } }),
    fix: "Content that cannot be decrypted is not authentic: answer 400 when decryption fails.",
  }),
  forged("wrong-signing-key", "a Sale signed with another signing key", {
    make: () => ({ keys: { signingKey: strangeKey() } }),
    fix: "Compare signature with the HMAC-SHA256 of the signed string under your signingKey.",
  }),
  forged("wrong-webhook-secret", "headers signed with another webhook secret", {
    make: () => ({ keys: { webhookSecret: strangeKey() } }),
    fix: "Compare webhook-signature with the HMAC-SHA256 of <id>.<timestamp>.<body> under your webhookSecret.",
  }),
  forged("other-cipher", "a Sale encrypted with another cipher and the right key", {
    make: ({ keys }) => ({ keys: { sealing: { ...keys.sealing, cipher: otherCipher(keys.sealing.cipher) } } }),
    means: "If the message selects the cipher, an attacker can select the weakest one that you support.",
    fix: "Take the cipher from your configuration, never from the message; try no other when it fails.",
  }),
  forged("stale-timestamp", "a Sale signed ten minutes ago", {
    deviation: { ageSeconds: farSeconds },
    means: "An attacker who has seen one delivery can send it again at any time: a refund twice, an order twice.",
    fix: "Verify webhook-signature, then refuse a webhook-timestamp more than 300 s from your clock.",
  }),
  forged("future-timestamp", "a Sale signed ten minutes from now", {
    deviation: { ageSeconds: -farSeconds },
    means: "A delivery with a timestamp in the future can be replayed until that time.",
    fix: "Refuse a webhook-timestamp that differs from your clock by more than 300 s, in either direction.",
  }),
  forged("renewed-timestamp", "a Sale signed ten minutes ago, with its timestamp set to now", {
    deviation: { ageSeconds: farSeconds, headers: renewed },
    means: "An old delivery passes as a new one: the freshness check has no effect.",
    fix: "Compute the signature over <webhook-id>.<webhook-timestamp>.<body>, with the values of the headers.",
  }),
  forged("missing-headers", "a Sale without any webhook- header", {
    deviation: { headers: (own) => without(own, ["id", "timestamp", "signature"]) },
    means: "An attacker who omits the headers avoids the check: an old delivery can be replayed for ever.",
    fix:
      "Refuse a request without webhook-signature. If a proxy removes the headers and you agreed to do without, run " +
      "certify with --allow-missing-headers.",
  }),
  forged("missing-signature", "a Sale with webhook-id and webhook-timestamp, but no webhook-signature", {
    deviation: { headers: (own) => without(own, ["signature"]) },
    means: "An attacker who omits one header avoids the check of all of them.",
    fix: "Refuse if any of the three headers is missing. An exception for a proxy that removes them covers all three.",
  }),
  {
    ...forged("other-fields", "a Sale that is signed with other fields than your setting says", {
      means: "A forger who adds or removes a field decides what your endpoint takes for signed.",
      fix:
        "Decide by your own setting `fields` what is signed, never by whether a field is there. Accept both " +
        "kinds only while the operator changes it.",
    }),
    leftOut: ({ signing, fields, acceptsBothFields = false }) => {
      if (acceptsBothFields) return "both sets of fields are accepted";
      const passesOver = signing.mode === "whole" && fields === "specification";
      return passesOver ? "signing is whole: unknown fields are signed, and passed over" : undefined;
    },
    steps: (bench) => {
      const fields = bench.keys.fields === "extended" ? "specification" : "extended";
      const sale = cardNotification("SALE", bench.facts.card("other-fields"));
      return [refused(`a Sale signed as fields: "${fields}" says`, bench.post(sale, { keys: { fields } }))];
    },
  },
  {
    ...forged("two-names", "a field under both of its names", {
      means: ambiguous,
      fix: "Refuse an IPN with a field under two of its names, in settlementList too.",
    }),
    steps: (bench) => [
      refused(
        "a Sale with approveCode and approve_code",
        bench.post(
          cardNotification("SALE", bench.facts.card("two-names")),
          alsoNamed(bench, { approve_code: "999999" }),
        ),
      ),
      refused(
        "a settlement whose list has reqId and reqID",
        bench.post(settlementNotification(bench.facts.settlement("two-names", [])), {
          unsigned: (wire) => ({
            ...wire,
            settlementList: [{ reqId: "R1", reqID: "R2", refNo: "R0" }],
          }),
        }),
      ),
    ],
  },
  forged("duplicate-key", "a Sale that has one JSON key twice", {
    deviation: { text: (text) => text.replace('"amount":"1"', '"amount":"9000000","amount":"1"') },
    means: ambiguous,
    fix:
      "Read the IPN with a JSON reader that refuses duplicate keys (Jackson: STRICT_DUPLICATE_DETECTION; " +
      "Python: object_pairs_hook).",
  }),
];

interface Forgery {
  readonly deviation?: Deviation;
  readonly make?: (bench: Bench) => Deviation;
  readonly means?: string;
  readonly fix: string;
}

function forged(code: string, title: string, { deviation = {}, make, means = forgedSale, fix }: Forgery): Case {
  return {
    code,
    title,
    expects: "refused",
    alike: true,
    steps: (bench) => {
      const sale = cardNotification("SALE", bench.facts.card(code));
      return [refused(title, bench.post(sale, make?.(bench) ?? deviation))];
    },
    words: { accepted_forgery: { means, fix }, server_error: crashed },
  };
}

function refused(what: string, post: CaseStep["post"]): CaseStep {
  return { what, post, expects: "refused" };
}

function otherCipher(cipher: Cipher): Cipher {
  return cipher === "aes-256-gcm" ? "aes-256-cbc" : "aes-256-gcm";
}

function without(headers: Record<string, string>, names: readonly (keyof typeof headerNames)[]) {
  const gone = new Set<string>(names.map((name) => headerNames[name]));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !gone.has(name)));
}

function renewed(headers: Record<string, string>) {
  return { ...headers, [headerNames.timestamp]: String(Number(headers[headerNames.timestamp]) + farSeconds) };
}

/** Beside the names that are there, and signed with them where everything is. */
function alsoNamed({ keys }: Bench, second: Record<string, string>): Deviation {
  const add = (wire: Record<string, unknown>) => ({ ...wire, ...second });
  return keys.signing.mode === "whole" ? { unsigned: add } : { signed: add };
}

const crashedByStray: Words = {
  means: "Scanners send such requests all day: each writes an error to your log, and may end the process.",
  fix: "Check the request before you use it: its method, its length, an object with data. Otherwise answer 4xx.",
};

/** Requests that scanners send to any URL. They must be answered 4xx, with any status. */
export const misdirectedCases: readonly Case[] = [
  stray("junk-body", "a body that is not JSON, with headers that sign it", {
    make: (bench) =>
      bench.post(cardNotification("SALE", bench.facts.card("junk-body")), { body: () => '{"data": \u0000[[[ "}' }),
    fix: "Only a JSON object with the one field data, a string, is a notification: answer 400 to anything else.",
  }),
  stray("empty-body", "a POST without a body and without the headers", {
    make: () => ({ method: "POST", headers: plainHeaders, body: "" }),
    fix: "An empty body is not a notification: answer 400.",
  }),
  stray("wrong-content-type", "a form in place of JSON, without the headers", {
    make: () => ({
      method: "POST",
      headers: { ...plainHeaders, "content-type": "application/x-www-form-urlencoded" },
      body: "data=AAAA&amount=9000000&status=SUCCESS",
    }),
    fix: "A body that was not parsed is not verified: answer 400 or 415.",
  }),
  stray("wrong-method", "a GET", {
    make: () => ({ method: "GET", headers: { accept: "*/*", "user-agent": plainHeaders["user-agent"] }, body: "" }),
    fix: "Answer 405 (or 404) to every other method than POST.",
    means:
      "A 2xx to a GET claims that something was received. Monitors and browsers then take the endpoint for working " +
      "when the POST route is not even there.",
  }),
];

interface Stray {
  readonly make: (bench: Bench) => HttpPost;
  readonly means?: string;
  readonly fix: string;
}

function stray(code: string, title: string, { make, means, fix }: Stray): Case {
  const accepted = "The endpoint accepts a request that is not a notification: it may verify nothing at all.";
  return {
    code,
    title,
    expects: "refused",
    steps: (bench) => [{ what: title, post: make(bench), expects: "refused" }],
    words: { accepted_forgery: { means: means ?? accepted, fix }, server_error: crashedByStray },
  };
}
