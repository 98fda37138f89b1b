import { linesMatching, type StyleRule } from "./rule.ts";

export const REGISTRY_RULES: readonly StyleRule[] = [
  {
    rule: "no file names a package registry: each machine has its own",
    remedy: "Keep `omit-lockfile-registry-resolved=true` in .npmrc and write the lock file anew with `npm install`",
    check: ({ texts }) =>
      texts.flatMap((text) => {
        const name = text.path.split("/").at(-1);
        const host = () => "a registry's address stands here";
        if (name === "package-lock.json") return linesMatching(text, /"resolved":\s*"(?:git\+)?https?:/, host);
        if (name === ".npmrc")
          return linesMatching(text, /^(?!\s*[#;]).*\/\/[\w.-]+|^\s*(?:@[^:]+:)?registry\s*=/, host);
        return [];
      }),
  },
];
