import { deliveryVectors } from "../../packages/contract/scripts/vectors/deliveries.ts";
import { freshnessSecondsDefault } from "../../packages/partner/src/options.ts";
import type { GeneratedFile } from "./document.ts";

const description = [
  "Test vectors for a receiver of Paybell's notifications, in any language. Generated from the code.",
  "Each entry of `vectors` is one POST with all that a receiver knows; none needs another. Keys, IVs, ids " +
    "and times are fixed. The keys count up, so nobody can take them for keys in use. Never seal with a fixed " +
    "IV.",
  "`body` is the raw body: the UTF-8 bytes of this string. `headers` are the request's, names in lower case.",
  "`nowSeconds` is what the receiver's clock shows, in seconds since 1970. `freshnessSeconds` (300) is how " +
    "far webhook-timestamp may lie from it, either way; exactly that far is still accepted.",
  "`cipher`, `encoding` and `signing` are the receiver's configuration. `cipher`: aes-256-gcm, aes-256-cbc " +
    "or jwe (which is base64url by RFC 7516, so that `encoding` says nothing there). `signing`: {mode: fields}" +
    " is the order of the specification's section 5.1; with `card` or `settlement` that list of fields in its " +
    "place; {mode: whole} the RFC 8785 form of the object as it stands on the wire, less its signature.",
  "`encryptionKeys` ({id, key}), `signingKeys` and `webhookSecrets` are the accepted versions, each 32 bytes" +
    " in base64, a webhook secret with whsec_ before it. Several are a rotation: any of them may be the right " +
    "one. `id` is the JWE's kid.",
  "`expect: accept`: the receiver must hand over `ipn`, whose `kind` is card or settlement: exactly these " +
    "fields, by the tables' names, those that are missing as empty strings, cardScheme in upper case. `keyId` " +
    "opened it.",
  "`expect: refuse`: the receiver must refuse it, always with the same answer. `why` is for people.",
];

/** What receivers in other languages are held against: whole POSTs, to be accepted or refused. */
export function vectorsReference(): GeneratedFile {
  const content = { description, contract: "1", freshnessSeconds: freshnessSecondsDefault, vectors: deliveryVectors() };
  return { path: "docs/partner/vectors.json", text: `${JSON.stringify(content, undefined, 2)}\n` };
}
