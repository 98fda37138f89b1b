import { z } from "zod";

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
