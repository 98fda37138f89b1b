import type { Api, Query } from "../api.ts";

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

const pageItems = 500;

/** Every item of a list that is read in pages, up to `itemsMax`. */
export async function* every<Item>(
  api: Api,
  path: string,
  query: Query = {},
  itemsMax = Number.POSITIVE_INFINITY,
): AsyncGenerator<Item> {
  let after: string | undefined;
  let given = 0;
  for (;;) {
    const limit = Math.min(pageItems, itemsMax - given);
    const page = await api.get<Page<Item>>(path, { ...query, after, limit });
    for (const item of page.items) {
      yield item;
      given += 1;
      if (given >= itemsMax) return;
    }
    if (page.next === null) return;
    after = page.next;
  }
}
