/**
 * What must never be kept after a card was authorised (PCI DSS, requirement 3.3): the security code, the PIN and the
 * track. None of them is known by its digits, so they are known by their names and the shape of what stands there.
 */
const shapes = [
  { names: /^(cvv2?|cvc2?|cvn2?|cav2?|csc|cid|(card)?(security|verification)(code|value))$/, shape: /^\s*\d{3,4}\s*$/ },
  { names: /^(card)?pin(block|data|number|code)?$/, shape: /^\s*(\d{4,12}|[0-9a-f]{16})\s*$/i },
  { names: /^(magnetic|mag)?(stripe|track)[123]?(data)?$/, shape: /\d{8,}|^\s*[%;][^\s]*\d/ },
] as const;

/** Cheap, and true of every JSON text that has one of the names in the clear. */
const somewhere = /cv[vcn]|cav|csc|cid|pin|track|stripe|secur|verif/i;

/** Whether a JSON text may have such a name. */
export function namesSensitive(text: string): boolean {
  return somewhere.test(text);
}

/** Whether this key of a JSON object holds what must never be kept. A masked or empty one does not. */
export function isSensitive(key: string, value: unknown): boolean {
  if (typeof value !== "string" && typeof value !== "number") return false;
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, "");
  return shapes.some(({ names, shape }) => names.test(name) && shape.test(String(value)));
}
