/**
 * The allowed imports of one place from another.
 *
 * - `any`: everything.
 * - `type`: types only.
 * - `interface`: types, and literal constants: nothing of it runs.
 * - `dynamic`: through `import()` only, so that it need not be installed.
 */
export type Allowance = "any" | "type" | "interface" | "dynamic";

const COMMON = { contract: "any", "server/*": "any" } as const;

/**
 * The allowed imports between places: dependencies point inward. `server/*` are the files directly in
 * packages/server/src (errors, config, ids, clock …). A place may always import itself. Everything else is forbidden.
 */
export const LAYOUT: Readonly<Record<string, Readonly<Record<string, Allowance>> | "everything">> = {
  contract: {},
  partner: { contract: "any", "partner/stores": "any", "partner/errors": "any" },
  "partner/stores": { contract: "any", partner: "type", "partner/errors": "any" },
  "partner/errors": {},
  cli: { contract: "any", partner: "any", server: "dynamic" },
  console: { contract: "any" },
  "server/*": { contract: "any" },
  "server/commands": COMMON,
  "server/ipn": COMMON,
  "server/partners": COMMON,
  "server/leases": COMMON,
  "server/operators": COMMON,
  "server/acquirer": { ...COMMON, "server/commands": "type" },
  "server/ledger": {
    ...COMMON,
    "server/commands": "any",
    "server/ipn": "any",
    "server/acquirer": "any",
    "server/partners": "any",
    "server/leases": "type",
  },
  "server/delivery": { ...COMMON, "server/partners": "any", "server/ipn": "any", "server/leases": "type" },
  "server/notifications": {
    ...COMMON,
    "server/partners": "any",
    "server/ipn": "any",
    "server/delivery": "any",
    "server/backups": "type",
  },
  "server/backups": COMMON,
  "server/callbacks": {
    ...COMMON,
    partner: "any",
    "server/partners": "any",
    "server/delivery": "any",
    "server/notifications": "any",
  },
  "server/alerts": { ...COMMON, "server/delivery": "any" },
  "server/feed": {
    ...COMMON,
    "server/alerts": "interface",
    "server/delivery": "any",
    "server/notifications": "any",
    "server/operators": "any",
  },
  "server/store": {
    ...COMMON,
    "server/ipn": "any",
    "server/commands": "type",
    "server/acquirer": "type",
    "server/ledger": "interface",
    "server/delivery": "interface",
    "server/notifications": "interface",
    "server/alerts": "interface",
    "server/intake": "interface",
    "server/clearing": "interface",
    "server/leases": "interface",
    "server/partners": "interface",
    "server/operators": "interface",
    "server/backups": "interface",
    "server/feed": "interface",
  },
  "server/clearing": {
    ...COMMON,
    "server/acquirer": "type",
    "server/commands": "any",
    "server/ipn": "any",
    "server/intake": "type",
  },
  "server/input": { ...COMMON, "server/commands": "any", "server/partners": "any" },
  "server/intake": {
    ...COMMON,
    "server/input": "any",
    "server/ledger": "any",
    "server/commands": "any",
    "server/partners": "any",
  },
  "server/http": {
    ...COMMON,
    "server/feed": "any",
    "server/input": "any",
    "server/intake": "any",
    "server/clearing": "any",
    partner: "any",
    "server/callbacks": "type",
    "server/ledger": "any",
    "server/delivery": "any",
    "server/notifications": "any",
    "server/partners": "any",
    "server/operators": "any",
    "server/acquirer": "type",
    "server/backups": "type",
    "server/commands": "any",
    "server/ipn": "any",
  },
  "server/tracing": {
    ...COMMON,
    "server/acquirer": "any",
    "server/ledger": "type",
    "server/delivery": "type",
  },
  "server/kms": COMMON,
  "server/postgres": { "server/*": "any" },
  "server/sandbox": "everything",
  "server/app.ts": "everything",
  "server/index.ts": "everything",
};

/** The only places that speak SQL: the service's own, and what a partner keeps in a database of theirs. */
export const WITH_SQL: ReadonlySet<string> = new Set(["server/store", "server/postgres", "partner/stores"]);

/** Folders with the parts of a file next to them, under the same rules as that file. */
const PARTS_OF_A_FILE: ReadonlyMap<string, string> = new Map([
  ["config", "server/*"],
  ["app", "server/app.ts"],
]);

/** The place a file belongs to, or undefined when it lies outside of packages/<name>/src. */
export function placeOf(path: string): string | undefined {
  const [, name, rest] = /^packages\/([^/]+)\/src\/(.+)$/.exec(path) ?? [];
  if (name === undefined || rest === undefined) return undefined;
  if (name === "partner" && rest.startsWith("stores/")) return "partner/stores";
  if (name === "partner" && ["misused.ts", "paybell-error.ts"].includes(rest)) return "partner/errors";
  if (name !== "server") return name;
  const [folder = ""] = rest.split("/");
  if (rest.includes("/")) return PARTS_OF_A_FILE.get(folder) ?? `server/${folder}`;
  return rest === "app.ts" || rest === "index.ts" ? `server/${rest}` : "server/*";
}
