import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, createElement, type ReactElement, type ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { onTestFinished, vi } from "vitest";
import { Router, type RouterOptions } from "wouter";
import type { Session } from "./api/operations.ts";
import { SessionContext } from "./session/session.ts";

const common = { csrf: "c", expiresAt: "2100-01-01T00:00:00.000Z", sandbox: false } as const;
export const admin = { kind: "operator", name: "ada", role: "admin", ...common } as const;
export const operator = { ...admin, role: "operator" } as const;
export const viewer = { ...admin, role: "viewer" } as const;
export const partner = {
  ...{ kind: "partner", name: "Cafe", partnerId: "p-1", scopes: null, view: null, ...common },
} as const satisfies Session;
/** A partner's key that may only look. */
export const reader: Session = { ...partner, scopes: ["read"] };

interface Button {
  readonly disabled: boolean | undefined;
  readonly href: string | undefined;
  readonly onClick: ((event: object) => unknown) | undefined;
}

interface Effect {
  readonly sent: readonly string[];
  /** The queries that are to be read again, by the first word of their keys. */
  readonly stale: readonly unknown[];
  /** The file that was saved: its name and text. */
  readonly saved: readonly string[];
}

/** What a page asks for and shows to a session; default: an operator. */
export interface PageCase {
  readonly of: string;
  readonly page: ReactElement;
  readonly search?: string;
  readonly session?: Session;
  /** Its calls, in order; those that every page makes may be left out. */
  readonly asks: readonly string[];
  readonly lines: readonly unknown[];
}

/** What a page shows to a session. */
export interface Shown {
  /**
   * Each row of a table, entry of a list, named value and state as text, in the page's order: a moment is in UTC, and a
   * link is followed by its address.
   */
  readonly lines: readonly string[];
  /** The tones of its states and figures, in the page's order. */
  readonly tones: readonly string[];
  /** What is typed into its fields, by their labels; of a hidden one with dots in front. */
  readonly typed: Readonly<Record<string, string>>;
  /** What it asked for. */
  readonly asked: readonly string[];
  /** The buttons that can be clicked, those of its dialogs included. */
  readonly buttons: readonly string[];
  /** Clicks the last button of this name. */
  click(name: string): Promise<Effect>;
}

