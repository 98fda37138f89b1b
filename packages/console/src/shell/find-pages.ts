import { api } from "../api/call.ts";
import type { Partner, Session } from "../api/operations.ts";
import { pagesOf } from "./pages.ts";

/** Something of the console that is no notification: its page, and what tells it apart. */
export interface FoundPage {
  readonly kind: "Page" | "Partner" | "Terminal" | "Operator" | "Setting";
  readonly name: string;
  readonly about: string;
  readonly to: string;
}

const eachMax = 8;

/** Finds partners, terminals, operators, settings and pages by name; for a partner's session, pages only. */
export async function findPages(
  q: string,
  session: Session,
  partners: readonly Partner[],
): Promise<readonly FoundPage[]> {
  const wanted = q.toLowerCase();
  const has = (text: string) => text.toLowerCase().includes(wanted);
  const menu = pagesOf(session)
    .filter(({ label }) => label.toLowerCase().startsWith(wanted))
    .map(({ label, to }): FoundPage => ({ kind: "Page", name: label, about: "", to }));
  if (session.kind === "partner") return menu;
  const [terminals, operators, settings] = await Promise.all([
    api.findTerminals({ q: q.slice(0, 128) }),
    session.role === "admin" ? api.listOperators() : { items: [] },
    api.listSettings(),
  ]);
  const ofPartner = (id: string) => partners.find((one) => one.id === id)?.settings.name ?? id;
  return [
    ...menu,
    ...partners
      .filter(({ id, settings: { name } }) => has(name) || id === q)
      .slice(0, eachMax)
      .map(
        ({ id, settings }): FoundPage => ({
          kind: "Partner",
          name: settings.name,
          about: settings.callBackUrl ?? "",
          to: `/partners/${id}`,
        }),
      ),
    ...terminals.items.slice(0, eachMax).map(
      ({ tid, mid, merchantName, partnerId }): FoundPage => ({
        kind: "Terminal",
        name: tid,
        about: [merchantName, mid, ofPartner(partnerId)].filter(Boolean).join(" · "),
        to: `/partners/${partnerId}?tab=terminals`,
      }),
    ),
    ...operators.items
      .filter(({ name }) => has(name))
      .slice(0, eachMax)
      .map(({ name, role }): FoundPage => ({ kind: "Operator", name, about: role, to: "/operators" })),
    ...settings.items
      .filter(({ name }) => wanted.length > 3 && has(name))
      .slice(0, eachMax)
      .map(
        ({ name, meaning }): FoundPage => ({
          kind: "Setting",
          name,
          about: meaning,
          to: `/settings?${new URLSearchParams({ q: name })}`,
        }),
      ),
  ];
}
