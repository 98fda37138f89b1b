// The allowed imports between places: dependencies point inward. A place may import itself and what it names here.
// `types`: types only. `common` is for every folder of the server; `server` is what all of them use.

const common = ["contract", "server"];

/** @type {Record<string, { path: string, imports?: string[], types?: string[], dynamic?: string[] }>} */
const places = {
  contract: { path: "^packages/contract/src/" },
  partner: {
    path: "^packages/partner/src/(?!stores/|errors/)",
    imports: ["contract", "partner/stores", "partner/errors"],
  },
  "partner/stores": {
    path: "^packages/partner/src/stores/",
    imports: ["contract", "partner/errors"],
    types: ["partner"],
  },
  "partner/errors": { path: "^packages/partner/src/errors/", imports: ["contract"] },
  cli: { path: "^packages/cli/src/", imports: ["contract", "partner"], dynamic: ["server/index"] },
  console: { path: "^packages/console/src/", imports: ["contract"], types: ["partner"] },
  server: {
    path: "^packages/server/src/(config/|guards/|telemetry/|(?!app\\.ts|index\\.ts)[^/]+\\.ts$)",
    imports: ["contract"],
  },
  ...folder("commands", [], ["ipn"]),
  ...folder("ipn"),
  ...folder("partners"),
  ...folder("leases"),
  ...folder("operators"),
  ...folder("backups"),
  ...folder("kms"),
  ...folder("postgres"),
  ...folder("acquirer", [], ["commands"]),
  ...folder("ledger", ["commands", "ipn", "acquirer", "partners"], ["leases"]),
  ...folder("delivery", ["partners", "ipn"], ["leases"]),
  ...folder("notifications", ["partners", "ipn", "delivery"], ["backups"]),
  ...folder("callbacks", ["partners", "delivery", "notifications"], [], ["partner"]),
  ...folder("alerts", ["delivery", "partners", "acquirer"], ["operators"]),
  ...folder("input", ["commands", "partners"]),
  ...folder("intake", ["input", "ledger", "commands", "partners"]),
  ...folder("clearing", ["commands", "ipn", "intake"], ["acquirer"]),
  ...folder("feed", ["delivery", "notifications", "operators"], ["alerts"]),
  ...folder("tracing", ["acquirer"], ["ledger", "delivery"]),
  ...folder(
    "http",
    [
      "feed",
      "input",
      "intake",
      "clearing",
      "ledger",
      "delivery",
      "notifications",
      "partners",
      "operators",
      "commands",
      "ipn",
    ],
    ["acquirer", "backups", "callbacks"],
    ["partner"],
  ),
  ...folder(
    "store",
    ["ipn"],
    [
      ...["acquirer", "alerts", "backups", "clearing", "commands", "delivery", "feed", "intake", "leases", "ledger"],
      ...["notifications", "operators", "partners"],
    ],
  ),
};
/** Files that wire everything. */
const wiring = "^packages/server/src/(app\\.ts$|app/|programs/|index\\.ts$|sandbox/)";
/** The store takes over no behaviour, but may import these constants. */
const constants = "^packages/server/src/(delivery/limits/circuits?|alerts/kinds|backups/restores)\\.ts$";
const notShipped = "\\.(test|fixture)\\.tsx?$|/testing/|/conformance\\.ts$";

function folder(name, imports = [], types = [], packages = []) {
  const inServer = (names) => names.map((one) => `server/${one}`);
  const allowed = { imports: [...common, ...packages, ...inServer(imports)], types: inServer(types) };
  return { [`server/${name}`]: { path: `^packages/server/src/${name}/`, ...allowed } };
}

const pathsOf = (names) => names.map((name) => places[name]?.path ?? "^packages/server/src/index\\.ts$");

const rules = Object.entries(places).flatMap(([name, { path, imports = [], types = [], dynamic = [] }]) => {
  const from = { path, pathNot: notShipped };
  const allowed = [path, ...pathsOf([...imports, ...types, ...dynamic])];
  const list = (names, how = "") => names.map((one) => `${one}${how}`);
  const may = [...list(imports), ...list(types, " (types)"), ...list(dynamic, " (by import())")].join(", ");
  const rule = (what, to) => ({
    name: `${name} ${what}`,
    comment: `${name} may import ${may || "nothing of ours"}. Own the interface, and let app.ts pass the implementation.`,
    severity: "error",
    from,
    to,
  });
  return [
    rule("imports only what the layout allows", { path: "^packages/", pathNot: allowed }),
    ...(types.length === 0
      ? []
      : [
          rule("imports types only", { path: pathsOf(types), pathNot: [constants], dependencyTypesNot: ["type-only"] }),
        ]),
    ...(dynamic.length === 0 ? [] : [rule("imports by import() only", { path: pathsOf(dynamic), dynamic: false })]),
  ];
});

export default {
  forbidden: [
    ...rules,
    {
      name: "every folder is in the layout",
      severity: "error",
      from: { path: "^packages/[^/]+/src/", pathNot: [notShipped, wiring, ...pathsOf(Object.keys(places))] },
      to: { path: "^packages/" },
    },
    {
      name: "packages import each other by name",
      severity: "error",
      from: { path: "^packages/([^/]+)/src/", pathNot: notShipped },
      to: { path: "^packages/", pathNot: "^packages/$1/", dependencyTypes: ["local"] },
    },
    { name: "every import is found", severity: "error", from: { pathNot: notShipped }, to: { couldNotResolve: true } },
  ],
  options: {
    // Its other parsers are TypeScript 6, whose API version 7 does not have, and acorn, which sees no types.
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: notShipped },
    enhancedResolveOptions: {
      conditionNames: ["paybell-source", "import", "node", "default"],
      exportsFields: ["exports"],
    },
  },
};
