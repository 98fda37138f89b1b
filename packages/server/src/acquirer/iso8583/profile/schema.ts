import { z } from "zod";
import { responseCodePattern } from "../../../response-codes.ts";
import { reversalMarginMsDefault } from "../../acquirer.ts";
import { elementFormat } from "../message/element.ts";

/** The dates that a file may write: Y, M and D are digits. */
const clearingDates = ["YYYYMMDD", "YYYY-MM-DD", "YYMMDD", "DDMMYYYY", "DD/MM/YYYY", "MM/DD/YYYY"] as const;
/** The kinds of a line. `skip`: it is not read, such as a trailer. */
const clearingKinds = ["sale", "refund", "void", "fee", "chargeback", "skip"] as const;
const clearingColumns = ["kind", "refId", "trace", "amount", "currency", "date", "tid", "mid", "reason"] as const;
export type ClearingColumn = (typeof clearingColumns)[number];

/** A column by its name in the header, by its number from 1, or, in a file of fixed columns, by its place. */
const columnPlace = z.union([
  z.string().min(1).max(64),
  z.number().int().min(1).max(500),
  z.strictObject({ from: z.number().int().min(1).max(10_000), length: z.number().int().min(1).max(200) }),
]);

/** The form of an acquirer's clearing or settlement file, and when a line counts as missing. */
export const clearingSchema = z
  .strictObject({
    format: z.enum(["csv", "fixed"]),
    encoding: z.enum(["utf-8", "latin1"]).default("utf-8"),
    delimiter: z.string().length(1, "must be one character").default(","),
    /** Lines before the first that counts, the header not counted. */
    skipLines: z.number().int().min(0).max(100).default(0),
    /** Whether a line then names the columns. */
    header: z.boolean().default(false),
    columns: z.partialRecord(z.enum(clearingColumns), columnPlace),
    /** The meaning of each value of the column `kind`. Without that column every line is a sale. */
    kinds: z.record(z.string().max(32), z.enum(clearingKinds)).default({}),
    /** The currency of every line, if there is no column. */
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, "is not a currency such as VND")
      .optional(),
    /** `minor`: digits without a point, with the decimals of `currencies`. */
    amounts: z.enum(["major", "minor"]).default("major"),
    dates: z.enum(clearingDates).default("YYYYMMDD"),
    /** A line, or a transaction, is missing after so many days. */
    daysMax: z.number().int().min(0).max(60).default(3),
    /** Whether Voids, and the Sales that they voided, are in the file. */
    voids: z.enum(["listed", "left out"]).default("left out"),
  })
  .superRefine((section, context) => {
    for (const [name, message] of sectionProblems(section)) {
      context.addIssue({ code: "custom", path: ["columns", name], message });
    }
  });

type Section = {
  readonly format: string;
  readonly header: boolean;
  readonly columns: Readonly<Partial<Record<ClearingColumn, z.infer<typeof columnPlace>>>>;
  readonly currency?: string | undefined;
};

function sectionProblems({ format, header, columns, currency }: Section): [ClearingColumn, string][] {
  const problems: [ClearingColumn, string][] = [];
  if (columns.amount === undefined) problems.push(["amount", "is required"]);
  if (columns.date === undefined) problems.push(["date", "is required"]);
  if (columns.refId === undefined && columns.trace === undefined) problems.push(["refId", "or trace is required"]);
  if (columns.currency === undefined && currency === undefined) {
    problems.push(["currency", "is required, or clearing.currency"]);
  }
  for (const [name, where] of Object.entries(columns) as [ClearingColumn, z.infer<typeof columnPlace>][]) {
    if ((format === "fixed") !== (typeof where === "object")) {
      problems.push([name, format === "fixed" ? "must have from and length" : "must be a name or a number"]);
    }
    if (typeof where === "string" && !header) problems.push([name, "is a name, and clearing.header is false"]);
  }
  return problems;
}

export type ClearingProfile = Readonly<z.infer<typeof clearingSchema>>;

const alternatives = <const Values extends readonly [string, ...string[]]>(...values: Values) => z.enum(values);

const encoding = z.strictObject({
  mti: alternatives("ascii", "bcd", "ebcdic"),
  bitmap: alternatives("binary", "hex", "hex-ebcdic"),
  lengths: alternatives("ascii", "bcd", "binary", "ebcdic"),
  text: alternatives("ascii", "ebcdic"),
  digits: alternatives("ascii", "bcd", "ebcdic"),
  tracks: alternatives("ascii", "bcd", "ebcdic"),
  bytes: alternatives("binary", "hex", "hex-ebcdic"),
  oddDigits: z.strictObject({ fixed: alternatives("left", "right"), variable: alternatives("left", "right") }),
});

const format = z
  .string()
  .refine((text) => elementFormat(text) !== undefined, "is not a format such as n6, n..19, ans...999");
const field = z.union([format, z.strictObject({ format, encoding: encoding.partial() })]);

