import { ciphers, encodings } from "@paybell/contract";
import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";

export const sealedSchema = componentOf("SealedNotification", "A notification as an attempt would send it now", {
  data: described(z.string(), "The sealed IPN, as in a callback's body"),
  headers: described(z.record(z.string(), z.string()), "The headers that a callback would carry"),
  cipher: z.enum(ciphers),
  encoding: z.enum(encodings),
  encryptionKeyId: z.string(),
});
