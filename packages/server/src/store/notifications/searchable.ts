const searchableMax = 64;

/** The searchable prefix of a merchantTransId: 64 whole characters. */
export function searchable(merchantTransId: string | undefined): string | null {
  if (merchantTransId === undefined || merchantTransId === "") return null;
  if (merchantTransId.length <= searchableMax) return merchantTransId;
  return [...merchantTransId].slice(0, searchableMax).join("");
}
