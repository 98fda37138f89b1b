/** The card facts of a transaction that a Void or PreAuth-Complete refers to, by the names of section 2.2. */
export interface OriginalFacts {
  readonly fields: Readonly<Record<string, string>>;
}

/** What the successor of a transaction may be given in its own request. */
export interface OwnFields {
  readonly reqId: string;
  readonly merchantTransId?: string | undefined;
  readonly billId?: string | undefined;
  readonly extraData?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly appName?: string | undefined;
}

const givable = ["merchantTransId", "billId", "extraData", "deviceId", "appName"] as const;

/** What the terminal gives to the successor of a transaction. */
export interface SuccessorNumbers {
  readonly traceNo: string;
  /** Of the batch that it belongs to. */
  readonly batchNo: string;
  /** Its own, where it took one. */
  readonly invoiceNo: string;
}

/** Where a successor stands, when that is another terminal than its original's. */
export interface OtherTerminal {
  readonly tid: string;
  /** As registered; empty where nothing is. */
  readonly deviceId: string;
  readonly appName: string;
}

/**
 * The fields of a Void, PreAuth-Complete or Refund at INIT: all of its original's, but those it was given and those
 * that are its own. At another terminal, that one's id and device are among these. An empty text counts as absent.
 */
export function inherit(
  original: OriginalFacts,
  request: OwnFields,
  numbers: SuccessorNumbers,
  start: { readonly id: string; readonly atMs: number },
  elsewhere?: OtherTerminal,
): Readonly<Record<string, string>> {
  const fields: Record<string, string> = { ...original.fields, ...elsewhere };
  if (numbers.invoiceNo !== "") fields["invoiceNo"] = numbers.invoiceNo;
  for (const name of givable) {
    const value = request[name];
    if (value !== undefined && value !== "") fields[name] = value;
  }
  return {
    ...fields,
    id: start.id,
    reqId: request.reqId,
    traceNo: numbers.traceNo,
    batchNo: numbers.batchNo,
    transDateTime: new Date(start.atMs).toISOString(),
    status: "INIT",
    isoResponseCode: "",
    refId: "",
  };
}

/** The acquirer's own where it sent one. */
export function answeredOr(answered: string, inherited: string | undefined): string {
  return answered === "" ? (inherited ?? "") : answered;
}