/** The form of a field that holds elements: `02` `03` `ABC`, or BER-TLV in a field of bytes. */
const structure = z.discriminatedUnion("form", [
  z.strictObject({
    form: z.literal("text"),
    tagCharacters: z.number().int().min(1).max(8),
    lengthDigits: z.number().int().min(1).max(4),
    /** The length comes before the tag, and counts it. */
    lengthFirst: z.boolean().default(false),
  }),
  z.strictObject({ form: z.literal("ber"), values: alternatives("hex", "ascii") }),
]);

const fieldNumber = z
  .string()
  .regex(/^(?:[2-9]|[1-9]\d|1[01]\d|12[0-8])$/, "is not a field number: fields are numbered from 2 to 128");
const responseCode = z.string().regex(responseCodePattern, "is not a response code of two characters");
/** A field, or an element of a field: `48.02`. */
const place = z
  .string()
  .regex(/^(?:[2-9]|[1-9]\d|1[01]\d|12[0-8])(?:\.[0-9A-Za-z]{1,8})?$/, "is not a field from 2 to 128, or its element");
/** A template for each field that a message has. */
const template = z.string().max(999);
const message = z.strictObject({
  mti: z.string().regex(/^[01][1-8][02468][024]$/, "is not a message type of a request, such as 0200"),
  /** The type of the same message when it is sent again. Not set: the type's own, its last digit one higher. */
  repeatMti: z
    .string()
    .regex(/^[01][1-8][02468]\d$/, "is not a message type, such as 0201")
    .optional(),
  fields: z.record(place, template),
  /** As the profile's, for the answers to this message: they come first. */
  responseCodes: z.record(z.string(), responseCode).optional(),
});

const timeZone = z.string().refine(isTimeZone, "is not a time zone, such as Asia/Ho_Chi_Minh");
const pattern = z.string().refine(isPattern, "is not a regular expression");
const number = z.number().int().min(2).max(128);
const numberOrPlace = z.union([number, place]);

/** A part of a field, in hexadecimal. Without a length: all from there on. */
const part = z.strictObject({
  field: number,
  from: z.number().int().min(0).max(998).default(0),
  characters: z.number().int().min(2).max(998).nullable().default(null),
});

const keyExchange = z.strictObject({
  /** The encryption of a new MAC key under the key-encryption key. */
  encryption: alternatives("tdes-ecb", "aes-ecb", "aes-kw"),
  /** A request of the host's with one of these values brings a key, such as field 70 with 101 or 161. */
  brings: z.strictObject({ field: number, values: z.array(z.string().min(1).max(20)) }),
  key: part,
  checkValue: part.nullable(),
  /** The request for a key after each sign-on: the answer contains it. Null: the host sends it unasked. */
  request: message.nullable(),
  requestEveryMs: z.number().int().min(1_000).max(86_400_000).nullable().default(null),
  /** The scope of a key: the connection over which it arrived, or the acquirer, over all connections and restarts. */
  belongsTo: alternatives("connection", "acquirer"),
});

/** Null: it is not answered. */
const hostAnswer = z
  .string()
  .regex(/^[0-9A-Z]{2,3}$/, "is not a response code")
  .nullable();

/** The meaning of the host's own requests, and their answers. */
const hostRequests = z.strictObject({
  /** The field of a network message that says what it asks. Not set: 70, or 24 in ISO 8583:1993. */
  field: number.optional(),
  /** By that field's value: what it means, and field 39 of the answer. Not set: the standard's. */
  values: z
    .record(
      z.string().min(1).max(20),
      z.strictObject({
        /** `key`: a key that no `keyExchange` takes. */
        means: alternatives("signOn", "signOff", "echo", "cutover", "key", "other"),
        answer: hostAnswer.default("00"),
      }),
    )
    .optional(),
  /** Field 39 of the answer to any other value: what is not known is not approved. Each is an event. */
  others: hostAnswer.default("40"),
  /** Field 39 of the answer to an advice, by its type: each is an event. */
  advices: z.record(z.string().regex(/^0[1-8]\d0$/, "is not a message type, such as 0420"), hostAnswer).default({
    "0420": "00",
    "0620": "00",
  }),
});

