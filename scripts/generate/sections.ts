import { table } from "./document.ts";

/** A heading, and the names that belong below it. */
export type Section = readonly [title: string, names: RegExp];

/**
 * A table for each section: a name goes to the first section that it matches.
 *
 * @throws Error if a name matches no section, or a section has no name
 */
export function sectionTables<Item>(
  items: readonly Item[],
  sections: readonly Section[],
  { nameOf, columns, rowOf }: SectionTable<Item>,
): string[] {
  const titleOf = (item: Item) => {
    const found = sections.find(([, names]) => names.test(nameOf(item)));
    if (found === undefined) throw new Error(`${nameOf(item)} belongs to no section of its reference page.`);
    return found[0];
  };
  const bySection = Map.groupBy(items, titleOf);
  return sections.flatMap(([title]) => {
    const rows = bySection.get(title);
    if (rows === undefined) throw new Error(`The section ${title} of a reference page is empty.`);
    return [`## ${title}`, table(columns, rows.map(rowOf))];
  });
}

interface SectionTable<Item> {
  nameOf(item: Item): string;
  readonly columns: readonly string[];
  rowOf(item: Item): readonly string[];
}
