/** The card facts of an original transaction, by the names of section 2.2. */
export interface OriginalFacts {
  readonly fields: Readonly<Record<string, string>>;
}

/** Fields that a follow-up may have in its own request. */
export interface OwnFields {
  readonly reqId: string;
  readonly merchantTransId?: string | undefined;
  readonly billId?: string | undefined;
  readonly extraData?: string | undefined;
  readonly deviceId?: string | undefined;
  readonly appName?: string | undefined;
}

const givable = ["merchantTransId", "billId", "extraData", "deviceId", "appName"] as const;

/** The numbers that the terminal assigns to a follow-up. */
export interface SuccessorNumbers {
  readonly traceNo: string;
  /** The number of its batch. */
  readonly batchNo: string;
  /** Its own, if it has one. */
  readonly invoiceNo: string;
}

/** The terminal of a follow-up, if that is not its original's. */
export interface OtherTerminal {
  readonly tid: string;
  /** As registered; empty without a registration. */
  readonly deviceId: string;
  readonly appName: string;
}

/**
 * The fields of a Void, PreAuth-Complete or Refund at INIT: its original's, except those in its own request and those
 * that are always its own. At another terminal, that one's id and device are among these. An empty string counts as
 * absent.
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
