export interface Page<Item> {
  readonly items: readonly Item[];
  /** `after` of the next page; null after the last. */
  readonly next: string | null;
}

/** @param rows one more than the limit, if there are so many */
export function pageOf<Item>(rows: readonly Item[], limit: number, cursorOf: (item: Item) => string): Page<Item> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}