/** A host's profile in its file: everything that distinguishes this host's messages. */
export const profileSchema = z.strictObject({
  name: z.string().min(1).max(64),
  framing: z.strictObject({
    /** The format of the length (bytes, BCD or ASCII digits), and their number. */
    length: alternatives("binary2", "binary4", "bcd2", "ascii4"),
    countsItself: z.boolean(),
    /** After the length: identifier, destination, origin. Empty: the host has none. */
    tpdu: z.string().regex(/^(?:[0-9A-Fa-f]{10})?$/, "must be five bytes in hexadecimal, or empty"),
  }),
  encoding: encoding.extend({ text: encoding.shape.text.default("ascii") }),
  /** The version of ISO 8583 whose formats its fields have, and whose codes its answers. */
  standard: alternatives("1987", "1993").default("1987"),
  /** The fields in which this host differs from the standard. */
  fields: z.record(fieldNumber, field),
  /** The fields that hold elements, each with a tag and a length. */
  structures: z.record(fieldNumber, structure).default({}),
  /** The time zone of fields 12 and 13 (1993: of field 12). */
  localTimeZone: timeZone,
  /** The time zone of field 7; UTC by the standard. */
  transmissionTimeZone: timeZone,
  currencies: z.record(
    z.string().regex(/^[A-Z]{3}$/, "is not a currency such as VND"),
    z.strictObject({
      number: z.string().regex(/^\d{3}$/, "must be three digits"),
      /** Decimals of the amounts that this host counts in; some take dong with two. */
      exponent: z.number().int().min(0).max(4),
    }),
  ),
  /** Field 39 of an approval, besides 00, and 10 for a part of the amount. */
  approvals: z.array(responseCode),
  /** Field 39 of a decline, besides the codes of ISO 8583:1987. An approval code beside any other code is in doubt. */
  declines: z.array(responseCode).default([]),
  /** Whether an approval of a part of the amount is accepted, for commands that allow it, or always reversed. */
  partialApprovals: alternatives("accept", "reverse").default("reverse"),
  /** From this host's codes to ISO 8583:1987's. Those of ISO 8583:1993 are known, if that is the standard. */
  responseCodes: z.record(z.string(), responseCode),
  /** From a command's swipeType to field 22; the one under the empty name is every other's. */
  entryModes: z.record(
    z.string(),
    z.string().regex(/^(?:\d{3}|[0-9A-Z]{12})$/, "must be three digits, or 12 characters"),
  ),
  cardTokens: pattern,
  messages: z.strictObject({
    SALE: message,
    PREAUTH: message,
    PREAUTH_COMPLETE: message,
    /** Null if the host does not support it: a Refund then ends as 91. */
    REFUND: message.nullable(),
    VOID: message,
    REVERSAL: message,
    SETTLEMENT: message,
    /** The Settlement that follows a Batch Upload. */
    SETTLEMENT_AFTER_UPLOAD: message,
    BATCH_UPLOAD: message,
    LOGON: message,
  }),
  /** The link's own messages; null if the host does not support them. */
  network: z.strictObject({
    /** The sessions that the host allows at a time: one for each instance, or one in all. */
    sessions: alternatives("each", "one").default("each"),
    connections: z.number().int().min(1).max(16).default(1),
    signOn: message.nullable(),
    echo: message.nullable(),
    signOff: message.nullable(),
    hostRequests: hostRequests.default(() => hostRequests.parse({})),
  }),
  /** The fields that an answer repeats, and that no other current request shares, in addition to its type. */
  matchBy: z.array(number).min(1),
  /** The fields of an answer that the ledger keeps; null: this host gives none. */
  answer: z.strictObject({
    responseCode: numberOrPlace,
    approveCode: numberOrPlace.nullable(),
    refId: numberOrPlace.nullable(),
    tc: numberOrPlace.nullable(),
    /** The issuer's answer to the chip: 55, if the host returns it. */
    emv: numberOrPlace.nullable().default(null),
    /** The field with the day on which a Settlement's money moves, in most cases 15. */
    settlementDate: number.nullable().default(null),
    /** The fields with the host's own totals of a Settlement, such as 63, or 74 to 89. */
    totals: z.array(number).default([]),
  }),
  mac: z
    .strictObject({
      algorithm: alternatives("x9.19", "aes-cmac"),
      /** The field that holds it, or the last one of its message: 128 after any field above 64, otherwise 64. */
      field: z.union([z.literal(64), z.literal(128), z.literal("last")]).default("last"),
      /** All before it, the message without it, or the message with zeros in its place. */
      covers: alternatives("before", "without", "zeros").default("before"),
      /** The padding of X9.19; AES-CMAC has its own. */
      padding: alternatives("zeros", "bit").default("zeros"),
      /** Sign-on and echo carry one too. */
      networkMessages: z.boolean(),
      /** Null: the key is the registered one. */
      keyExchange: keyExchange.nullable().default(null),
    })
    .nullable(),
  timings: z.strictObject({
    connectTimeoutMs: z.number().int().min(100).max(60_000),
    networkTimeoutMs: z.number().int().min(100).max(60_000),
    echoEveryMs: z.number().int().min(100).max(3_600_000),
    /** After its time-out a message may still be booked for so long. */
    reversalMarginMs: z.number().int().min(0).max(3_600_000).default(reversalMarginMsDefault),
  }),
  /** Private fields that hold no card data, and may be shown in a trace. */
  shownFields: z.array(number),
  /** The form of the acquirer's clearing or settlement files. Absent: it sends none. */
  clearing: clearingSchema.optional(),
});

export type Profile = Readonly<z.infer<typeof profileSchema>>;
export type KeyExchangeProfile = Readonly<z.infer<typeof keyExchange>>;
export type Structure = Readonly<z.infer<typeof structure>>;
export type MessageTemplate = Profile["messages"]["SALE"];
export type MessageName = keyof Profile["messages"];
export type NetworkName = "signOn" | "echo" | "signOff" | "keyRequest";

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function isPattern(source: string): boolean {
  try {
    new RegExp(source);
    return true;
  } catch {
    return false;
  }
}
