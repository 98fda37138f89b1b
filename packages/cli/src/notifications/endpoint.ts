import { Option } from "@commander-js/extra-typings";
import { notifiedCommands } from "@paybell/contract";
import type { Endpoint, Self } from "@paybell/partner/client";
import { calls, onlyPartner, partnerFilter } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { meant, readPages } from "../client/lists.ts";
import { type AnyCommand, command, group } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { fieldColumns, itemsOf, printable } from "../shell/output.ts";

const path = "/operator/v1/endpoints";

export function endpointCommand(context: CommandContext): AnyCommand {
  return group("endpoint", "list endpoints that failed, have deliveries to one go on, change your own URL", [
    listCommand(context),
    closeCommand(context),
    changeCommand(context),
  ]);
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", {
    summary: "list the endpoints that have failed, with their circuits",
    examples: ["paybell endpoint list --state open"],
  })
    .option(...onlyPartner)
    .addOption(
      new Option("--state <state>", "only endpoints in this state").choices(["closed", "open", "gone"] as const),
    );
  return calls(context, made, async (settings, { partner, state }) => {
    const query = { partner: await partnerFilter(settings, partner), state };
    return itemsOf(await readPages<Endpoint>(settings.operator(), path, query), [
      ...fieldColumns<Endpoint>("state", "target", "failures", "lastReason"),
      ["next try", ({ probeAt }) => probeAt],
      ["partner", ({ partnerId }) => partnerId],
      ["id", ({ id }) => id],
    ]);
  });
}

function closeCommand(context: CommandContext): AnyCommand {
  const made = command("close", {
    summary: "close an endpoint's circuit: deliveries to it continue immediately",
    examples: ["paybell endpoint close 01a1fc39-e58e-73fb-a49a-dce132454876"],
    exitCodes: { 0: "it is closed", 1: "it was closed already" },
  })
    .argument("<endpoint>", "its id or target, as `paybell endpoint list` shows them")
    .option("--partner <partner>", "whose it is, where several have the same: an id or a name");
  return calls(context, made, async (settings, options, text) => {
    const [api, partner] = [settings.operator(), await partnerFilter(settings, options.partner)];
    const known = await readPages<Endpoint>(api, path, { partner });
    const named = known.map((one) => ({ ...one, names: [one.target, one.partnerId] }));
    const { id, partnerId, state, target } = meant(named, text, "endpoint", "paybell endpoint list");
    if (state === "closed") {
      const lines = [`${printable(target)} is closed already: deliveries to it go on.`];
      return { value: { id, state }, lines, code: exitCodes.negative };
    }
    const closed = await api.post<Endpoint>(`${path}/${encodeURIComponent(id)}/close`, { partnerId });
    return { value: closed, lines: [`${printable(closed.target)} is ${closed.state}: deliveries to it go on.`] };
  });
}

function changeCommand(context: CommandContext): AnyCommand {
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
  return calls(context, made, async (settings, { command: name, remove = false }, url) => {
    if (remove ? name === undefined || url !== undefined : url === undefined) {
      const remedy = "Give the new URL, or --command and --remove.";
      throw new Failure("it is not clear what changes.", { code: "bad_usage", remedy });
    }
    const body = { callBackUrl: url ?? null, ...definedOf({ command: name }) };
    const changed = await settings.partner().put<Pick<Self, "settings">>("/v1/callback-url", body);
    const { callBackUrl, callBackUrlByCommand } = changed.settings;
    const what = name === undefined ? "deliveries" : `deliveries of ${name}`;
    const to = printable(url ?? callBackUrl ?? "no URL, unless the command names one");
    const done = remove ? "Removed" : "It accepted a test IPN";
    return { value: { callBackUrl, callBackUrlByCommand }, lines: [`${done}: ${what} go to ${to} now.`] };
  });
}
