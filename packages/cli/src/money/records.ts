import { type Command, InvalidArgumentError, Option } from "commander";
import {
  type AccessOptions,
  onlyPartner,
  partnerFilter,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import { type NewestOptions, printNewest, withNewest } from "../client/lists.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import {
  columns,
  fieldColumns,
  type JsonOption,
  listed,
  print,
  printable,
  type Shown,
  textOf,
} from "../shell/output.ts";

interface Kind {
  readonly noun: string;
  readonly plural: string;
  /** The values of `--state`. Absent: an event's kinds, which the service names if it refuses one. */
  readonly states?: readonly string[];
  readonly exampleState: string;
  /** The columns of a list: its time first, the id last. */
  readonly fields: readonly string[];
}

const transaction: Kind = {
  noun: "transaction",
  plural: "transactions",
  states: ["INIT", "SUCCESS", "ERROR"],
  exampleState: "SUCCESS",
  fields: ["createdAt", "command", "state", "amount", "currency", "tid", "reqId", "id"],
};
const batch: Kind = {
  noun: "batch",
  plural: "batches",
  states: ["CLOSED"],
  exampleState: "CLOSED",
  fields: ["closedAt", "tid", "mid", "batchNo", "currency", "saleQuantity", "saleTotalMinor", "id"],
};
const settlement: Kind = {
  noun: "settlement",
  plural: "settlements",
  states: ["waiting", "sending", "uploading"],
  exampleState: "waiting",
  fields: ["createdAt", "kind", "tid", "state", "tries", "dueAt", "id"],
};
const reversal: Kind = {
  noun: "reversal",
  plural: "reversals",
  states: ["PENDING", "DONE", "PARKED"],
  exampleState: "PARKED",
  fields: ["createdAt", "tid", "state", "responseCode", "tries", "dueAt", "id"],
};
const event: Kind = {
  noun: "event",
  plural: "events",
  exampleState: "parked",
  fields: ["at", "kind", "partnerId", "subjectId", "id"],
};

export function transactionCommand(context: CommandContext): Command {
  return recordGroup(context, transaction, "search transactions, and show one with its chain");
}

export function batchCommand(context: CommandContext): Command {
  return recordGroup(context, batch, "search batches, and show one");
}

export function settlementCommand(context: CommandContext): Command {
  const abort = actionCommand(context, settlement, {
    name: "abort",
    summary: "end a settlement that the acquirer does not answer: its batch is open again",
    exampleReason: "the bank confirmed that it has not settled the batch",
    done: "is ended; its batch is open again",
  });
  const resolve = actionCommand(context, settlement, {
    name: "resolve",
    summary: "reopen a batch that the acquirer settled after the abort, and that has changed since",
    exampleReason: "the bank settled two Sales of the batch; the third is in its next one",
    done: "is resolved; the next settlement asks the acquirer",
  });
  const summary = "search settlements under way, show one, abort or resolve one";
  return recordGroup(context, settlement, summary, [abort, resolve]);
}

export function reversalCommand(context: CommandContext): Command {
  const retry = actionCommand(context, reversal, {
    name: "retry",
    summary: "send a parked Reversal again, or with a reason one that is done",
    exampleReason: "the bank still has the charge in its books",
    isReasonOptional: true,
    done: "is due again",
  });
  const resolve = actionCommand(context, reversal, {
    name: "resolve",
    summary: "end a parked Reversal manually: the acquirer confirmed that nothing is charged",
    exampleReason: "the bank confirmed that nothing is charged",
    done: "is resolved",
  });
  return recordGroup(context, reversal, "search Reversals, show one, retry or resolve one", [retry, resolve]);
}

export function eventCommand(context: CommandContext): Command {
  return recordGroup(context, event, "search events, and show one");
}

function recordGroup(context: CommandContext, kind: Kind, summary: string, more: readonly Command[] = []): Command {
  return group(kind.noun, summary, [listCommand(context, kind), showCommand(context, kind), ...more]);
}

function pathOf({ plural }: Kind, ...parts: readonly string[]): string {
  return ["/operator/v1", plural, ...parts.map(encodeURIComponent)].join("/");
}

interface ListOptions extends AccessOptions, NewestOptions {
  readonly partner?: string;
  readonly state?: string;
  readonly acquirer?: string;
}

