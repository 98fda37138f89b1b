/** One text of a request, as data: its shape check, the OpenAPI document and the reference page are made from it. */
export interface TextField {
  readonly type: "string";
  readonly name: string;
  readonly required: boolean;
  /** In characters (UTF-16 code units). */
  readonly maxLength: number;
  /** In bytes of UTF-8, where the bytes are what is bounded. */
  readonly maxBytes?: number;
  readonly meaning: string;
  /** The values allowed, for the reference. They are judged with everything else beyond shape, not by the shape. */
  readonly values?: readonly string[];
}

/** Texts that belong together, such as the card. */
export interface ObjectField {
  readonly type: "object";
  readonly name: string;
  readonly required: boolean;
  readonly meaning: string;
  readonly fields: readonly TextField[];
}

/** A list of entries, each holding the same texts. */
export interface ListField {
  readonly type: "list";
  readonly name: string;
  readonly required: boolean;
  readonly maxItems: number;
  readonly meaning: string;
  readonly fields: readonly TextField[];
}

export type RequestField = TextField | ObjectField;
export type CompletionField = TextField | ListField;

/** Bytes of UTF-8 that extraData may hold. */
export const extraDataBytesMax = 4096;
