import { type Command, Option, type OptionValues } from "@commander-js/extra-typings";
import { calls } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import type { Acquirer, AcquirerList, AcquirerState } from "../client/operator-api.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { Failure } from "../shell/failure.ts";
import { jsonIn, readNamedFile } from "../shell/files.ts";
import { columns, itemsOf, printable } from "../shell/output.ts";
import { runs } from "./service.ts";

export function acquirerCommand(context: CommandContext): AnyCommand {
  return group("acquirer", "register acquirers, and try the link to a host", [
    addCommand(context),
    listCommand(context),
    showCommand(context),
    updateCommand(context),
    removeCommand(context),
    testCommand(context),
  ]);
}

function testCommand(context: CommandContext): AnyCommand {
  const made = command("test", {
    summary: "run a certification against the acquirer's host, and print every message",
    description:
      "Signs on, then sends a Logon, a Sale and its Void, a Sale and its Reversal, and a Settlement to the host " +
      "of the settings (PAYBELL_ACQUIRER=iso8583 and its other settings), or to that of a registered acquirer, which " +
      "is read from DATABASE_URL under PAYBELL_MASTER_KEY. It needs no service, but a terminal that nothing else " +
      "uses: the Settlement closes its batch. No card number, token or key is printed.",
    examples: [
      "paybell acquirer test --mid M00000000000001 --tid T0000001 --token tok_approve --amount 10000",
      "paybell acquirer test first-bank --mid M00000000000001 --tid T0000001 --token tok_approve --amount 10000",
    ],
    exitCodes: {
      0: "every step ended as expected",
      1: "a step did not, which is marked ERROR",
      2: "nothing was sent: a setting or an option is wrong",
    },
  })
    .argument("[name]", "a registered acquirer; default: the one of the settings")
    .option("--mid <mid>", "the merchant; required")
    .option("--tid <tid>", "a terminal that nothing else uses; required")
    .option("--token <token>", "a test card's token, as the host knows it; required")
    .option("--amount <amount>", "the amount of each Sale, such as 10000 or 12.50; required")
    .option("--currency <code>", "the Sales' currency", "VND")
    .option("--batch <number>", "the terminal's open batch, six digits; it must be empty", "000001")
    .option("--trace <number>", "the first message's trace number", "1");
  return runs(context, made, ({ runAcquirerTest }, { json = false, ...options }, name) =>
    runAcquirerTest(context, { ...options, ...definedOf({ name }), json }),
  );
}

type RegistrationOptions = {
  readonly [Name in "profile" | "hosts" | "tls" | "ca" | "certificate" | "key" | "macKey" | "keyEncryptionKey"]?:
    | string
    | undefined;
};

const acquirersPath = "/operator/v1/acquirers";
const pathOf = (name: string) => `${acquirersPath}/${encodeURIComponent(name)}`;

function withRegistration<Options extends OptionValues>(
  made: Command<[], Options>,
): Command<[name: string], Options & RegistrationOptions> {
  return made
    .argument("<name>", "a-z, 0-9 and -")
    .option("--profile <file>", "JSON of the host's profile")
    .option("--hosts <hosts>", "name:port, several separated by commas: the preferred one first")
    .addOption(
      new Option("--tls <tls>", "off if the line is encrypted by other means; default on").choices(["on", "off"]),
    )
    .option("--ca <file>", "PEM of the hosts' authorities; default: the well-known ones")
    .option("--certificate <file>", "PEM of the client certificate")
    .option("--key <file>", "PEM of the client certificate's key")
    .option("--mac-key <file>", "file with the key of the messages' MACs, in hexadecimal")
    .option(
      "--key-encryption-key <file>",
      "file with the key for new MAC keys over the link, in hexadecimal",
    ) as unknown as Command<[name: string], Options & RegistrationOptions>;
}

function addCommand(context: CommandContext): AnyCommand {
  const made = command("add", {
    summary: "register an acquirer, for terminals that name it",
    description:
      "The keys are read from files and stored encrypted under the master key; nothing shows them " +
      "again. `paybell terminal set --acquirer` gives a terminal this acquirer.",
    examples: ["paybell acquirer add first-bank --profile host.json --hosts first.bank.example:5000 --mac-key mac.hex"],
  });
  return calls(context, withRegistration(made), async (settings, options, name) => {
    const api = settings.operator();
    const { items } = await api.get<AcquirerList>(acquirersPath);
    if (items.some((one) => one.name === name)) {
      const remedy = "`paybell acquirer update` changes it.";
      throw new Failure(`there is an acquirer ${name} already.`, { code: "acquirer_exists", remedy });
    }
    const added = await api.put<Acquirer>(pathOf(name), await registrationOf(context, options));
    return { value: added, lines: [`${added.name} is registered.`] };
  });
}

