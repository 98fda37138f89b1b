import { IsoFormatError } from "../message/error.ts";
import { type Described, type HostValues, type ValueName, valueIn, valueNames } from "./values.ts";

/** Text, or a value by its name, padded with zeros to so many digits. */
type Part = string | { readonly name: ValueName; readonly digits: number };

const placeholder = /\{([A-Za-z][A-Za-z0-9]*)(?::(\d{1,2}))?\}/g;

/** The parts of a template that cannot be parsed. */
export function templateProblems(template: string): string[] {
  const problems = [...template.matchAll(placeholder)].flatMap(([whole, name = ""]) =>
    isValueName(name) ? [] : [`there is no ${whole}; the values are ${valueNames.join(", ")}`],
  );
  if (/[{}]/.test(template.replaceAll(placeholder, ""))) problems.push("a brace has no counterpart");
  return problems;
}

/**
 * Writes a field: text, and values in braces, `{batchNo}`; `{saleQuantity:3}` is padded with zeros to three digits. It
 * writes nothing, and the field is left out, where the template names values and a message has none of them.
 */
export function templateWriter(template: string): (message: Described, host: HostValues) => string {
  const parts = partsOf(template);
  const namesValues = parts.some((part) => typeof part !== "string");
  return (message, host) => {
    let text = "";
    let hasValue = !namesValues;
    for (const part of parts) {
      const written = typeof part === "string" ? part : padded(valueIn(part.name, message, host), part);
      if (typeof part !== "string" && written !== "") hasValue = true;
      text += written;
    }
    return hasValue ? text : "";
  };
}

/**
 * Reads a field that is written by the same template: the values by their names. Undefined if the text has another
 * form, or if the template does not tell where a value ends.
 */
export function templateReader(template: string): (text: string) => ReadonlyMap<ValueName, string> | undefined {
  const parts = partsOf(template);
  return (text) => {
    const values = new Map<ValueName, string>();
    let at = 0;
    for (const [nth, part] of parts.entries()) {
      const isLast = nth === parts.length - 1;
      if (typeof part !== "string" && part.digits === 0 && !isLast) return undefined;
      const end = typeof part !== "string" && part.digits === 0 ? text.length : at + lengthOf(part);
      const written = text.slice(at, end);
      if (typeof part === "string" ? written !== part : written.length === 0 || end > text.length) return undefined;
      if (typeof part !== "string") values.set(part.name, written);
      at = end;
    }
    return at === text.length ? values : undefined;
  };
}

/** Whether it writes totals of a batch. */
export function isOfTotals(template: string): boolean {
  return partsOf(template).some((part) => typeof part !== "string" && /(?:Quantity|Total)$/.test(part.name));
}

/** The values that a template names. */
export function valuesIn(template: string): readonly ValueName[] {
  return partsOf(template).flatMap((part) => (typeof part === "string" ? [] : [part.name]));
}

function lengthOf(part: Part): number {
  return typeof part === "string" ? part.length : part.digits;
}

function partsOf(template: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const { 0: whole, 1: name = "", 2: digits = "0", index } of template.matchAll(placeholder)) {
    if (index > at) parts.push(template.slice(at, index));
    if (!isValueName(name)) throw new TypeError(`There is no ${whole}.`);
    parts.push({ name, digits: Number(digits) });
    at = index + whole.length;
  }
  if (at < template.length) parts.push(template.slice(at));
  return parts;
}

/** An amount that does not fit must not lose its first digit. */
function padded(value: string, { name, digits }: Exclude<Part, string>): string {
  if (digits === 0 || value === "") return value;
  if (value.length > digits) throw new IsoFormatError(`${name} has more than the ${digits} digits of its place`);
  return value.padStart(digits, "0");
}

function isValueName(name: string): name is ValueName {
  return (valueNames as readonly string[]).includes(name);
}
