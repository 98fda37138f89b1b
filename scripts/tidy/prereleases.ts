import type { StyleRule, Text } from "./rule.ts";

const fields = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides"] as const;
/** The document that has the reason for each one, next to its name. */
const reasons = "docs/decisions/038-what-is-installed.md";

export const PRERELEASE_RULES: readonly StyleRule[] = [
  {
    rule: "no dependency is a prerelease without a written reason",
    remedy: `Take a release, or name the package with its reason in ${reasons}`,
    check: ({ texts }) => {
      const written = texts.find(({ path }) => path === reasons)?.text ?? "";
      return texts
        .filter(({ path }) => /(?:^|\/)package\.json$/.test(path))
        .flatMap((text) =>
          prereleasesOf(text)
            .filter((name) => !written.includes(`\`${name}\``))
            .map((name) => ({ file: text.path, line: lineOf(text, name), forbidden: `${name} is a prerelease` })),
        );
    },
  },
];

function prereleasesOf({ text }: Text): string[] {
  const manifest = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
  return fields
    .flatMap((field) => Object.entries(manifest[field] ?? {}))
    .filter(([, version]) => typeof version === "string" && /^[^-\s]*\d+\.\d+\.\d+-/.test(version))
    .map(([name]) => name);
}

function lineOf({ text }: Text, name: string): number {
  return text.split("\n").findIndex((line) => line.includes(`"${name}"`)) + 1;
}
