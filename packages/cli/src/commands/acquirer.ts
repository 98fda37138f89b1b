import type { Command } from "commander";
import { command, group } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { JsonOption } from "../output.ts";
import { service } from "../service.ts";

interface TestOptions extends JsonOption {
  readonly mid?: string;
  readonly tid?: string;
  readonly token?: string;
  readonly amount?: string;
  readonly currency: string;
  readonly batch: string;
  readonly trace: string;
}

export function acquirerCommand(context: CommandContext): Command {
  return group("acquirer", "try the link to the acquirer's host", [testCommand(context)]);
}

function testCommand(context: CommandContext): Command {
  return command("test", {
    summary: "run a certification against the acquirer's host, and print every message",
    description:
      "Signs on, then sends a Logon, a Sale and its Void, a Sale and its Reversal, and a Settlement to the host " +
      "of the settings (PAYBELL_ACQUIRER=iso8583 and its other settings). It needs neither a database nor a " +
      "service, but a terminal that nothing else uses: the Settlement closes its batch. No card number, token or key " +
      "is printed.",
    examples: ["paybell acquirer test --mid M00000000000001 --tid T0000001 --token tok_approve --amount 10000"],
    exitCodes: {
      0: "every step came out as it must",
      1: "a step did not, which is marked ERROR",
      2: "nothing was asked: a setting or an option is wrong",
    },
  })
    .option("--mid <mid>", "the merchant; required")
    .option("--tid <tid>", "a terminal that nothing else uses; required")
    .option("--token <token>", "a test card's token, as the host knows it; required")
    .option("--amount <amount>", "the amount of each Sale, such as 10000 or 12.50; required")
    .option("--currency <code>", "the Sales' currency", "VND")
    .option("--batch <number>", "the terminal's open batch, six digits; it must be empty", "000001")
    .option("--trace <number>", "the first message's trace number", "1")
    .action(async ({ json = false, ...options }: TestOptions) => {
      const { runAcquirerTest } = await service(context);
      context.conclude((await runAcquirerTest(context, { ...options, json })) as ExitCode);
    });
}