/** Draws a page once all that it asks for is answered. `answers`: by address; all else is an empty list. */
export async function show(
  page: ReactElement,
  session: Session,
  answers: Readonly<Record<string, unknown>>,
  search = "",
): Promise<Shown> {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  let recorded: Button[] = [];
  const asked: string[] = [];
  onTestFinished(() => void vi.unstubAllGlobals());
  vi.stubGlobal("fetch", async (url: string, { method, body }: { method: string; body?: string }) => {
    asked.push(`${method} ${url}${body === undefined ? "" : ` ${body}`}`);
    // Without a stream, so that all that follows on it is done within a turn of the event loop.
    return { ok: true, json: async () => answers[url.split("?")[0] ?? ""] ?? { items: [], next: null } };
  });
  const recording = {
    defaultProps: {
      renderRoot: ({ children, onClick, disabled, href }: Button & { readonly children: ReactNode }) => {
        const nth = recorded.push({ onClick, disabled, href }) - 1;
        return createElement("button", { type: "button", "data-nth": nth }, children);
      },
    },
  };
  const theme = {
    components: {
      ...{ Button: recording, MenuItem: recording },
      Modal: { defaultProps: { keepMounted: true, withinPortal: false } },
      Menu: { defaultProps: { keepMounted: true, withinPortal: false } },
    },
  };
  const inside = createElement(
    Router as ComponentType<RouterOptions>,
    { base: "/console", ssrPath: "/console", ssrSearch: search },
    page,
  );
  const within = createElement(SessionContext, { value: { session, signOut: () => undefined } }, inside);
  const whole = createElement(
    MantineProvider,
    { theme, env: "test", withCssVariables: false, withGlobalClasses: false, withStaticClasses: false } as never,
    createElement(QueryClientProvider, { client }, within),
  );
  let html = "";
  for (let isRead = false; !isRead; ) {
    recorded = [];
    html = renderToStaticMarkup(whole);
    const open = client.getQueryCache().findAll({ predicate: ({ state }) => state.status === "pending" });
    const wanted = open.filter(({ options }) => (options as { enabled?: boolean }).enabled !== false);
    isRead = wanted.length === 0;
    await Promise.allSettled(wanted.map((query) => query.fetch()));
  }
  const buttons = [...html.matchAll(/<button [^>]*data-nth="(\d+)"[^>]*>(.*?)<\/button>/gs)].flatMap(
    ([, nth = "", name = ""]) => {
      const { onClick, disabled = false, href } = recorded[Number(nth)] ?? {};
      const clicked = onClick ?? (href === undefined ? undefined : () => undefined);
      return clicked === undefined ? [] : [{ name: textOf(name), onClick: clicked, disabled }];
    },
  );
  return {
    asked,
    typed: typedIn(html),
    tones: [...html.matchAll(/ data-tone="(\w+)"/g)].map(([, tone = ""]) => tone),
    lines: [...html.replace(dialogs, "").matchAll(parts)].map(([part]) => textOf(part)),
    buttons: buttons.map(({ name, disabled }) => (disabled ? `${name} (disabled)` : name)),
    async click(name) {
      const before = asked.length;
      const button = buttons.findLast((one) => one.name === name);
      if (button === undefined) throw new Error(`There is no button ${name}.`);
      const link = { download: "", click: () => undefined };
      const files: Blob[] = [];
      vi.stubGlobal("document", { createElement: () => link });
      vi.spyOn(URL, "createObjectURL").mockImplementation((file) => `blob:${files.push(file as Blob)}`);
      button.onClick({ stopPropagation: () => undefined });
      await vi.waitUntil(() => asked.length > before || files.length > 0);
      await new Promise((done) => setImmediate(done));
      vi.restoreAllMocks();
      const stale = client.getQueryCache().findAll({ predicate: ({ state }) => state.isInvalidated });
      const saved = await Promise.all(files.map((file) => file.text()));
      return {
        sent: asked.slice(before),
        stale: stale.map(({ queryKey }) => queryKey[0]),
        saved: saved.flatMap((text) => [link.download, text]),
      };
    },
  };
}

const dialogs = /<section [^>]*role="dialog".*?<\/section>/gs;
const parts = new RegExp(
  [
    ...["<tr.*?</tr>", "<dt>.*?</dd>", "<li.*?</li>", '<(?:a|div) [^>]*class="figure".*?</div></(?:a|div)>'],
    '<(\\w+) [^>]*role="status"[^>]*>.*?</\\1>',
  ].join("|"),
  "gs",
);

function typedIn(html: string): Record<string, string> {
  const labels = new Map(
    [...html.matchAll(/<label [^>]*for="([^"]*)"[^>]*>(.*?)<\/label>/gs)].map(([, id = "", label = ""]) => [
      id,
      textOf(label).replace(" *", ""),
    ]),
  );
  const fields = [...html.matchAll(/<(?:input|textarea) ([^>]*)>([^<]*)/g)].map(([, tag = "", inside = ""]) => {
    const attribute = (name: string) => new RegExp(`(?:^| )${name}="([^"]*)"`).exec(tag)?.[1];
    const label = labels.get(attribute("id") ?? "") ?? attribute("aria-label") ?? "";
    const value = textOf(attribute("value") ?? inside);
    return [label, attribute("type") === "password" ? `••• ${value}` : value];
  });
  return Object.fromEntries(fields.filter(([label]) => label !== ""));
}

function textOf(html: string): string {
  return html
    .replace(/<time dateTime="([^"]*)".*?<\/time>/gi, "$1")
    .replace(/<a [^>]*?href="(?:\/console)?([^"]*)"[^>]*>(.*?)<\/a>/gs, "$2 → $1 ")
    .replace(/<\/t[dh]><t[dh]\b[^>]*>/g, " | ")
    .replace(/<\/dt>/g, ": ")
    .replace(/<(?:div|p|br)\b[^>]*>/g, " ")
    .replace(/<[^>]*>/g, "")
    .replaceAll("&amp;", "&")
    .replaceAll("&#x27;", "'")
    .replaceAll("&quot;", '"')
    .replaceAll("&gt;", ">")
    .replace(/\s+/g, " ")
    .trim();
}
