/**
 * A message that cannot be packed or unpacked. Its text names the field and what is wrong with it, never the field's
 * content: that may be a card number.
 */
export class IsoFormatError extends Error {
  override readonly name = "IsoFormatError";
}
