import { z } from "zod";
import { isUuid } from "../../ids.ts";

/** A text that is compared with what is stored. PostgreSQL takes no NUL: without this, one would be our failure. */
export function lookedUpText(charactersMax: number) {
  return z
    .string()
    .max(charactersMax)
    .refine((text) => !text.includes("\0"), { message: "holds NUL", params: { code: "invalid_text" } });
}

export const partnerIdText = z.string().refine(isUuid, {
  message: "is no partner's id",
  params: { code: "unknown_partner" },
});
