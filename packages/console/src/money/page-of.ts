/** The page of a transaction: a Settlement has one of its own kind. */
export function pageOf({ id, command }: { readonly id: string; readonly command: string }): string {
  return command === "SETTLEMENT" || command === "BATCH_UPLOAD" ? `/settlements/${id}` : `/transactions/${id}`;
}
