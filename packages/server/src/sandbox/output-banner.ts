import { isAbsolute, relative } from "node:path";
import { indent } from "./output-fields.ts";
import { type OutputStyle, paint } from "./output-style.ts";
import { columnsOf, milliseconds, wrap } from "./output-text.ts";

export interface BannerFacts {
  /** The service's address, such as http://localhost:7420. */
  readonly baseUrl: string;
  /** The sandbox partner's, such as https://127.0.0.1:7421/ipn. */
  readonly receiverUrl: string;
  /** sandbox.json, absolute. */
  readonly credentialsPath: string;
  /** The folder of the start: paths are shown relative to it. */
  readonly workingDirectory: string;
  /** Milliseconds that the start took. */
  readonly readyAfterMs: number;
  /** The path of the executable file: its machine may have no Node. Absent: the command runs on an installed one. */
  readonly executable?: string | undefined;
}

/** The terminal's text once the sandbox is ready. It contains no secret: the command reads the API key when it runs. */
export function bannerLines(facts: BannerFacts, style: OutputStyle): string[] {
  const credentials = pathFrom(facts.workingDirectory, facts.credentialsPath);
  const where = isAbsolute(credentials) ? "into another terminal" : "into another terminal in this folder";
  return [
    "",
    indent +
      paint(style, "strong", "Paybell sandbox") +
      paint(style, "faint", `  ready in ${milliseconds(facts.readyAfterMs)}`),
    "",
    ...placeLines(facts, credentials, style),
    "",
    ...wrap(`To make a Sale, paste this ${where}:`, style.columns - indent.length).map((line) => indent + line),
    "",
    ...(facts.executable === undefined
      ? saleCommandLines(facts.baseUrl, credentials)
      : [`${quote(facts.executable)} trigger sale`]),
    "",
    ...wrap("Its IPN appears here. Ctrl-C stops.", style.columns - indent.length).map((line) => indent + line),
    "",
  ];
}

const nameColumns = 13;

function placeLines({ baseUrl, receiverUrl }: BannerFacts, credentials: string, style: OutputStyle): string[] {
  const places = [
    { name: "Service", place: baseUrl, hint: "" },
    { name: "Console", place: `${baseUrl}/console`, hint: "" },
    { name: "Docs", place: `${baseUrl}/docs`, hint: "" },
    { name: "Receiver", place: receiverUrl, hint: "the sandbox partner: its IPNs go here" },
    { name: "Credentials", place: credentials, hint: "its keys, and the operator's token" },
  ];
  const hinted = places.filter(({ hint }) => hint !== "");
  const placeColumns = Math.max(...hinted.map(({ place }) => columnsOf(place))) + 2;
  return places.map(({ name, place, hint }) => {
    const line = indent + paint(style, "faint", name.padEnd(nameColumns)) + paint(style, "link", place);
    const hintFits = indent.length + nameColumns + placeColumns + hint.length <= style.columns;
    if (hint === "" || !hintFits) return line;
    return line + " ".repeat(placeColumns - columnsOf(place)) + paint(style, "faint", hint);
  });
}

/**
 * A Sale as a curl command, for any POSIX shell: a new reqId each time it is pasted, the API key read from sandbox.json
 * by node, which is certainly installed, unlike jq. Never wrapped to the terminal: a copied line break would end the
 * command.
 */
function saleCommandLines(baseUrl: string, credentials: string): string[] {
  const file = isAbsolute(credentials) ? credentials : `./${credentials}`;
  const readKey = quote(`require(${JSON.stringify(file)}).apiKey`);
  return [
    `curl -sS ${baseUrl}/v1/commands -w '\\n' \\`,
    // Equivalent to an Authorization header, and short enough for 80 columns.
    `  --oauth2-bearer "$(node -p ${readKey})" \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"command": "SALE", "reqId": "'$(node -p 'crypto.randomUUID()')'",`,
    `       "amount": "150000", "currency": "VND", "merchantTransId": "order-1",`,
    `       "tid": "T0000001", "mid": "M00000001",`,
    `       "card": {"token": "tok_approve", "number": "411111******1111",`,
    `                "swipeType": "C", "aid": "A0000000031010"}}'`,
  ];
}

/** Relative to the shell's folder; absolute if it is elsewhere. */
function pathFrom(folder: string, path: string): string {
  const shorter = relative(folder, path);
  return shorter.startsWith("..") || isAbsolute(shorter) ? path : shorter;
}

/** Quotes one word for a POSIX shell, whatever it contains. */
function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
