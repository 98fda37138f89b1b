import { ipnFields, signedFields } from "@paybell/contract";
import type { Api } from "../client/api.ts";
import { readClientSettings, receiverOptionsOf, withAccessOptions, withSealing } from "../client/connection.ts";
import { openReceiver } from "../listen/feed.ts";
import { type AnyCommand, acts, command } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { jsonIn, readNamedFile } from "../shell/files.ts";
import { printable, type Style, styleFor } from "../shell/output.ts";
import { type Capture, type Explanation, explain } from "./explain.ts";
import { namedKeys, type OpenFinding } from "./seal.ts";
import { type Difference, differenceOf } from "./signature.ts";

export function openCommand(context: CommandContext): AnyCommand {
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
  return acts(context, withSealing(withAccessOptions(made)), async (options, file) => {
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
    const style = styleFor(context.stdout, context.env);
    const lines = [
      ...explanation.findings.flatMap((finding) => findingLines(finding, style)),
      ...detailLines(explanation),
      ...(yours === undefined ? [] : yourLines(yours.firstDifference)),
      ...(compared === undefined ? [] : comparedLines(compared)),
      "",
      explanation.authentic ? style.good("Authentic.") : style.bad("Not authentic."),
    ];
    return {
      value: { ...explanation, ...(yours && { yourSignedString: yours }), ...(compared && { compared }) },
      lines,
      code: explanation.authentic ? exitCodes.ok : exitCodes.negative,
    };
  });
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
  const paint = { right: style.good, note: (line: string) => line, wrong: style.bad }[level];
  return [
    `${paint(signs[level])} ${step.padEnd(10)} ${printable(text)}`,
    ...(remedy === undefined ? [] : [`             → ${printable(remedy)}`]),
  ];
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

/**
 * Reads typical captures: the raw body; JSON of a body (or `data`) and headers, as `notifications show --json` and
 * GET /v1/notifications give; an HTTP message with its header lines, as `curl -i` or a proxy writes it.
 *
 * @throws Failure if there is no body
 */
function readCapture(text: string): Capture {
  const start = text.replace(/^\uFEFF/, "");
  const capture = start.trimStart().startsWith("{") ? fromJson(start) : fromMessage(start);
  if (capture.body.trim() !== "") return capture;
  throw new Failure("the capture has no body.", {
    code: "empty_capture",
    remedy: 'Give what was POSTed, {"data": "…"}, with its headers if you have them.',
  });
}

function fromJson(text: string): Capture {
  const value = jsonIn(text) as Readonly<Record<string, unknown>> | undefined;
  if (value === undefined) return { body: text, headers: undefined };
  const { body, data, headers, sealed } = value;
  // `notifications show --json` has it among other fields.
  if (typeof sealed === "object" && sealed !== null) return fromJson(JSON.stringify(sealed));
  if (typeof body === "string") return { body, headers: readHeaders(headers) };
  if (typeof body === "object" && body !== null) return { body: JSON.stringify(body), headers: readHeaders(headers) };
  if (typeof data === "string" && typeof headers === "object") {
    return { body: JSON.stringify({ data }), headers: readHeaders(headers) };
  }
  return { body: text, headers: undefined };
}

/** An object, or the list of pairs that HAR files and some proxies write. */
function readHeaders(headers: unknown): Capture["headers"] {
  if (typeof headers !== "object" || headers === null) return undefined;
  const pairs = Array.isArray(headers)
    ? headers.map((one: unknown) => (Array.isArray(one) ? one : [Object(one)["name"], Object(one)["value"]]))
    : Object.entries(headers);
  return Object.fromEntries(pairs.map(([name, value]) => [String(name).toLowerCase(), String(value)]));
}

const headerLine = /^(?:[<>] ?)?([A-Za-z0-9-]+):(.*)$/;
const firstLine = /^(?:[<>*] ?)?(?:POST \S+ HTTP\/\S+|HTTP\/\S+ \d{3}.*)$/;

/** Header lines, an empty line, and the body. */
function fromMessage(text: string): Capture {
  const lines = text.split(/\r?\n/);
  const headers: Record<string, string> = {};
  let at = 0;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (/^[<>]? ?$/.test(line)) {
      at += 1;
      break;
    }
    const [, name, value = ""] = headerLine.exec(line) ?? [];
    if (name !== undefined) headers[name.toLowerCase()] = value.trim();
    else if (!firstLine.test(line)) break;
  }
  if (Object.keys(headers).length === 0) return { body: text, headers: undefined };
  const rest = lines.slice(at).join("\n");
  return { body: rest, headers };
}

interface FieldDifference {
  readonly field: string;
  /** Whether the specification's signature covers it. */
  readonly signed: boolean;
  readonly captured: string;
  readonly service: string;
}

type ServiceComparison =
  | { readonly transaction: string; readonly differences: readonly FieldDifference[] }
  | { readonly transaction: null; readonly why: string };

/** Compares each field of a captured IPN with the service's transaction; the signed ones first, in order. */
async function compareWithService(api: Api, { kind, ipn }: Explanation): Promise<ServiceComparison> {
  if (kind === undefined || ipn === undefined) return { transaction: null, why: "the capture did not open" };
  const known = await ask(api, ipn.id);
  if (known instanceof Failure) return { transaction: null, why: known.message };
  const signed = signedFields(kind, { mode: "fields" });
  const names = ipnFields(kind)
    .filter(({ name, type }) => type === "string" && name !== "signature")
    .map(({ name }) => name as string);
  const captured = ipn as unknown as Readonly<Record<string, string>>;
  const differences = [...new Set([...signed, ...names])].flatMap((field) => {
    const [ours = "", service = ""] = [captured[field], known[field]];
    return ours === service ? [] : [{ field, signed: signed.includes(field), captured: ours, service }];
  });
  return { transaction: ipn.id, differences };
}

async function ask(api: Api, id: string): Promise<Readonly<Record<string, string>> | Failure> {
  try {
    return await api.get<Readonly<Record<string, string>>>(`/v1/transactions/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof Failure && error.status === 404) return error;
    throw error;
  }
}
