import { z } from "zod";

/** A text that is compared with what is stored. PostgreSQL takes no NUL: without this, one would be our failure. */
export function lookedUpText(charactersMax: number) {
  return z
    .string()
    .max(charactersMax)
    .refine((text) => !text.includes("\0"), { message: "holds NUL", params: { code: "invalid_text" } });
}
