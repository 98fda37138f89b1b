import type { Command } from "commander";
import {
  type AccessOptions,
  type ClientSettings,
  ofPartner,
  partnerIdOf,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { readPages } from "../client/lists.ts";
import { meant } from "../client/names.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { exitCodes } from "../shell/failure.ts";
import { fieldColumns, type JsonOption, listed, print, printable } from "../shell/output.ts";

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

const terminalColumns = fieldColumns<Terminal>("tid", "mid", "merchantName", "deviceId", "acquirer");

async function pathOf(settings: ClientSettings, { partner }: TerminalOptions): Promise<string> {
  return `/operator/v1/partners/${encodeURIComponent(await partnerIdOf(settings, partner))}/terminals`;
}

const theTerminal = [
  "<terminal>",
  "its tid at the acquirer, eight characters; or the merchant's or device's name",
] as const;

/** The path of a terminal. One that is only known by its commands is in no list: a tid is taken as it is. */
async function terminalPathOf(settings: ClientSettings, text: string, options: TerminalOptions): Promise<string> {
  const path = await pathOf(settings, options);
  if (/^[0-9a-z]{8}$/i.test(text)) return `${path}/${text}`;
  const known = await readPages<Terminal>(settings.operator(), path);
  const named = known.map(({ tid, merchantName, deviceId }) => ({ id: tid, names: [merchantName, deviceId] }));
  return `${path}/${encodeURIComponent(meant(named, text, "terminal", "paybell terminal list").id)}`;
}

function withPartner(made: Command): Command {
  return withAccessOptions(made).option(...ofPartner);
}

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list a partner's terminals",
    examples: ['paybell terminal list --partner "Corner Shop"'],
  });
  return withPartner(made).action(
    ends(context, async (options: TerminalOptions) => {
      const settings = await readClientSettings(context, options);
      const items = await readPages<Terminal>(settings.operator(), await pathOf(settings, options));
      print(context, options, { items }, listed(items, terminalColumns));
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
    .argument(...theTerminal)
    .option("--mid <mid>", "the merchant's number at the acquirer")
    .option("--merchant-id <id>", "the partner's own number of the merchant")
    .option("--merchant-name <name>", "as IPNs show it")
    .option("--merchant-address <address>", "as IPNs show it")
    .option("--device-id <id>", "the device's serial number")
    .option("--app-name <name>", "the application on the device")
    .option("--acquirer <name>", "the registered acquirer of its commands; default: the one of the settings");
  return withPartner(made).action(
    ends(context, async (named: string, options: SetOptions) => {
      const { mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer } = options;
      const settings = await readClientSettings(context, options);
      const input = definedOf({ mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer });
      const path = await terminalPathOf(settings, named, options);
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
    examples: ['paybell terminal release T0000001 --partner "Corner Shop"'],
  }).argument(...theTerminal);
  return withPartner(withConfirmation(made)).action(
    ends(context, async (named: string, options: TerminalOptions & ConfirmOption) => {
      const settings = await readClientSettings(context, options);
      const path = await terminalPathOf(settings, named, options);
      await confirm(
        context,
        options,
        `The terminal ${printable(named)} loses its merchant, and any partner may take it.`,
      );
      const released = await settings.operator().delete<Terminal>(path);
      print(context, options, released, [`Terminal ${printable(released.tid)} is released.`]);
      return exitCodes.ok;
    }),
  );
}
