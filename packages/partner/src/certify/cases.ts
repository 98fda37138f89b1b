import { acceptedCases } from "./accepted.ts";
import type { Case } from "./case.ts";
import { misdirectedCases } from "./misdirected.ts";
import { refusedCases } from "./refused.ts";

/** Every case, in the order in which they run. */
export const cases: readonly Case[] = [...acceptedCases, ...refusedCases, ...misdirectedCases];

/** The case that no post of its own makes: whether the refusals look alike. */
export const alikeCase = {
  code: "refusals-alike",
  title: "the refusals of forged notifications, compared",
  expects: "refused",
} as const satisfies Pick<Case, "code" | "title" | "expects">;

export const caseCodes: readonly string[] = [...cases.map(({ code }) => code), alikeCase.code];
