import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NameServer, type NameServerFault } from "./name-server.ts";

const names = new NameServer("192.0.2.77");
beforeAll(() => names.listen());
afterAll(() => names.close());

const hook = pathToFileURL(join(import.meta.dirname, "name-hook.ts")).href;
/** As the service asks: by a resolver, and by getaddrinfo. */
const asking = (timeoutMs: number) => `
  import { promises as dns } from "node:dns";
  const outcomeOf = (asked) => asked.then(String, (error) => error.code);
  const all = async () => [
    await outcomeOf(new dns.Resolver({ timeout: ${timeoutMs}, tries: 1 }).resolve4("shop.partners.test")),
    await outcomeOf(dns.lookup("shop.partners.test", { all: true }).then(([found]) => found.address)),
  ];
  console.log(JSON.stringify(await all()));
`;

async function asked(trouble: NameServerFault | undefined): Promise<unknown> {
  names.behave(trouble);
  const args = [
    "--import",
    `${hook}?${names.at}`,
    "--input-type=module",
    "--eval",
    asking(trouble === "silent" ? 300 : 600_000),
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

test("a process with the hook asks our name server, by a resolver and by getaddrinfo", async () => {
  const before = names.asked;
  expect(await asked(undefined)).toEqual(["192.0.2.77", "192.0.2.77"]);
  expect(names.asked).toBe(before + 2);
});

test.each([
  ["unknown", "ENOTFOUND"],
  ["failing", "ESERVFAIL"],
  ["silent", "ETIMEOUT"],
] as const)("a name server that is %s is felt", async (trouble, code) => {
  expect(await asked(trouble)).toEqual([code, code]);
});
