/** What the commands for partners and operators read of the environment and the service itself does not. */
export const clientVariables = [
  "PAYBELL_URL",
  "PAYBELL_CREDENTIALS",
  "PAYBELL_API_KEY",
  "PAYBELL_ENCRYPTION_KEY",
  "PAYBELL_SIGNING_KEY",
  "PAYBELL_WEBHOOK_SECRET",
  "PAYBELL_CIPHER",
  "PAYBELL_ENCODING",
  "PAYBELL_SIGNING",
  "PAYBELL_WIRE_NAMES",
] as const;
