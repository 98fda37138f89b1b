const searchableMax = 64;

/** What people look for a transaction by: its first 64 characters, in whole ones. */
export function searchable(merchantTransId: string | undefined): string | null {
  if (merchantTransId === undefined || merchantTransId === "") return null;
  if (merchantTransId.length <= searchableMax) return merchantTransId;
  return [...merchantTransId].slice(0, searchableMax).join("");
}
