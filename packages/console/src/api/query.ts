import {
  type InfiniteData,
  keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  type QueryKey,
  useInfiniteQuery,
} from "@tanstack/react-query";
import { CallError } from "./call.ts";

const listeners = new Set<() => void>();

/** @returns what ends it */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Of every call: without a session the sign-in opens. */
export function noticeFailure(error: unknown): void {
  if (error instanceof CallError && (error.isSignedOut || error.code === "csrf")) {
    for (const listener of listeners) listener();
  }
}

/** A failure that may pass by itself: no connection, also of a proxy, or the service says that it is unavailable. */
export function isPassing(error: unknown): boolean {
  return error instanceof CallError && [0, 502, 503, 504].includes(error.status);
}

/** Also how long the page may not know that the service is back. */
const retryMsMax = 4_000;

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeFailure }),
  mutationCache: new MutationCache({ onError: noticeFailure }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (_, error) => isPassing(error),
      retryDelay: (attempt) => Math.min(1_000 * 2 ** attempt, retryMsMax),
    },
  },
});

interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

export const pageRows = 50;

/** A list that the API answers by pages. Its data are the items of the pages read so far, and where the next begins. */
export function usePages<Item>(
  queryKey: QueryKey,
  read: (
    page: { readonly limit: number; readonly after: string | undefined },
    options: { readonly signal: AbortSignal },
  ) => Promise<ListPage<Item>>,
  /** Rows stay until they are asked for again: also while the next list is read. */
  isStill = false,
) {
  return useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => read({ limit: pageRows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    select: ({ pages }: InfiniteData<ListPage<Item>>) => ({
      items: pages.flatMap(({ items }) => items),
      next: pages.at(-1)?.next ?? null,
    }),
    ...(isStill && { placeholderData: keepPreviousData, staleTime: Number.POSITIVE_INFINITY }),
  });
}
