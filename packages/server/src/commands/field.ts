/**
 * One string field of a request, as data: its shape check, the OpenAPI document and the reference page are generated
 * from it.
 */
export interface TextField {
  readonly type: "string";
  readonly name: string;
  readonly required: boolean;
  /** In characters (UTF-16 code units). */
  readonly maxLength: number;
  /** In bytes of UTF-8, if bytes are bounded. */
  readonly maxBytes?: number;
  readonly meaning: string;
  /** The allowed values, for the reference. They are checked with the rules, not by the shape. */
  readonly values?: readonly string[];
}

/** A field that is true or false; left out, it is false. */
export interface FlagField {
  readonly type: "flag";
  readonly name: string;
  readonly required: false;
  readonly meaning: string;
}

/** String fields that belong together, such as the card. */
export interface ObjectField {
  readonly type: "object";
  readonly name: string;
  readonly required: boolean;
  readonly meaning: string;
  readonly fields: readonly TextField[];
}

/** A list of entries with the same string fields. */
export interface ListField {
  readonly type: "list";
  readonly name: string;
  readonly required: boolean;
  readonly maxItems: number;
  readonly meaning: string;
  readonly fields: readonly TextField[];
}

export type RequestField = TextField | FlagField | ObjectField;
export type CompletionField = TextField | ListField;

/** The maximum size of extraData in bytes of UTF-8. */
export const extraDataBytesMax = 4096;
