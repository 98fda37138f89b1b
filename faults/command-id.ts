/**
 * All names of a command are made from its number, which can be read back: so the journal needs no table of names,
 * and a million commands fit into a few bytes each.
 */
const merchantTransIdForm = /^f-(\d+)$/;

export function merchantTransIdOf(no: number): string {
  return `f-${no}`;
}

export function externalIdOf(no: number): string {
  return `x-${no}`;
}

/** The number in a merchantTransId; undefined for one that is not ours. */
export function numberOf(merchantTransId: string): number | undefined {
  const [, digits] = merchantTransIdForm.exec(merchantTransId) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** A UUID v4 that holds the number in its last twelve digits. */
export function reqIdOf(no: number): string {
  return `fa170000-0000-4000-8000-${no.toString(16).padStart(12, "0")}`;
}

export function numberOfReqId(reqId: string): number {
  return Number.parseInt(reqId.slice(-12), 16);
}

/** In VND, without decimals; neighbours differ, so that a swapped amount is noticed. */
export function amountOf(no: number): number {
  return 1_000 + ((no * 7_919) % 89_989);
}
