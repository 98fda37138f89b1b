import { notifiedCommands } from "@paybell/contract";
import type { Endpoint, Self } from "@paybell/partner/client";
import { type Command, Option } from "commander";
import {
  type AccessOptions,
  onlyPartner,
  partnerFilter,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { readPages } from "../client/lists.ts";
import { meant } from "../client/names.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { fieldColumns, type JsonOption, listed, print, printable, type TableColumn } from "../shell/output.ts";

interface ChangeOptions extends AccessOptions, JsonOption {
  readonly command?: string;
  readonly remove?: true;
}

interface EndpointOptions extends AccessOptions, JsonOption {
  readonly partner?: string;
  readonly state?: string;
}

const path = "/operator/v1/endpoints";

export function endpointCommand(context: CommandContext): Command {
  return group("endpoint", "list endpoints that failed, have deliveries to one go on, change your own URL", [
    listCommand(context),
    closeCommand(context),
    changeCommand(context),
  ]);
}

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list the endpoints that have failed, with their circuits",
    examples: ["paybell endpoint list --state open"],
  })
    .option(...onlyPartner)
    .addOption(new Option("--state <state>", "only endpoints in this state").choices(["closed", "open", "gone"]));
  return withAccessOptions(made).action(
    ends(context, async (options: EndpointOptions) => {
      const settings = await readClientSettings(context, options);
      const query = { partner: await partnerFilter(settings, options.partner), state: options.state };
      const items = await readPages<Endpoint>(settings.operator(), path, query);
      print(context, options, { items }, listed(items, endpointColumns));
      return exitCodes.ok;
    }),
  );
}

const endpointColumns: readonly TableColumn<Endpoint>[] = [
  ...fieldColumns<Endpoint>("state", "target", "failures", "lastReason"),
  ["next try", ({ probeAt }) => probeAt],
  ["partner", ({ partnerId }) => partnerId],
  ["id", ({ id }) => id],
];

function closeCommand(context: CommandContext): Command {
  const made = command("close", {
    summary: "close an endpoint's circuit: deliveries to it continue immediately",
    examples: ["paybell endpoint close 01a1fc39-e58e-73fb-a49a-dce132454876"],
    exitCodes: { 0: "it is closed", 1: "it was closed already" },
  })
    .argument("<endpoint>", "its id or target, as `paybell endpoint list` shows them")
    .option("--partner <partner>", "whose it is, where several have the same: an id or a name");
  return withAccessOptions(made).action(
    ends(context, async (text: string, options: EndpointOptions) => {
      const settings = await readClientSettings(context, options);
      const [api, partner] = [settings.operator(), await partnerFilter(settings, options.partner)];
      const known = await readPages<Endpoint>(api, path, { partner });
      const named = known.map((one) => ({ ...one, names: [one.target, one.partnerId] }));
      const { id, partnerId, state, target } = meant(named, text, "endpoint", "paybell endpoint list");
      if (state === "closed") {
        print(context, options, { id, state }, [`${printable(target)} is closed already: deliveries to it go on.`]);
        return exitCodes.negative;
      }
      const closed = await api.post<Endpoint>(`${path}/${encodeURIComponent(id)}/close`, { partnerId });
      print(context, options, closed, [`${printable(closed.target)} is ${closed.state}: deliveries to it go on.`]);
      return exitCodes.ok;
    }),
  );
}

function changeCommand(context: CommandContext): Command {
  const made = command("change", {
    summary: "change your callback URL, once the new one has accepted a test IPN",
    description:
      "For partners, where the operator allows it (setting callBackUrlChange). A sample IPN is sent to the new URL; " +
      "when it is answered 2xx, the URL is registered, also for what is queued. Otherwise nothing changes. With " +
      "--command the URL is for the IPNs of this command only; all others go to your callback URL.",
    examples: [
      "paybell endpoint change https://shop.example/ipn",
      "paybell endpoint change https://books.example/ipn --command SETTLEMENT",
      "paybell endpoint change --command SETTLEMENT --remove",
    ],
  })
    .argument("[url]", "the new URL, within your callback addresses")
    .addOption(new Option("--command <command>", "the command whose IPNs go there").choices(notifiedCommands))
    .option("--remove", "the command's IPNs go to your callback URL again");
  return withAccessOptions(made).action(
    ends(context, async (url: string | undefined, options: ChangeOptions) => {
      const { command: name, remove = false } = options;
      if (remove ? name === undefined || url !== undefined : url === undefined) {
        const remedy = "Give the new URL, or --command and --remove.";
        throw new Failure("it is not clear what changes.", { code: "bad_usage", remedy });
      }
      const api = (await readClientSettings(context, options)).partner();
      const body = { callBackUrl: url ?? null, ...definedOf({ command: name }) };
      const { settings } = await api.put<Pick<Self, "settings">>("/v1/callback-url", body);
      const { callBackUrl, callBackUrlByCommand } = settings;
      const what = name === undefined ? "deliveries" : `deliveries of ${name}`;
      const to = printable(url ?? callBackUrl ?? "no URL, unless the command names one");
      print(context, options, { callBackUrl, callBackUrlByCommand }, [
        remove ? `Removed: ${what} go to ${to} now.` : `It accepted a test IPN: ${what} go to ${to} now.`,
      ]);
      return exitCodes.ok;
    }),
  );
}
