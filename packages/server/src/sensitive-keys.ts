/**
 * Data that must never be stored after a card was authorised (PCI DSS, requirement 3.3): the security code, the PIN and
 * the track. They cannot be recognised by their digits, so they are recognised by their names and the shape of the
 * value.
 */
const shapes = [
  { names: /^(cvv2?|cvc2?|cvn2?|cav2?|csc|cid|(card)?(security|verification)(code|value))$/, shape: /^\s*\d{3,4}\s*$/ },
  { names: /^(card)?pin(block|data|number|code)?$/, shape: /^\s*(\d{4,12}|[0-9a-f]{16})\s*$/i },
  { names: /^(magnetic|mag)?(stripe|track)[123]?(data)?$/, shape: /\d{8,}|^\s*[%;][^\s]*\d/ },
] as const;

/** Cheap, and true for every JSON text that contains one of the names. */
const somewhere = /cv[vcn]|cav|csc|cid|pin|track|stripe|secur|verif/i;

/** Whether a JSON text may contain such a name. */
export function namesSensitive(text: string): boolean {
  return somewhere.test(text);
}

/** Whether this key of a JSON object has a value that must never be stored. A masked or empty one is allowed. */
export function isSensitive(key: string, value: unknown): boolean {
  if (typeof value !== "string" && typeof value !== "number") return false;
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, "");
  return shapes.some(({ names, shape }) => names.test(name) && shape.test(String(value)));
}
