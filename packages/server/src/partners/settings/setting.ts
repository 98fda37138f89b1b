import { z } from "zod";
import { type FieldProblem, invalid, unknownField, wrongType } from "../../errors.ts";
import type { CallbackUrlRules } from "./callback-rules.ts";

export interface SettingContext {
  readonly rules: CallbackUrlRules;
  /** The other settings, which may be invalid themselves. */
  readonly values: Readonly<Record<string, unknown>>;
}

export type SettingCheck = (field: string, value: unknown, context: SettingContext) => readonly FieldProblem[];

/** The definition of one setting. Types, defaults, checks and the API's schemas are derived from it. */
export interface PartnerSetting<Value> {
  /** Undefined if it is required. */
  readonly initial: Value | undefined;
  /** The schema of a value in the API; for an object of settings, its table. */
  readonly schema: z.ZodType | SettingTable;
  readonly meaning: string;
  readonly check: SettingCheck;
}

export type SettingTable = Readonly<Record<string, PartnerSetting<unknown>>>;

export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends PartnerSetting<infer Value> ? Value : never;
};

/** One of these words. */
export function choice<const Words extends readonly string[]>(
  words: Words,
  initial: Words[number],
  meaning: string,
): PartnerSetting<Words[number]> {
  return { initial, schema: z.enum(words), meaning, check: (field, value) => choiceProblems(field, value, words) };
}

export function wholeNumber(min: number, max: number, initial: number, meaning: string): PartnerSetting<number> {
  const schema = z.int().min(min).max(max);
  return { initial, schema, meaning, check: (field, value) => wholeNumberProblems(field, value, min, max) };
}

/** An object of optional settings. */
export function group<Table extends SettingTable>(table: Table, meaning: string): PartnerSetting<ValuesOf<Table>> {
  return {
    initial: initialValues(table),
    schema: table,
    meaning,
    check: (field, value, context) =>
      isObject(value) ? tableProblems(table, value, context, `${field}.`) : [wrongType(field, "an object")],
  };
}

/** The defaults of a table of settings that all have one. */
export function initialValues<Table extends SettingTable>(table: Table): ValuesOf<Table> {
  return Object.fromEntries(Object.entries(table).map(([name, { initial }]) => [name, initial])) as ValuesOf<Table>;
}

/** Everything wrong with the values. Undefined counts as absent. */
export function tableProblems(
  table: SettingTable,
  given: Readonly<Record<string, unknown>>,
  context: SettingContext,
  prefix = "",
): FieldProblem[] {
  return Object.entries(given).flatMap(([name, value]) => {
    const field = prefix + name;
    if (value === undefined) return [];
    const setting = Object.hasOwn(table, name) ? table[name] : undefined;
    return setting?.check(field, value, context) ?? [unknownField(field, "is not a setting")];
  });
}

export function choiceProblems(field: string, value: unknown, allowed: readonly unknown[]): FieldProblem[] {
  return allowed.includes(value) ? [] : [invalid(field, `must be one of ${allowed.join(", ")}`)];
}

export function wholeNumberProblems(field: string, value: unknown, min: number, max: number): FieldProblem[] {
  if (typeof value !== "number") return [wrongType(field, "a number")];
  return Number.isInteger(value) && value >= min && value <= max
    ? []
    : [invalid(field, `must be a whole number from ${min} to ${max}`)];
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
