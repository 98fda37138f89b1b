import type { ReactNode } from "react";
import { Empty } from "./empty.tsx";
import { Failure } from "./failure.tsx";
import { More } from "./more.tsx";
import { Loading, OpeningRow } from "./rows.tsx";

/** One column of a table. */
export interface ListColumn<Item> {
  readonly name: string;
  readonly show: (item: Item) => ReactNode;
  /** `actions`: its name is not seen. `clipped`, `long`: a longer value ends in dots. `prose`: wraps between words. */
  readonly look?: "number" | "nowrap" | "mono" | "wraps" | "prose" | "clipped" | "long" | "actions";
  /** Left out of smaller windows. */
  readonly from?: "tablet" | "desktop";
}

interface TableOf<Item> {
  readonly columns: readonly ListColumn<Item>[];
  readonly keyOf: (item: Item) => string | number;
  /** The page that a row opens. */
  readonly to?: (item: Item) => string;
}

/** A dense table: it scrolls sideways rather than widen the page. */
export function Table<Item>({ columns, items, keyOf, to }: TableOf<Item> & { readonly items: readonly Item[] }) {
  const cells = (item: Item) =>
    columns.map(({ name, show, look, from }) => (
      <td key={name} className={classOf(look, from)}>
        {isCut(look) ? <div className={look === "long" ? "clipped long" : "clipped"}>{show(item)}</div> : show(item)}
      </td>
    ));
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            {columns.map(({ name, look, from }) => (
              <th key={name} scope="col" className={classOf(isAtRight(look) ? look : undefined, from)}>
                {look === "actions" ? <span className="unseen">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) =>
            to === undefined ? (
              <tr key={keyOf(item)}>{cells(item)}</tr>
            ) : (
              <OpeningRow key={keyOf(item)} to={to(item)}>
                {cells(item)}
              </OpeningRow>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** The parts of a query that a list needs; `hasNextPage` and the rest are those of an infinite one. */
interface Listed {
  readonly isPending: boolean;
  readonly error: unknown;
  refetch(): unknown;
  readonly hasNextPage?: boolean;
  readonly isFetchingNextPage?: boolean;
  fetchNextPage?(): unknown;
}

/** A table of what a query found, in each of the query's states. */
export function List<Item>({
  of,
  items,
  empty,
  ...table
}: TableOf<Item> & {
  readonly of: Listed;
  readonly items: readonly Item[];
  /** Instead of an empty table. */
  readonly empty: ReactNode;
}) {
  if (of.isPending) return <Loading />;
  if (of.error !== null && items.length === 0) return <Failure error={of.error} onRetry={() => void of.refetch()} />;
  if (items.length === 0) return typeof empty === "string" ? <Empty title={empty} /> : empty;
  const { hasNextPage = false, isFetchingNextPage = false, fetchNextPage = () => undefined } = of;
  return (
    <>
      <Table items={items} {...table} />
      <More pages={{ hasNextPage, isFetchingNextPage, fetchNextPage }} />
    </>
  );
}

function isAtRight(look: ListColumn<never>["look"]): boolean {
  return look === "number" || look === "actions";
}

function isCut(look: ListColumn<never>["look"]): boolean {
  return look === "clipped" || look === "long";
}

function classOf(look: ListColumn<never>["look"], from: ListColumn<never>["from"]): string | undefined {
  const names = [isAtRight(look) ? "number" : isCut(look) ? undefined : look, from && `from-${from}`];
  return names.filter((name) => name !== undefined).join(" ") || undefined;
}
