import { type Command, Option } from "commander";
import { command, ends, group } from "../command.ts";
import { type ClientOptions, readClientSettings, withClientOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { definedOf } from "../credentials.ts";
import { exitCodes } from "../exit-codes.ts";
import { columns, type JsonOption, print } from "../output.ts";
import { printable } from "../printable.ts";
import { readAll } from "../read-all.ts";

interface Endpoint {
  readonly id: string;
  readonly partnerId: string;
  readonly target: string;
  readonly state: string;
  readonly failures: number;
  readonly lastReason: string | null;
  readonly probeAt: string | null;
}

interface EndpointOptions extends ClientOptions, JsonOption {
  readonly partner?: string;
  readonly state?: string;
}

const path = "/operator/v1/endpoints";

export function endpointCommand(context: CommandContext): Command {
  return group("endpoint", "list endpoints that failed, and have deliveries to one go on at once", [
    listCommand(context),
    closeCommand(context),
  ]);
}

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list the endpoints that have failed, with their circuits",
    examples: ["paybell endpoint list --state open"],
  })
    .option("--partner <id>", "of one partner")
    .addOption(new Option("--state <state>", "of the circuit").choices(["closed", "open", "gone"]));
  return withClientOptions(made).action(
    ends(context, async (options: EndpointOptions) => {
      const { partner, state } = options;
      const api = (await readClientSettings(context, options)).operator();
      const items = await readAll<Endpoint>(api, path, { partner, state });
      const rows = items.map((one) => [
        one.state,
        printable(one.target),
        `${one.failures} failures, ${one.lastReason ?? "no reason"}`,
        one.probeAt === null ? "" : `tried again at ${one.probeAt}`,
        `partner ${one.partnerId}`,
        one.id,
      ]);
      print(context, options, { items }, items.length === 0 ? ["None."] : columns(rows));
      return exitCodes.ok;
    }),
  );
}

function closeCommand(context: CommandContext): Command {
  const made = command("close", {
    summary: "close an endpoint's circuit: deliveries to it go on at once",
    examples: ["paybell endpoint close 01a1fc39-e58e-73fb-a49a-dce132454876"],
  })
    .argument("<id>", "as `paybell endpoint list` shows it")
    .option("--partner <id>", "whose it is, where several have the same");
  return withClientOptions(made).action(
    ends(context, async (id: string, options: EndpointOptions) => {
      const api = (await readClientSettings(context, options)).operator();
      const body = definedOf({ partnerId: options.partner });
      const closed = await api.post<Endpoint>(`${path}/${encodeURIComponent(id)}/close`, body);
      print(context, options, closed, [`${printable(closed.target)} is ${closed.state}: deliveries to it go on.`]);
      return exitCodes.ok;
    }),
  );
}
