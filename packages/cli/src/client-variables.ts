import { ciphers, encodings, fieldSets, wireNames } from "@paybell/contract";
import { anyOf } from "./any-of.ts";

/** Environment variables of the commands for partners and operators that the service itself does not read. */
export const clientVariables = {
  PAYBELL_URL: "Where Paybell is, as https://paybell.example",
  PAYBELL_CREDENTIALS: "A file of credentials, as --credentials names it",
  PAYBELL_API_KEY: "The partner's API key",
  PAYBELL_ENCRYPTION_KEY: "The partner's encryptionKey; several versions are separated by commas",
  PAYBELL_SIGNING_KEY: "The partner's signingKey; several versions are separated by commas",
  PAYBELL_WEBHOOK_SECRET: "The partner's webhookSecret; several versions are separated by commas",
  PAYBELL_CIPHER: `${anyOf(ciphers)}, as registered`,
  PAYBELL_ENCODING: `${anyOf(encodings)}, as registered`,
  PAYBELL_SIGNING: "fields, whole, or the agreed lists as JSON, as registered",
  PAYBELL_FIELDS: `${anyOf(fieldSets)}, as registered; both, separated by a comma, while that changes`,
  PAYBELL_WIRE_NAMES: `${anyOf(wireNames)}, as registered`,
} as const;
