import type { Command } from "commander";
import {
  type AccessOptions,
  readClientSettings,
  receiverOptionsOf,
  type SealingOptions,
  withAccessOptions,
  withSealing,
} from "../client/connection.ts";
import { openReceiver } from "../listen/opened.ts";
import { type CommandContext, command, ends } from "../shell/command.ts";
import { type ExitCode, exitCodes } from "../shell/failure.ts";
import { readNamedFile } from "../shell/files.ts";
import { type JsonOption, print, printable, type Style, styleFor } from "../shell/output.ts";
import { readCapture } from "./capture.ts";
import { compareWithService, type ServiceComparison } from "./compare.ts";
import { type Explanation, explain } from "./explain.ts";
import type { OpenFinding } from "./headers.ts";
import { namedKeys } from "./named-keys.ts";
import { type Difference, differenceOf } from "./signature.ts";

interface OpenOptions extends AccessOptions, SealingOptions, JsonOption {
  readonly signedString?: string;
  readonly compare?: boolean;
}

export function openCommand(context: CommandContext): Command {
  const made = command("open", {
    summary: "decrypt and explain a captured body: its key, its signed string, and why it does not match",
    description:
      "The capture is the raw body, or an HTTP message with its headers, as `curl -i` shows it, or JSON of `body` " +
      "(or `data`) and `headers`, as `paybell notifications show --json` prints it. No service is asked, except " +
      "with --compare. The output is the whole IPN, which holds payment data.",
    examples: [
      "paybell open captured.json",
      "paybell notifications show 01a1fc40-577c-728c-bd54-142edc79a51f --json | paybell open -",
      'paybell open captured.json --signed-string "aid=A0000000031010&amount=150000&approveCode=831000"',
    ],
    exitCodes: { 0: "it is authentic, as configured", 1: "it is not, and this is why" },
  })
    .argument("<file>", "the capture; - reads it from standard input")
    .option("--signed-string <text>", "the string that your program signed: shows the first difference")
    .option("--compare", "ask Paybell for the transaction, and compare the signed values with it");
  return withSealing(withAccessOptions(made)).action(
    ends(context, (file: string, options: OpenOptions) => open(context, file, options)),
  );
}

async function open(context: CommandContext, file: string, options: OpenOptions): Promise<ExitCode> {
  const capture = readCapture(await readInput(context, file));
  const connection = await readClientSettings(context, options);
  const given = receiverOptionsOf(connection.credentials);
  // It validates the keys: an invalid one is named before anything is tried.
  openReceiver(given);
  const explanation = explain(capture, namedKeys(given), connection.credentials, context.nowMs());
  const { signedString } = explanation;
  const yours =
    options.signedString === undefined || signedString === undefined
      ? undefined
      : { firstDifference: differenceOf(signedString, options.signedString) ?? null };
  const compared = options.compare === true ? await compareWithService(connection.partner(), explanation) : undefined;
  const value = { ...explanation, ...(yours && { yourSignedString: yours }), ...(compared && { compared }) };
  const style = styleFor(context.stdout, context.env);
  print(context, options, value, [
    ...explanation.findings.flatMap((finding) => findingLines(finding, style)),
    ...detailLines(explanation),
    ...(yours === undefined ? [] : yourLines(yours.firstDifference)),
    ...(compared === undefined ? [] : comparedLines(compared)),
    "",
    explanation.authentic ? style.good("Authentic.") : style.bad("Not authentic."),
  ]);
  return explanation.authentic ? exitCodes.ok : exitCodes.negative;
}

async function readInput(context: CommandContext, file: string): Promise<string> {
  if (file === "-") {
    const { stdin } = context;
    let text = "";
    stdin.setEncoding("utf8");
    for await (const chunk of stdin) text += chunk;
    return text;
  }
  return readNamedFile(context, file, "unreadable");
}

const signs = { right: "✓", note: "!", wrong: "✗" } as const;

function findingLines({ step, level, text, remedy }: OpenFinding, style: Style): string[] {
  const paint = { right: style.good, note: same, wrong: style.bad }[level];
  return [
    `${paint(signs[level])} ${step.padEnd(10)} ${printable(text)}`,
    ...(remedy === undefined ? [] : [`             → ${printable(remedy)}`]),
  ];
}

function same(text: string): string {
  return text;
}

function detailLines({ signedString, expected, found, firstDifference, ipn }: Explanation): string[] {
  if (signedString === undefined || ipn === undefined) return [];
  return [
    "",
    "Signed string, as configured",
    `  ${printable(signedString)}`,
    `Expected  ${expected}`,
    `Found     ${printable(found ?? "")}`,
    ...(firstDifference === undefined ? [] : differenceLines(firstDifference, "what was signed")),
    "",
    ...JSON.stringify(ipn, null, 2).split("\n").map(printable),
  ];
}

function yourLines(difference: Difference | null): string[] {
  if (difference === null) return ["", "Your signed string is the same as ours."];
  return ["", "Your signed string is another.", ...differenceLines(difference, "yours")];
}

function differenceLines({ unit, position, ours, theirs }: Difference, whose: string): string[] {
  return [
    `First differing ${unit}: number ${position}`,
    `  as configured    ${printable(ours)}`,
    `  ${whose.padEnd(15)}  ${printable(theirs)}`,
  ];
}

function comparedLines(compared: ServiceComparison): string[] {
  if (compared.transaction === null)
    return ["", `Paybell knows no such transaction of yours: ${printable(compared.why)}`];
  if (compared.differences.length === 0) return ["", "Every field is what Paybell says of the transaction."];
  return [
    "",
    "Fields that are not what Paybell says of the transaction, signed ones first",
    ...compared.differences.map(({ field, signed, captured, service }) => {
      return `  ${field}${signed ? " (signed)" : ""}: ${printable(captured)}, but Paybell says ${printable(service)}`;
    }),
  ];
}
