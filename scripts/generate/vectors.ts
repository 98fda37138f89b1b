import { deliveryVectors, extendedVectors } from "../../packages/contract/scripts/vectors/deliveries.ts";
import { freshnessSecondsDefault } from "../../packages/partner/src/options.ts";
import type { GeneratedFile } from "./document.ts";

const description = [
  "Test vectors for a receiver of Paybell's notifications, in any language. Generated from the code.",
  "Each entry of `vectors` is one POST with everything that a receiver knows. No entry needs another. Keys, IVs, " +
    "ids and times are fixed. The keys count up, so nobody can take them for real keys. Never encrypt with a fixed " +
    "IV.",
  "`body` is the raw body: the UTF-8 bytes of this string. `headers` are the request's, names in lower case.",
  "`nowSeconds` is the time of the receiver's clock, in seconds since 1970. webhook-timestamp may differ from it by " +
    "`freshnessSeconds` (300) at most, in either direction.",
  "`cipher`, `encoding` and `signing` are the receiver's configuration. `cipher`: aes-256-gcm, aes-256-cbc " +
    "or jwe (RFC 7516 uses base64url, so `encoding` has no meaning there). `signing`: {mode: fields} is the order " +
    "of the specification's section 5.1, or the lists in `card` and `settlement` in its place; {mode: whole} is the " +
    "RFC 8785 form of the object as sent, without its signature.",
  "`encryptionKeys` ({id, key}), `signingKeys` and `webhookSecrets` are the accepted versions, each 32 bytes" +
    " in base64; a webhook secret begins with whsec_. Several versions mean a rotation: any of them may be the right " +
    "one. `id` is the JWE's kid.",
  "`expect: accept`: the receiver must return `ipn`, whose `kind` is card or settlement: exactly these fields, " +
    "under the tables' names, missing ones as empty strings, cardScheme in upper case. `keyId` is the key that " +
    "decrypts it.",
  "`extended` has more of them, for receivers that know the setting `fields`: a list of `specification` and " +
    "`extended` (each of them is accepted), where absent the specification's alone. It decides which fields the " +
    "signature covers and `ipn` has, and the presence of a field never does.",
  "`expect: refuse`: the receiver must refuse it, always with the same answer. `why` is the reason.",
];

/** Test vectors for receivers in other languages: whole POSTs, to be accepted or refused. */
export function vectorsReference(): GeneratedFile {
  const content = {
    description,
    contract: "1",
    freshnessSeconds: freshnessSecondsDefault,
    vectors: deliveryVectors(),
    extended: extendedVectors(),
  };
  return { path: "docs/partner/vectors.json", text: `${JSON.stringify(content, undefined, 2)}\n` };
}
