import { currencyDecimals } from "@paybell/contract";
import { amountProblem, parseAmount } from "../commands/amount.ts";
import { type Config, ConfigError, readConfig } from "../config.ts";
import { iso8583Options } from "./acquirer.ts";
import { type AcquirerTestPlan, type AcquirerTestStep, testAcquirer } from "./acquirer-test.ts";
import type { RunContext } from "./run.ts";

/** The options on the command line. */
export interface AcquirerTestOptions {
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
    const config = readConfig(env);
    const plan = planOf(options, config);
    const link = await iso8583Options(config);
    const steps: AcquirerTestStep[] = [];
    const ok = await testAcquirer(link, plan, (step) => {
      steps.push(step);
      if (!options.json) stdout.write(stepText(step));
    });
    if (options.json) stdout.write(`${JSON.stringify({ ok, steps }, null, 2)}\n`);
    return ok ? 0 : 1;
  } catch (error) {
    const problems =
      error instanceof ConfigError ? error.problems : [error instanceof Error ? error.message : "failed"];
    stderr.write(problems.map((problem) => `paybell: ${problem}\n`).join(""));
    return 2;
  }
}

function planOf(options: AcquirerTestOptions, config: Config): AcquirerTestPlan {
  const { mid = "", tid = "", token = "", currency, amount = "", batch, trace } = options;
  const problems: string[] = [];
  if (config.acquirer !== "iso8583") problems.push("PAYBELL_ACQUIRER=iso8583 is required: there is no host to test");
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