function updateCommand(context: CommandContext): AnyCommand {
  const made = command("update", {
    summary: "change an acquirer: running instances apply it within seconds",
    description: "Values that are left out stay. The old link is closed after the answers in flight have come.",
    examples: ["paybell acquirer update first-bank --hosts first.bank.example:5000,second.bank.example:5000"],
  });
  return calls(context, withRegistration(made), async (settings, options, name) => {
    const api = settings.operator();
    await api.get(pathOf(name));
    const changes = await registrationOf(context, options);
    if (Object.keys(changes).length === 0) {
      const remedy = "`paybell acquirer update --help` shows what can be changed.";
      throw new Failure("no change is given.", { code: "bad_usage", remedy });
    }
    const updated = await api.put<Acquirer>(pathOf(name), changes);
    return { value: updated, lines: [`${updated.name} is changed.`] };
  });
}

async function registrationOf(context: CommandContext, options: RegistrationOptions): Promise<object> {
  const read = async (file: string | undefined) =>
    file === undefined ? undefined : await readNamedFile(context, file, "unreadable_file");
  const { hosts, tls } = options;
  const profile = await read(options.profile);
  return definedOf({
    profile: profile === undefined ? undefined : profileIn(options.profile ?? "", profile),
    hosts: hosts?.split(",").map((host) => host.trim()),
    tls,
    ca: await read(options.ca),
    certificate: await read(options.certificate),
    key: await read(options.key),
    macKey: (await read(options.macKey))?.trim(),
    keyEncryptionKey: (await read(options.keyEncryptionKey))?.trim(),
  });
}

function profileIn(file: string, text: string): unknown {
  const profile = jsonIn(text);
  if (profile === undefined) throw new Failure(`${file} is not JSON.`, { code: "unreadable_file" });
  return profile;
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", { summary: "list the registered acquirers", examples: ["paybell acquirer list"] });
  return calls(context, made, async (settings) => {
    const { items } = await settings.operator().get<AcquirerList>(acquirersPath);
    return itemsOf(items, [
      ["name", ({ name }) => name],
      ["profile", ({ profile }) => profile["name"] as string],
      ["hosts", ({ hosts }) => hosts.join(", ")],
    ]);
  });
}

function showCommand(context: CommandContext): AnyCommand {
  const made = command("show", {
    summary: "show how an acquirer is registered, never a key",
    examples: ["paybell acquirer show first-bank"],
  }).argument("<acquirer>", "as `paybell acquirer list` shows it");
  return calls(context, made, async (settings, _, name) => {
    const acquirer = await settings.operator().get<AcquirerState>(pathOf(name));
    const { profile, hosts, tls, certificate, hasMacKey, updatedAt, link } = acquirer;
    const lines = columns([
      ["profile", printable(String(profile["name"]))],
      ["hosts", hosts.join(", ")],
      ["TLS", `${tls}${certificate === "" ? "" : ", with a client certificate"}`],
      ["MAC key", hasMacKey ? "is set" : "none"],
      ["changed", updatedAt],
      ["link", `${link.ok ? "" : "down: "}${printable(link.detail)}`],
    ]);
    return { value: acquirer, lines };
  });
}

function removeCommand(context: CommandContext): AnyCommand {
  const made = command("remove", {
    summary: "remove an acquirer that no terminal names any more",
    examples: ["paybell acquirer remove first-bank"],
  }).argument("<acquirer>", "as `paybell acquirer list` shows it");
  return calls(context, withConfirmation(made), async (settings, options, name) => {
    const api = settings.operator();
    await api.get(pathOf(name));
    await confirm(context, options, `The acquirer ${printable(name)} is removed, with its keys.`);
    const removed = await api.delete<Acquirer>(pathOf(name));
    return { value: removed, lines: [`${removed.name} is removed.`] };
  });
}
