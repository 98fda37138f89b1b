import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ExitCode, exitCodes } from "../shell/failure.ts";
import { writePrivateFile } from "../shell/files.ts";
import { type JsonOption, print } from "../shell/output.ts";

/** A partner's three keys, each of 32 random bytes and none shared, under the names of a registration. */
interface GeneratedKeys {
  readonly encryptionKey: string;
  readonly signingKey: string;
  readonly webhookSecret: string;
}

const keyBytes = 32;

function generateKeys(random: (bytes: number) => Buffer = randomBytes): GeneratedKeys {
  return {
    encryptionKey: random(keyBytes).toString("base64"),
    signingKey: random(keyBytes).toString("base64"),
    webhookSecret: `whsec_${random(keyBytes).toString("base64")}`,
  };
}

interface GenerateOptions extends JsonOption {
  readonly out?: string;
}

export function keysCommand(context: CommandContext): Command {
  return group("keys", "make keys", [generateCommand(context)]);
}

function generateCommand(context: CommandContext): Command {
  return command("generate", {
    summary: "make an encryption key, a signing key and a webhook secret",
    description:
      "They have the form of a partner's keys, and are for tests of your own receiver: a real partner gets its " +
      "keys by its registration. Without --out they are printed, as `NAME=value` for a shell's environment.",
    examples: ["paybell keys generate --out test-keys.json", "export $(paybell keys generate)"],
  })
    .option("--out <file>", "write them as JSON to a new file that only you can read (0600)")
    .action(ends(context, (options: GenerateOptions) => generate(context, options)));
}

async function generate(context: CommandContext, options: GenerateOptions): Promise<ExitCode> {
  const { out } = options;
  if (out !== undefined) {
    await writePrivateFile(context, out, async () => generateKeys());
    print(context, options, { file: out }, [`${out}: encryptionKey, signingKey, webhookSecret`]);
    return exitCodes.ok;
  }
  const keys = generateKeys();
  print(context, options, keys, [
    `PAYBELL_ENCRYPTION_KEY=${keys.encryptionKey}`,
    `PAYBELL_SIGNING_KEY=${keys.signingKey}`,
    `PAYBELL_WEBHOOK_SECRET=${keys.webhookSecret}`,
  ]);
  return exitCodes.ok;
}
