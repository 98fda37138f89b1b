import { isUtf8 } from "node:buffer";
import { countKeys, parseJson, repeatedKey } from "@paybell/contract";
import { ServiceError } from "../errors.ts";
import { safeFieldName } from "../guards/safe-text.ts";
import { type BodyBounds, bodyBounds, keysWithinBounds } from "./body-bounds.ts";

/**
 * Parses a JSON body strictly: UTF-8, bounded, and without duplicate keys. Of two equal keys, one reader keeps the
 * first and another the last, so they would see two different commands.
 *
 * @throws ServiceError `invalid_json`.
 */
export function readJson(bytes: Buffer, bounds: BodyBounds = bodyBounds.ofReport): unknown {
  if (!isUtf8(bytes)) throw new ServiceError("invalid_json", "The body is not UTF-8.");
  const text = bytes.toString("utf8");
  const keys = keysWithinBounds(text, bounds);
  const value = parse(text);
  // JSON.parse keeps one of two equal keys: then the text has more keys than the value.
  if (keys !== countKeys(value)) {
    const key = JSON.stringify(safeFieldName(repeatedKey(text) ?? ""));
    throw new ServiceError("invalid_json", `The key ${key} appears twice in one object.`);
  }
  return value;
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own message quotes the body, and so perhaps a card.
    throw new ServiceError("invalid_json", "The body is not well-formed JSON.");
  }
}
