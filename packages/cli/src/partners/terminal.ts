import { type ClientSettings, calls, ofPartner, partnerPathOf } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { meant, readPages } from "../client/lists.ts";
import type { Terminal } from "../client/operator-api.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { fieldColumns, itemsOf, printable } from "../shell/output.ts";

export function terminalCommand(context: CommandContext): AnyCommand {
  return group("terminal", "list a partner's terminals, register, change or release one", [
    listCommand(context),
    setCommand(context),
    releaseCommand(context),
  ]);
}

async function pathOf(settings: ClientSettings, partner: string | undefined): Promise<string> {
  return `${await partnerPathOf(settings, partner)}/terminals`;
}

const theTerminal = [
  "<terminal>",
  "its tid at the acquirer, eight characters; or the merchant's or device's name",
] as const;

/** The path of a terminal. One that is only known by its commands is in no list: a tid is taken as it is. */
async function terminalPathOf(settings: ClientSettings, text: string, partner: string | undefined): Promise<string> {
  const path = await pathOf(settings, partner);
  if (/^[0-9a-z]{8}$/i.test(text)) return `${path}/${text}`;
  const known = await readPages<Terminal>(settings.operator(), path);
  const named = known.map(({ tid, merchantName, deviceId }) => ({ id: tid, names: [merchantName, deviceId] }));
  return `${path}/${encodeURIComponent(meant(named, text, "terminal", "paybell terminal list").id)}`;
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", {
    summary: "list a partner's terminals",
    examples: ['paybell terminal list --partner "Corner Shop"'],
  }).option(...ofPartner);
  return calls(context, made, async (settings, { partner }) =>
    itemsOf(
      await readPages<Terminal>(settings.operator(), await pathOf(settings, partner)),
      fieldColumns("tid", "mid", "merchantName", "deviceId", "acquirer"),
    ),
  );
}

function setCommand(context: CommandContext): AnyCommand {
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
    .option("--acquirer <name>", "the registered acquirer of its commands; default: the one of the settings")
    .option(...ofPartner);
  return calls(context, made, async (settings, options, named) => {
    const { mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer, partner } = options;
    const input = definedOf({ mid, merchantId, merchantName, merchantAddress, deviceId, appName, acquirer });
    const terminal = await settings.operator().put<Terminal>(await terminalPathOf(settings, named, partner), input);
    const its = terminal.acquirer === "" ? "" : ` Its commands go to ${printable(terminal.acquirer)}.`;
    const line = `Terminal ${printable(terminal.tid)} belongs to ${printable(terminal.mid)}.${its}`;
    return { value: terminal, lines: [line] };
  });
}

function releaseCommand(context: CommandContext): AnyCommand {
  const made = command("release", {
    summary: "release a terminal, so that it belongs to no partner",
    description:
      "Also one that was never registered, and belongs to the partner by its first command. It is refused while " +
      "money is open on the terminal.",
    examples: ['paybell terminal release T0000001 --partner "Corner Shop"'],
  })
    .argument(...theTerminal)
    .option(...ofPartner);
  return calls(context, withConfirmation(made), async (settings, options, named) => {
    const path = await terminalPathOf(settings, named, options.partner);
    const lost = `The terminal ${printable(named)} loses its merchant, and any partner may take it.`;
    await confirm(context, options, lost);
    const released = await settings.operator().delete<Terminal>(path);
    return { value: released, lines: [`Terminal ${printable(released.tid)} is released.`] };
  });
}
