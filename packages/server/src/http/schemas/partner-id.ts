import { z } from "zod";
import { isUuid } from "../../ids.ts";

export const partnerIdText = z.string().refine(isUuid, {
  message: "is not a partner's id",
  params: { code: "unknown_partner" },
});