function listCommand(context: CommandContext, kind: Kind): Command {
  const { noun, plural, exampleState, fields } = kind;
  const made = command("list", {
    summary: `list ${plural}, newest first`,
    examples: [`paybell ${noun} list --since 1h`, `paybell ${noun} list --state ${exampleState} --follow`],
  })
    .option(...onlyPartner)
    .addOption(stateOption(kind));
  if (kind === transaction) {
    made.option("--acquirer <name>", "only those that went to it; default: to that of the settings");
  }
  const [time = ""] = fields;
  return withAccessOptions(withNewest(context, made)).action(
    ends(
      context,
      async (options: ListOptions) => {
        const settings = await readClientSettings(context, options);
        const { state, acquirer } = options;
        return await printNewest<Shown>(context, options, {
          ...{ plural, api: settings.operator(), path: pathOf(kind), columns: fieldColumns<Shown>(...fields) },
          query: { partner: await partnerFilter(settings, options.partner), state, acquirer },
          idOf: ({ id }) => id,
          timeOf: (one) => String(one[time]),
        });
      },
      "finishes",
    ),
  );
}

/** Takes a state in either case, because some are in capitals. */
function stateOption({ states }: Kind): Option {
  if (states === undefined) {
    return new Option(
      "--state <kind>",
      "only those of this kind; another word is refused with a list of all",
    ).argParser((text) => text.toLowerCase());
  }
  return new Option("--state <state>", "only those in this state").choices(states).argParser((text) => {
    const state = states.find((one) => one.toLowerCase() === text.toLowerCase());
    if (state === undefined) throw new InvalidArgumentError(`It must be one of ${states.join(", ")}.`);
    return state;
  });
}

function showCommand(context: CommandContext, kind: Kind): Command {
  const { noun } = kind;
  const made = command("show", {
    summary: kind === transaction ? "show a transaction with its chain" : `show one ${noun}`,
    examples: [`paybell ${noun} show 01a1fc40-577c-728c-bd54-142edc79a51f`],
  }).argument("<id>", `as \`paybell ${noun} list\` shows it`);
  return withAccessOptions(made).action(
    ends(context, async (id: string, options: AccessOptions & JsonOption) => {
      const api = (await readClientSettings(context, options)).operator();
      const found = await api.get<Shown>(pathOf(kind, id));
      const chain =
        kind === transaction ? await api.get<{ items: readonly Shown[] }>(pathOf(kind, id, "chain")) : undefined;
      const others = (chain?.items ?? []).filter((one) => one.id !== found.id);
      print(context, options, chain === undefined ? found : { ...found, chain: chain.items }, [
        ...columns(Object.entries(found).map(([name, value]) => [name, textOf(value)])),
        ...(others.length === 0 ? [] : ["", "Chain", ...listed(others, fieldColumns<Shown>(...kind.fields))]),
      ]);
      return exitCodes.ok;
    }),
  );
}

interface Action {
  readonly name: string;
  readonly summary: string;
  /** The reason is kept by the audit. */
  readonly exampleReason: string;
  /** The service may do without, and says so if not. */
  readonly isReasonOptional?: boolean;
  readonly done: string;
}

interface ActionOptions extends AccessOptions, JsonOption, ConfirmOption {
  readonly reason?: string;
}

function actionCommand(context: CommandContext, kind: Kind, action: Action): Command {
  const { name, summary, exampleReason, isReasonOptional = false, done } = action;
  const { noun } = kind;
  const example = `paybell ${noun} ${name} 01a1fc40-577c-728c-bd54-142edc79a51f`;
  const made = command(name, {
    summary,
    examples: [...(isReasonOptional ? [example] : []), `${example} --reason "${exampleReason}"`],
  }).argument("<id>", `as \`paybell ${noun} list\` shows it`);
  const needed = isReasonOptional ? `required if the ${noun} is done` : "required";
  made.option("--reason <text>", `why, for the audit; ${needed}`);
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, async (id: string, options: ActionOptions) => {
      const { reason } = options;
      if (!isReasonOptional && reason === undefined) {
        throw new Failure(`a ${noun} cannot be ended manually without a reason.`, {
          code: "bad_usage",
          remedy: "Give it with --reason; the audit keeps it.",
        });
      }
      const api = (await readClientSettings(context, options)).operator();
      if (options.yes !== true) {
        const found = await api.get<Shown>(pathOf(kind, id));
        const shown = kind.fields.map((field) => `${field} ${textOf(found[field])}`).join(", ");
        await confirm(context, options, `The ${noun} ${done}: ${shown}.`);
      }
      const changed = await api.post<Shown>(pathOf(kind, id, name), reason === undefined ? {} : { reason });
      print(context, options, changed, [`The ${noun} ${printable(changed.id)} ${done}.`]);
      return exitCodes.ok;
    }),
  );
}
