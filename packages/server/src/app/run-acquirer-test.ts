import { currencyDecimals } from "@paybell/contract";
import { amountProblem, parseAmount } from "../commands/amount.ts";
import { type Config, ConfigError, readConfig } from "../config.ts";
import { messageOf } from "../errors.ts";
import { type HostOptions, iso8583Options } from "./acquirer.ts";
import { withAcquirerLinks } from "./acquirer-links.ts";
import { type AcquirerTestPlan, type AcquirerTestStep, testAcquirer } from "./acquirer-test.ts";
import { openMasterKey } from "./master-key.ts";
import type { RunContext } from "./run.ts";

/** The options on the command line. */
export interface AcquirerTestOptions {
  /** The name of a registered acquirer; absent: the one of the settings. */
  readonly name?: string;
  readonly mid?: string;
  readonly tid?: string;
  readonly token?: string;
  readonly amount?: string;
  readonly currency: string;
  readonly batch: string;
  readonly trace: string;
  readonly json: boolean;
}

/** `paybell acquirer test`. @returns 0 if every step had the expected result, 2 if nothing was asked */
export async function runAcquirerTest({ process }: RunContext, options: AcquirerTestOptions): Promise<number> {
  const { stdout, stderr, env } = process;
  try {
    const { name } = options;
    const config = readConfig(env, name === undefined ? [] : ["databaseUrl", "masterKey"]);
    const plan = planOf(options, config);
    const steps: AcquirerTestStep[] = [];
    const run = (link: HostOptions) =>
      testAcquirer(link, plan, (step) => {
        steps.push(step);
        if (!options.json) stdout.write(stepText(step));
      });
    const ok = name === undefined ? await run(await iso8583Options(config)) : await onRegistered(config, name, run);
    if (options.json) stdout.write(`${JSON.stringify({ ok, steps }, null, 2)}\n`);
    return ok ? 0 : 1;
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [messageOf(error)];
    stderr.write(problems.map((problem) => `paybell: ${problem}\n`).join(""));
    return 2;
  }
}

async function onRegistered(
  config: Config,
  name: string,
  run: (link: HostOptions) => Promise<boolean>,
): Promise<boolean> {
  // readConfig has required it.
  const databaseUrl = config.databaseUrl as string;
  return withAcquirerLinks(databaseUrl, await openMasterKey(config), async (links) => {
    const options = await links.registered(name);
    if (options === undefined) throw new ConfigError([`no acquirer is registered as ${name}`]);
    if (options.profile.network.sessions === "one" && (await links.sessionHolder(name)).leaseId !== null) {
      throw new ConfigError(["an instance has the one session that the host allows: stop the service first"]);
    }
    return run(links.withShared(name, options));
  });
}

function planOf(options: AcquirerTestOptions, config: Config): AcquirerTestPlan {
  const { mid = "", tid = "", token = "", currency, amount = "", batch, trace } = options;
  const problems: string[] = [];
  if (options.name === undefined && config.acquirer !== "iso8583")
    problems.push("PAYBELL_ACQUIRER=iso8583 is required: there is no host to test");
  for (const [name, value] of Object.entries({ mid, tid, token })) {
    if (value === "") problems.push(`--${name} is required`);
  }
  const decimals = currencyDecimals(currency);
  const wrongAmount = amountProblem(amount, decimals);
  if (decimals === undefined) problems.push("--currency must be a code of ISO 4217, such as VND");
  if (wrongAmount !== undefined) problems.push(`--amount ${wrongAmount}`);
  if (!/^\d{6}$/.test(batch)) problems.push("--batch must be six digits");
  if (!/^\d{1,6}$/.test(trace) || Number(trace) === 0) problems.push("--trace must be a number from 1 to 999999");
  if (decimals === undefined || problems.length > 0) throw new ConfigError(problems);
  const amountMinor = parseAmount(amount, decimals);
  const { acquirerTimeoutMs: timeoutMs } = config;
  return { mid, tid, token, currency, amountMinor, batchNo: batch, traceNo: Number(trace), timeoutMs };
}

function stepText({ step, ok, detail, trace }: AcquirerTestStep): string {
  const lines = trace.flatMap(([head = "", ...rest]) => [`  ${head}`, ...rest.map((line) => `    ${line}`)]);
  return `${[...lines, `${ok ? "ok   " : "ERROR"}  ${step.padEnd(22)}${detail}`].join("\n")}\n\n`;
}
