import type { Command } from "commander";
import { command, ends, group } from "../command.ts";
import { type AccessOptions, partnerIdOf, readClientSettings, withAccessOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { definedOf } from "../credentials.ts";
import { exitCodes } from "../exit-codes.ts";
import { type JsonOption, listed, print } from "../output.ts";
import { printable } from "../printable.ts";
import { readPages } from "../read-pages.ts";

interface Terminal {
  readonly tid: string;
  readonly mid: string;
  readonly merchantId: string;
  readonly merchantName: string;
  readonly merchantAddress: string;
  readonly deviceId: string;
  readonly appName: string;
  /** Empty: the one of the settings. */
  readonly acquirer: string;
}

interface TerminalOptions extends AccessOptions, JsonOption {
  readonly partner?: string;
}

export function terminalCommand(context: CommandContext): Command {
  return group("terminal", "list a partner's terminals, register, change or release one", [
    listCommand(context),
    setCommand(context),
    releaseCommand(context),
  ]);
}

function pathOf(partnerId: string): string {
  return `/operator/v1/partners/${encodeURIComponent(partnerId)}/terminals`;
}

function withPartner(made: Command): Command {
  return withAccessOptions(made).option("--partner <id>", "default: the partner of the credentials");
}

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list a partner's terminals",
    examples: ["paybell terminal list --partner 01a1fc39-e58e-73fb-a49a-dce132454876"],
  });
  return withPartner(made).action(
    ends(context, async (options: TerminalOptions) => {
      const settings = await readClientSettings(context, options);
      const items = await readPages<Terminal>(settings.operator(), pathOf(partnerIdOf(settings, options.partner)));
      const rows = items.map(({ tid, mid, merchantName, acquirer }) => [tid, mid, printable(merchantName), acquirer]);
      print(context, options, { items }, listed(rows));
      return exitCodes.ok;
    }),
  );
}

type SetOptions = TerminalOptions & Partial<Omit<Terminal, "tid">>;

function setCommand(context: CommandContext): Command {
  const made = command("set", {
    summary: "register a terminal, or change one",
    description: "Values that are left out become empty. A terminal's mid cannot change while its batch is open.",
    examples: [
      'paybell terminal set T0000001 --mid M00000000000001 --merchant-name "Corner Shop"',
      "paybell terminal set T0000002 --mid M00000000000001 --acquirer first-bank",
    ],
  })
    .argument("<tid>", "the terminal's number at the acquirer, eight characters")
    .option("--mid <mid>", "the merchant's number at the acquirer")
    .option("--merchant-id <id>", "the partner's own number of the merchant")
    .option("--merchant-name <name>", "as IPNs show it")
    .option("--merchant-address <address>", "as IPNs show it")
    .option("--device-id <id>", "the device's serial number")
    .option("--app-name <name>", "the application on the device")
    .option("--acquirer <name>", "the registered acquirer of its commands; default: the one of the settings");
  return withPartner(made).action(
    ends(context, async (tid: string, options: SetOptions) => {
      const { mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer } = options;
      const settings = await readClientSettings(context, options);
      const input = definedOf({ mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer });
      const path = `${pathOf(partnerIdOf(settings, options.partner))}/${encodeURIComponent(tid)}`;
      const terminal = await settings.operator().put<Terminal>(path, input);
      const itsAcquirer = terminal.acquirer === "" ? "" : ` Its commands go to ${printable(terminal.acquirer)}.`;
      const belongs = `Terminal ${printable(terminal.tid)} belongs to ${printable(terminal.mid)}.`;
      print(context, options, terminal, [`${belongs}${itsAcquirer}`]);
      return exitCodes.ok;
    }),
  );
}

function releaseCommand(context: CommandContext): Command {
  const made = command("release", {
    summary: "release a terminal, so that it belongs to no partner",
    description:
      "Also one that was never registered, and belongs to the partner by its first command. It is refused while " +
      "money is open on the terminal.",
    examples: ["paybell terminal release T0000001 --partner 01a1fc39-e58e-73fb-a49a-dce132454876"],
  }).argument("<tid>", "as `paybell terminal list` shows it");
  return withPartner(made).action(
    ends(context, async (tid: string, options: TerminalOptions) => {
      const settings = await readClientSettings(context, options);
      const path = `${pathOf(partnerIdOf(settings, options.partner))}/${encodeURIComponent(tid)}`;
      const released = await settings.operator().delete<Terminal>(path);
      print(context, options, released, [`Terminal ${printable(released.tid)} is released.`]);
      return exitCodes.ok;
    }),
  );
}
