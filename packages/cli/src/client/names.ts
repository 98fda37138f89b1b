import type { Self } from "@paybell/partner/client";
import { Failure } from "../shell/failure.ts";
import { columns, printable } from "../shell/output.ts";
import type { Api } from "./api.ts";
import { readPages } from "./lists.ts";

/** A partner as the operator API and GET /v1/self answer it. */
export type RegisteredPartner = Pick<Self, "id" | "state" | "settings" | "keys" | "createdAt">;

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Something that a command takes by its id or by a name. */
export interface Named {
  readonly id: string;
  readonly names: readonly string[];
}

/**
 * The one that is meant by an id, or by a name in any case of its letters.
 *
 * @param lister the command that lists them
 * @throws Failure if there is none, or several have the name: it lists them
 */
export function meant<One extends Named>(all: readonly One[], text: string, noun: string, lister: string): One {
  const named = (is: (name: string) => boolean) => all.filter(({ names }) => names.some(is));
  const exact = all.filter(({ id }) => id.toLowerCase() === text.toLowerCase());
  const same = exact.length > 0 ? exact : named((name) => name === text);
  const found = same.length > 0 ? same : named((name) => name.toLowerCase() === text.toLowerCase());
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  const remedy = `\`${lister}\` lists them.`;
  if (only === undefined) {
    throw new Failure(`there is no ${noun} ${JSON.stringify(text)}.`, { code: "not_found", remedy });
  }
  throw new Failure(`${found.length} have the name ${JSON.stringify(text)}: give an id.`, {
    code: "ambiguous_name",
    lines: columns(found.map(({ id, names }) => [id, ...names.map(printable)])),
    remedy,
  });
}

/** The id of the partner that an operator names. @throws Failure if there is none, or several have the name */
export async function partnerIdNamed(operator: Api, text: string): Promise<string> {
  if (uuid.test(text)) return text;
  const partners = await readPages<RegisteredPartner>(operator, "/operator/v1/partners");
  const named = partners.map(({ id, settings }) => ({ id, names: [settings.name] }));
  return meant(named, text, "partner", "paybell partner list").id;
}
