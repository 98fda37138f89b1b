import { holdsCardNumber } from "../../guards/card-number.ts";
import { isSensitive } from "../../guards/sensitive-keys.ts";
import { replaceUnsendable } from "../requests/rules.ts";

const textCharactersMax = 4_096;
const entriesMax = 100;
const depthMax = 6;
const hidden = "(holds what looks like card data)";

/**
 * A refused item as the operator may see it: complete except for card data, and bounded, because its shape was not
 * checked.
 */
export function redactItem(item: unknown, depth = 0): unknown {
  if (typeof item === "string") return redactText(item);
  if (typeof item === "number") return holdsCardNumber(String(item)) ? hidden : item;
  if (typeof item !== "object" || item === null) return item;
  if (depth === depthMax) return "(nested more deeply than is kept)";
  if (Array.isArray(item)) {
    const kept = item.slice(0, entriesMax).map((entry: unknown) => redactItem(entry, depth + 1));
    return item.length > entriesMax ? [...kept, `(${item.length - entriesMax} more)`] : kept;
  }
  const entries = Object.entries(item).slice(0, entriesMax);
  return Object.fromEntries(
    entries.map(([name, value]) => [
      redactText(name),
      isSensitive(name, value) ? hidden : redactItem(value, depth + 1),
    ]),
  );
}

function redactText(text: string): string {
  return holdsCardNumber(text) ? hidden : replaceUnsendable(text.slice(0, textCharactersMax));
}
