import type { ReactNode } from "react";
import { Link } from "wouter";
import type { api } from "../api/call.ts";
import { pageOf } from "../money/page-of.ts";

export type AuditItem = Awaited<ReturnType<typeof api.searchAudit>>["items"][number];

/** The names of things by their ids. */
export interface Names {
  partner(id: string): string | undefined;
  operator(id: string): string | undefined;
}

/** An operationId as words, such as "rotate key". */
export function actionInWords(action: string): string {
  return action.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The actor by name: a partner's key has its partner's id. */
export function actorInWords({ actor }: AuditItem, names: Names): string {
  const id = /^partner (\S+)$/.exec(actor)?.[1];
  return (id !== undefined && names.partner(id)) || actor;
}

/** The subject of an entry by name, with a link to its page. */
export function SubjectOf({ item, names }: { readonly item: AuditItem; readonly names: Names }): ReactNode {
  const { action, subject } = item;
  const [id = "", ...rest] = subject.split("/");
  if (id === "") return null;
  const partner = names.partner(id);
  if (partner !== undefined) {
    const isTerminal = /terminal/i.test(action);
    const page = isTerminal ? `/partners/${id}?tab=terminals` : `/partners/${id}`;
    const more = rest.length === 0 ? "" : isTerminal ? `terminal ${rest.join("/")}` : shortened(rest.join("/"));
    return (
      <>
        <div>
          <Link href={page}>{partner}</Link>
        </div>
        {more !== "" && <div>{more}</div>}
      </>
    );
  }
  const operator = names.operator(id);
  if (operator !== undefined) return <Link href="/operators">operator {operator}</Link>;
  const page = pageFor(action, id);
  const text = <span title={subject}>{shortened(subject)}</span>;
  return page === undefined ? (
    text
  ) : (
    <Link href={page.to}>
      {page.what} {text}
    </Link>
  );
}

function pageFor(action: string, id: string): { to: string; what: string } | undefined {
  if (/notification$|proveDelivery/i.test(action)) return { to: `/notifications/${id}`, what: "notification" };
  if (/Reversal$/.test(action)) return { to: pageOf({ id, command: "SALE" }), what: "transaction" };
  if (/Settlement$/.test(action)) return { to: pageOf({ id, command: "SETTLEMENT" }), what: "settlement" };
  if (/Acquirer$/.test(action)) return { to: "/acquirers", what: "acquirer" };
  if (/Exception$/.test(action)) return { to: "/clearing", what: "clearing exception" };
  return undefined;
}

function shortened(text: string): string {
  return /^[0-9a-f-]{36}$/.test(text) ? `${text.slice(0, 8)}…${text.slice(-4)}` : text;
}

/** The change that an action made, a line for each value that differs. */
export function changesOf({ before, after }: AuditItem): readonly string[] {
  const [was, is] = [flat(before), flat(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((path) => was.get(path) !== is.get(path) && !/(?:^|\.)updatedAt$/.test(path))
    .map((path) => {
      const [old, now] = [was.get(path), is.get(path)];
      if (before === null) return `${path}: ${now}`;
      return `${path}: ${old ?? "nothing"} → ${now ?? "nothing"}`;
    });
}

/** The values of a JSON text by their paths. */
function flat(json: unknown): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  const walk = (path: string, value: unknown) => {
    if (typeof value !== "object" || value === null) values.set(path || "value", String(value));
    else if (Array.isArray(value) && value.every((one) => typeof one !== "object")) values.set(path, value.join(", "));
    else for (const [name, inner] of Object.entries(value)) walk(path === "" ? name : `${path}.${name}`, inner);
  };
  if (json !== null && json !== undefined) walk("", json);
  return values;
}
