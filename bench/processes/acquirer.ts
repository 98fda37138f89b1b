import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Acquirer } from "../../packages/server/src/acquirer/acquirer.ts";
import { Iso8583Acquirer } from "../../packages/server/src/acquirer/iso8583/iso8583.ts";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { readProfile } from "../../packages/server/src/acquirer/iso8583/profile/read.ts";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { systemClock } from "../../packages/server/src/clock.ts";

const profile = join(import.meta.dirname, "../../docs/operator/acquirer-profile.json");

/**
 * An acquirer that answers at once: the simulator, or with `BENCH_ACQUIRER=iso8583` a host over TCP. It runs in this
 * process, so that what it costs is counted too.
 */
export async function acquirerOf(env: NodeJS.ProcessEnv): Promise<Acquirer> {
  if (env["BENCH_ACQUIRER"] !== "iso8583") return new SimulatedAcquirer();
  const host = await FakeHost.listen();
  host.keepsNothing = true;
  const acquirer = new Iso8583Acquirer({
    profile: readProfile(await readFile(profile, "utf8")),
    hosts: [{ host: "127.0.0.1", port: host.port }],
    clock: systemClock,
  });
  if (!(await acquirer.isUpWithin(10_000))) throw new Error(`The host is not reached: ${acquirer.health().detail}`);
  return {
    approvals: acquirer.approvals,
    ask: (message, options) => acquirer.ask(message, options),
    refusesToken: (token) => acquirer.refusesToken(token),
    health: () => acquirer.health(),
    async close() {
      await acquirer.close();
      await host.close();
    },
  };
}
