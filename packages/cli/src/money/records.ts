import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { calls, onlyPartner, partnerFilter } from "../client/connection.ts";
import { newest, withNewest } from "../client/lists.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { Failure } from "../shell/failure.ts";
import { fieldColumns, listed, printable, recordLines, type Shown, textOf } from "../shell/output.ts";

interface Kind {
  readonly noun: string;
  readonly plural: string;
  readonly summary: string;
  /** The values of `--state`. Absent: an event's kinds, which the service names if it refuses one. */
  readonly states?: readonly string[];
  readonly exampleState: string;
  /** The columns of a list: its time first, the id last. */
  readonly fields: readonly string[];
  readonly actions?: readonly Action[];
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

const transaction: Kind = {
  noun: "transaction",
  plural: "transactions",
  summary: "search transactions, and show one with its chain",
  states: ["INIT", "SUCCESS", "ERROR"],
  exampleState: "SUCCESS",
  fields: ["createdAt", "command", "state", "amount", "currency", "tid", "reqId", "id"],
};

const kinds: readonly Kind[] = [
  transaction,
  {
    noun: "batch",
    plural: "batches",
    summary: "search batches, and show one",
    states: ["CLOSED"],
    exampleState: "CLOSED",
    fields: ["closedAt", "tid", "mid", "batchNo", "currency", "saleQuantity", "saleTotalMinor", "id"],
  },
  {
    noun: "settlement",
    plural: "settlements",
    summary: "search settlements under way, show one, abort or resolve one",
    states: ["waiting", "sending", "uploading"],
    exampleState: "waiting",
    fields: ["createdAt", "kind", "tid", "state", "tries", "dueAt", "id"],
    actions: [
      {
        name: "abort",
        summary: "end a settlement that the acquirer does not answer: its batch is open again",
        exampleReason: "the bank confirmed that it has not settled the batch",
        done: "is ended; its batch is open again",
      },
      {
        name: "resolve",
        summary: "reopen a batch that the acquirer settled after the abort, and that has changed since",
        exampleReason: "the bank settled two Sales of the batch; the third is in its next one",
        done: "is resolved; the next settlement asks the acquirer",
      },
    ],
  },
  {
    noun: "reversal",
    plural: "reversals",
    summary: "search Reversals, show one, retry or end one",
    states: ["PENDING", "DONE", "PARKED", "STANDS"],
    exampleState: "PARKED",
    fields: [
      ...["createdAt", "command", "state", "responseCode", "amount", "currency", "merchantTransId"],
      ...["tid", "tries", "dueAt", "id"],
    ],
    actions: [
      {
        name: "retry",
        summary: "send a parked Reversal again, or with a reason one that is done",
        exampleReason: "the bank still has the charge in its books",
        isReasonOptional: true,
        done: "is due again",
      },
      {
        name: "resolve",
        summary: "end a parked Reversal manually: the acquirer confirmed that nothing is charged",
        exampleReason: "the bank confirmed that nothing is charged",
        done: "is resolved",
      },
      {
        name: "stands",
        summary: "end a parked Reversal manually: the acquirer refuses for good to undo the transaction, which stands",
        exampleReason: "the bank has settled the charge",
        done: "is over for good, and its transaction stands; tell the partner, who may have got ERROR",
      },
    ],
  },
  {
    noun: "event",
    plural: "events",
    summary: "search events, and show one",
    exampleState: "parked",
    fields: ["at", "kind", "partnerId", "subjectId", "id"],
  },
];

/** A group of commands for each kind of record. */
export const recordCommands = kinds.map((kind) => (context: CommandContext): AnyCommand => {
  const actions = (kind.actions ?? []).map((action) => actionCommand(context, kind, action));
  return group(kind.noun, kind.summary, [listCommand(context, kind), showCommand(context, kind), ...actions]);
});

function pathOf({ plural }: Kind, ...parts: readonly string[]): string {
  return ["/operator/v1", plural, ...parts.map(encodeURIComponent)].join("/");
}

type ListOptions = {
  readonly partner?: string | undefined;
  readonly state?: string | undefined;
  readonly acquirer?: string | undefined;
};

function listCommand(context: CommandContext, kind: Kind): AnyCommand {
  const { noun, plural, exampleState, fields } = kind;
  const made = command("list", {
    summary: `list ${plural}, newest first`,
    examples: [`paybell ${noun} list --since 1h`, `paybell ${noun} list --state ${exampleState} --follow`],
  })
    .option(...onlyPartner)
    .addOption(stateOption(kind)) as unknown as Command<[], ListOptions>;
  if (kind === transaction) {
    made.option("--acquirer <name>", "only those that went to it; `default` names that of the settings");
  }
  const [time = ""] = fields;
  return calls(
    context,
    withNewest(context, made),
    async (settings, options) =>
      newest<Shown>(context, options, {
        ...{ plural, api: settings.operator(), path: pathOf(kind), columns: fieldColumns<Shown>(...fields) },
        query: {
          partner: await partnerFilter(settings, options.partner),
          state: options.state,
          acquirer: options.acquirer,
        },
        idOf: ({ id }) => id,
        timeOf: (one) => String(one[time]),
      }),
    "finishes",
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

function showCommand(context: CommandContext, kind: Kind): AnyCommand {
  const { noun } = kind;
  const made = command("show", {
    summary: kind === transaction ? "show a transaction with its chain" : `show one ${noun}`,
    examples: [`paybell ${noun} show 01a1fc40-577c-728c-bd54-142edc79a51f`],
  }).argument("<id>", `as \`paybell ${noun} list\` shows it`);
  return calls(context, made, async (settings, _, id) => {
    const api = settings.operator();
    const found = await api.get<Shown>(pathOf(kind, id));
    if (kind !== transaction) return { value: found, lines: recordLines(found) };
    const { items: chain } = await api.get<{ items: readonly Shown[] }>(pathOf(kind, id, "chain"));
    const others = chain.filter((one) => one.id !== found.id);
    const chainLines = others.length === 0 ? [] : ["", "Chain", ...listed(others, fieldColumns(...kind.fields))];
    return { value: { ...found, chain }, lines: [...recordLines(found), ...chainLines] };
  });
}

function actionCommand(context: CommandContext, kind: Kind, action: Action): AnyCommand {
  const { name, summary, exampleReason, isReasonOptional = false, done } = action;
  const { noun } = kind;
  const example = `paybell ${noun} ${name} 01a1fc40-577c-728c-bd54-142edc79a51f`;
  const needed = isReasonOptional ? `required if the ${noun} is done` : "required";
  const made = command(name, {
    summary,
    examples: [...(isReasonOptional ? [example] : []), `${example} --reason "${exampleReason}"`],
  })
    .argument("<id>", `as \`paybell ${noun} list\` shows it`)
    .option("--reason <text>", `why, for the audit; ${needed}`);
  return calls(context, withConfirmation(made), async (settings, options, id) => {
    const { reason } = options;
    if (!isReasonOptional && reason === undefined) {
      throw new Failure(`a ${noun} cannot be ended manually without a reason.`, {
        code: "bad_usage",
        remedy: "Give it with --reason; the audit keeps it.",
      });
    }
    const api = settings.operator();
    if (options.yes !== true) {
      const found = await api.get<Shown>(pathOf(kind, id));
      const shown = kind.fields.map((field) => `${field} ${textOf(found[field])}`).join(", ");
      await confirm(context, options, `The ${noun} ${done}: ${shown}.`);
    }
    const changed = await api.post<Shown>(pathOf(kind, id, name), reason === undefined ? {} : { reason });
    return { value: changed, lines: [`The ${noun} ${printable(changed.id)} ${done}.`] };
  });
}
