import type { Api, Query } from "./api.ts";

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

const pageItems = 500;

/** Every item of a paged list. @param onProgress called after each page, with the number read */
export async function readPages<Item>(
  api: Api,
  path: string,
  query: Query = {},
  { itemsMax = Number.POSITIVE_INFINITY, onProgress }: { itemsMax?: number; onProgress?: (count: number) => void } = {},
): Promise<readonly Item[]> {
  const all: Item[] = [];
  let after: string | undefined;
  for (;;) {
    const limit = Math.min(pageItems, itemsMax - all.length);
    const page = await api.get<Page<Item>>(path, { ...query, after, limit });
    for (const item of page.items) all.push(item);
    onProgress?.(all.length);
    if (page.next === null || all.length >= itemsMax) return all.slice(0, itemsMax);
    after = page.next;
  }
}
