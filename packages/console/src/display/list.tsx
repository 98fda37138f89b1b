import { Button, Checkbox, Group } from "@mantine/core";
import { IconArrowDown, IconArrowUp } from "@tabler/icons-react";
import { Fragment, type KeyboardEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { Empty, type EmptyWords, Loaded } from "./loaded.tsx";

/** One column of a table. */
export interface ListColumn<Item> {
  readonly name: string;
  readonly show: (item: Item) => ReactNode;
  /** `head`: what a row is about. With `actions`, its name is not seen. `clipped`, `long`: a longer value ends in dots. `prose`: wraps between words. */
  readonly look?: "number" | "nowrap" | "mono" | "wraps" | "prose" | "clipped" | "long" | "head" | "actions";
  /** The rows that are loaded can be sorted by it. */
  readonly sortBy?: (item: Item) => string | number | null;
  /** Left out of smaller windows. */
  readonly from?: "tablet" | "desktop";
}

interface TableOf<Item> {
  readonly columns: readonly ListColumn<Item>[];
  readonly keyOf: (item: Item) => string | number;
  /** The page that a row opens. */
  readonly to?: (item: Item) => string;
  /** What stands under a row, over its whole width. */
  readonly below?: (item: Item) => ReactNode;
  /** The row that the rest of the page is about. */
  readonly current?: string | number | undefined;
  /** The keys of the rows that are selected for an action. */
  readonly selection?: { readonly selected: ReadonlySet<string>; onChange(selected: ReadonlySet<string>): void };
}

/** A dense table: it scrolls sideways rather than widen the page. */
export function Table<Item>(table: TableOf<Item> & { readonly items: readonly Item[] }) {
  const { columns, items, keyOf, to, below, current, selection } = table;
  const [sort, setSort] = useState<Sort>();
  const cells = (item: Item) => [
    selection !== undefined && <SelectCell key="" of={String(keyOf(item))} {...selection} />,
    ...columns.map(({ name, show, look, from }) =>
      look === "head" ? (
        <th key={name} scope="row">
          {show(item)}
        </th>
      ) : (
        <td key={name} className={classOf(look, from)}>
          {isCut(look) ? <div className={look === "long" ? "clipped long" : "clipped"}>{show(item)}</div> : show(item)}
        </td>
      ),
    ),
  ];
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            {selection !== undefined && <SelectAll keys={items.map((item) => String(keyOf(item)))} {...selection} />}
            {columns.map(({ name, look, from, sortBy }) => (
              <th
                key={name}
                scope="col"
                className={classOf(isAtRight(look) ? look : undefined, from)}
                aria-sort={sort?.by !== name ? undefined : sort.isDown ? "descending" : "ascending"}
              >
                {look === "actions" || look === "head" ? (
                  <span className="unseen">{name}</span>
                ) : sortBy === undefined || items.length < 2 ? (
                  name
                ) : (
                  <SortButton name={name} sort={sort} onSort={setSort} />
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted(items, columns, sort).map((item) =>
            to === undefined ? (
              <Fragment key={keyOf(item)}>
                <tr aria-current={current !== undefined && keyOf(item) === current ? "true" : undefined}>
                  {cells(item)}
                </tr>
                {below?.(item) && (
                  <tr>
                    <td colSpan={columns.length}>{below(item)}</td>
                  </tr>
                )}
              </Fragment>
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

interface Sort {
  readonly by: string;
  readonly isDown: boolean;
}

/** First ascending, then descending, then in the list's own order. */
function SortButton({
  name,
  sort,
  onSort,
}: {
  readonly name: string;
  readonly sort: Sort | undefined;
  onSort(sort: Sort | undefined): void;
}) {
  const isOwn = sort?.by === name;
  const next = !isOwn ? { by: name, isDown: false } : sort.isDown ? undefined : { by: name, isDown: true };
  return (
    <button type="button" className="sort" onClick={() => onSort(next)}>
      {name}
      {isOwn && (sort.isDown ? <IconArrowDown size={12} aria-hidden /> : <IconArrowUp size={12} aria-hidden />)}
    </button>
  );
}

/** Rows without a value are last, in both directions. */
function sorted<Item>(items: readonly Item[], columns: readonly ListColumn<Item>[], sort: Sort | undefined) {
  const sortBy = columns.find(({ name }) => name === sort?.by)?.sortBy;
  if (sortBy === undefined || sort === undefined) return items;
  const direction = sort.isDown ? -1 : 1;
  return items.toSorted((one, other) => {
    const [a, b] = [sortBy(one), sortBy(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (typeof a === "string" && typeof b === "string") return direction * a.localeCompare(b);
    return direction * (Number(a) - Number(b));
  });
}

type Selection = NonNullable<TableOf<never>["selection"]>;

function SelectCell({ of, selected, onChange }: Selection & { readonly of: string }) {
  return (
    <td className="select from-tablet">
      <Checkbox
        aria-label="Select"
        checked={selected.has(of)}
        onChange={({ currentTarget: { checked } }) => {
          const next = new Set(selected);
          if (checked) next.add(of);
          else next.delete(of);
          onChange(next);
        }}
      />
    </td>
  );
}

function SelectAll({ keys, selected, onChange }: Selection & { readonly keys: readonly string[] }) {
  const count = keys.filter((key) => selected.has(key)).length;
  return (
    <th scope="col" className="select from-tablet">
      <Checkbox
        aria-label="Select all that are shown"
        checked={count > 0 && count === keys.length}
        indeterminate={count > 0 && count < keys.length}
        onChange={({ currentTarget: { checked } }) => onChange(new Set(checked ? keys : []))}
      />
    </th>
  );
}

/** The parts of a query that a list needs; `hasNextPage` and the rest are those of a list by pages. */
interface Listed<Data> {
  readonly isPending: boolean;
  readonly error: unknown;
  readonly data: Data | undefined;
  refetch(): unknown;
  readonly hasNextPage?: boolean;
  readonly isFetchingNextPage?: boolean;
  fetchNextPage?(): unknown;
}

/** A table of what a query found, in each of the query's states. */
export function List<Item>({
  of,
  empty,
  ...table
}: TableOf<Item> & {
  readonly of: Listed<{ readonly items: readonly Item[] }>;
  /** Instead of an empty table. */
  readonly empty: EmptyWords;
}) {
  return (
    <Loaded of={of}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={empty[0]}>{empty[1]}</Empty>
        ) : (
          <>
            <Table items={items} {...table} />
            {of.hasNextPage === true && (
              <Group justify="center" mt="sm">
                <Button variant="default" loading={of.isFetchingNextPage === true} onClick={() => of.fetchNextPage?.()}>
                  Show more
                </Button>
              </Group>
            )}
          </>
        )
      }
    </Loaded>
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

/** A row that opens a page: by a click, by Enter, and by j and k from row to row. */
function OpeningRow({ to, children }: { readonly to: string; readonly children: ReactNode }) {
  const [, navigate] = useLocation();
  return (
    <tr
      data-opens
      tabIndex={-1}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest("a, button, input") === null) navigate(to);
      }}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Enter" && event.target === event.currentTarget) navigate(to);
      }}
    >
      {children}
    </tr>
  );
}

/** Puts the focus on the next row that opens something, or the one before. */
export function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("tr[data-opens]")];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}
