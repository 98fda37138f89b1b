import { z } from "zod";
import { isUuid } from "../../ids.ts";

/**
 * A string that is compared with stored values. PostgreSQL refuses NUL: without this check it would be an internal
 * error.
 */
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
