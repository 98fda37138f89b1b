import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readProfile } from "./profile/read.ts";

const path = join(import.meta.dirname, "../../../../../docs/operator/acquirer-profile.json");

/** The one in the documents. */
export const profile = readProfile(readFileSync(path, "utf8"));

/** A MAC as a profile that says no more has it: in the last field, over all before it. */
export const usualMac = { field: "last", covers: "before", padding: "zeros", networkMessages: true } as const;
