import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type ReceiverOptions, receiver } from "@paybell/partner";
import { type CertifyReport, caseCodes, certify, reportJson, sealerKeys } from "@paybell/partner/certify";
import type { Command } from "commander";
import {
  type AccessOptions,
  isLoopback,
  readClientSettings,
  receiverOptionsOf,
  type SealingOptions,
  withSealing,
} from "../client/connection.ts";
import { type CommandContext, command, ends } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { readNamedFile } from "../shell/files.ts";
import { type JsonOption, print, styleFor } from "../shell/output.ts";
import { showing } from "../shell/progress.ts";
import { reportLines, warning } from "./report-text.ts";

interface CertifyCommandOptions extends JsonOption, AccessOptions, SealingOptions, ConfirmOption {
  readonly only?: readonly string[];
  readonly ca?: string;
  readonly save?: string;
  readonly allowMissingHeaders?: boolean;
}

export function certifyCommand(context: CommandContext): Command {
  const made = command("certify", {
    summary: "test your own callback endpoint with requests that it must accept or refuse",
    description:
      "It POSTs invented notifications, some of them forged, only to the endpoint; Paybell itself need not run. " +
      "Each has a merchantTransId that begins with CERTIFY- and tid CERTIFY1. Before it sends to another machine, it " +
      `asks.\n\nCases: ${caseCodes.join(", ")}.`,
    examples: [
      "paybell certify localhost:3000/ipn",
      "paybell certify localhost:3000/ipn --only duplicate,reordered",
      "paybell certify localhost:3000/ipn --save failed && paybell open failed/sale-1.json",
      "paybell certify https://staging.example/ipn --credentials keys.json --yes --json > report.json",
    ],
    exitCodes: { 0: "every case passed", 1: "a case failed, or the endpoint could not be reached" },
  })
    .argument("<url>", "the endpoint: https://…, or localhost:3000/ipn for http:// on this machine")
    .option("--only <cases>", "run only these cases, separated by commas", listed)
    .option("--credentials <file>", "JSON with the keys, as registration gives them (PAYBELL_CREDENTIALS)")
    .option("--ca <file>", "also trust this certificate, in PEM")
    .option("--save <folder>", "write what was POSTed in each failed case, as `paybell open` reads it")
    .option("--allow-missing-headers", "the endpoint is configured without the webhook- headers")
    .option("--allow-http", "allow http:// to other machines");
  return withConfirmation(withSealing(made), "send to another machine without asking").action(
    ends(context, async (text: string, options: CertifyCommandOptions) => {
      const url = endpointUrl(text, options);
      const { only } = options;
      const { credentials } = await readClientSettings(context, options);
      const keys = readable(receiverOptionsOf(credentials));
      const ca = await trusted(context, url, options);
      const run = randomBytes(4).toString("hex");
      const caseCount = only?.length ?? caseCodes.length;
      if (!options.json) context.stdout.write(`${warning(url, run, caseCount).join("\n")}\n`);
      if (!isLoopback(url)) await confirm(context, options, question(url, caseCount));
      const certificate = await showing(context, "certify", caseCount, (onCase) =>
        certify({
          ...{ url, keys: sealerKeys(keys), run, ca, signal: context.signal, nowMs: context.nowMs, onCase },
          ...(only === undefined ? {} : { only }),
          allowMissingHeaders: options.allowMissingHeaders === true,
        }),
      );
      if (options.save !== undefined) await save(resolve(context.workingDirectory, options.save), certificate);
      print(context, options, reportJson(certificate), reportLines(certificate, styleFor(context.stdout, context.env)));
      return certificate.passed ? exitCodes.ok : exitCodes.negative;
    }),
  );
}

/** A file for each POST of a failed case: `sale-1.json`. @throws Failure if the folder cannot be written */
async function save(folder: string, { results }: CertifyReport): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    for (const { code, exchanges } of results.filter(({ verdict }) => verdict === "failed")) {
      for (const [at, { step }] of exchanges.entries()) {
        const { headers, body, signedString } = step.post;
        const text = JSON.stringify({ sent: step.what, headers, body, signedString }, undefined, 2);
        await writeFile(join(folder, `${code}-${at + 1}.json`), `${text}\n`);
      }
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Failure(`${folder} cannot be written: ${why}.`, { code: "unwritable", remedy: "Give another folder." });
  }
}

function question({ host }: URL, caseCount: number): string {
  return `${host} is another machine, and ${caseCount === 1 ? "a case" : `${caseCount} cases`} will be sent there.`;
}

/** @throws Failure naming the invalid key, the mistake and the remedy */
function readable(keys: ReceiverOptions): ReceiverOptions {
  try {
    receiver(keys);
    return keys;
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error), { code: "bad_configuration" });
  }
}

function listed(text: string, before: readonly string[] = []): readonly string[] {
  const codes = text.split(",").map((code) => code.trim());
  const unknown = codes.filter((code) => !caseCodes.includes(code));
  if (unknown.length === 0) return [...new Set([...before, ...codes])];
  throw new Failure(`there is no case ${unknown.join(", ")}.`, {
    code: "unknown_case",
    remedy: `There are ${caseCodes.join(", ")}.`,
  });
}

function endpointUrl(text: string, { allowHttp = false }: AccessOptions): URL {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:") || url.username !== "") {
    throw new Failure(`${JSON.stringify(text)} is not the URL of an endpoint.`, {
      code: "bad_url",
      remedy: "Give it as https://shop.example/ipn or localhost:3000/ipn.",
    });
  }
  if (url.protocol === "http:" && !isLoopback(url) && !allowHttp) {
    throw new Failure(`${url.origin} is another machine, and Paybell calls only https://.`, {
      code: "insecure_url",
      remedy: "Use https://, or --allow-http for an endpoint inside your own network.",
    });
  }
  return url;
}

/**
 * The trusted CA in addition to the well-known ones: the named file, otherwise the sandbox's receiver if it is there.
 */
async function trusted(context: CommandContext, url: URL, { ca }: CertifyCommandOptions): Promise<string | undefined> {
  if (ca !== undefined) return readNamedFile(context, ca, "bad_ca_file");
  if (url.protocol !== "https:" || !isLoopback(url)) return undefined;
  const home = context.env["PAYBELL_HOME"] ?? ".paybell";
  const pem = await readFile(resolve(context.workingDirectory, home, "receiver.pem"), "utf8").catch(() => "");
  // Its private key is in the same file.
  return /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(pem)?.[0];
}
