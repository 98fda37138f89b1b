import { cardCommands, currencyDecimals } from "@paybell/contract";
import type { z } from "zod";
import { messageOf } from "../../../errors.ts";
import { standardFields } from "../message/codec.ts";
import { neverShown } from "../message/masking.ts";
import { type MessageTemplate, type Profile, profileSchema } from "./schema.ts";
import { placeOf, tagProblem, templateProblems, valuesIn } from "./template.ts";

/** A profile that cannot be used: each problem says where it is. */
export class ProfileError extends Error {
  override readonly name = "ProfileError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the profile of the host cannot be used:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.problems = problems;
  }
}

// Values may have a number of digits, as in {pinBlock:16}.
const secretValues = /\{(?:cardToken|track2|pinBlock|emv)[:}]/;

/**
 * One that cannot tell two requests apart is used over one connection of one instance, which alone can keep them apart.
 *
 * @throws ProfileError naming every problem at once
 */
export function readProfile(text: string): Profile {
  const json = parsed(text);
  const read = profileSchema.safeParse(json);
  if (!read.success) {
    throw new ProfileError(
      read.error.issues.map((issue) => `${issue.path.join(".") || "the profile"}: ${told(issue)}`),
    );
  }
  const problems = [
    ...currencyProblems(read.data),
    ...messages(read.data).flatMap(([name, message]) => messageProblems(name, message, read.data)),
    ...connectionProblems(read.data),
    ...structureProblems(read.data),
    ...answerProblems(read.data),
    ...shownProblems(read.data),
  ];
  if (problems.length > 0) throw new ProfileError(problems);
  if (matchProblems(read.data).length === 0) return read.data;
  return { ...read.data, network: { ...read.data.network, sessions: "one", connections: 1 } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ProfileError([`it is not JSON: ${messageOf(error)}`]);
  }
}

/** Describes a problem for which zod only says that a name or a choice does not fit. */
function told(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_key") return issue.issues.map(told).join(", ");
  if (issue.code === "invalid_union") return issue.errors.flat().map(told).join(", or ");
  return issue.message;
}

function currencyProblems({ currencies }: Profile): string[] {
  return Object.entries(currencies).flatMap(([code, { exponent }]) => {
    const decimals = currencyDecimals(code);
    if (decimals === undefined) return [`currencies.${code}: ISO 4217 has no such currency`];
    if (exponent >= decimals) return [];
    return [`currencies.${code}.exponent: must be at least ${decimals}, or part of an amount would be lost`];
  });
}

function messageProblems(name: string, { fields }: MessageTemplate, profile: Profile): string[] {
  return Object.entries(fields).flatMap(([field, template]) => {
    const at = `${name}.fields.${field}`;
    const problems = templateProblems(template).map((problem) => `${at}: ${problem}`);
    problems.push(...placeProblems(field, fields, profile).map((problem) => `${at}: ${problem}`));
    if (profile.mac !== null && (field === "64" || field === "128")) problems.push(`${at}: it holds the MAC`);
    // A Reversal repeats it, and has no other source for it.
    if (field === "3" && isOriginal(name) && template.includes("{")) {
      problems.push(`${at}: the processing code of a message that can be reversed must be written out`);
    }
    return problems;
  });
}

function connectionProblems({ network: { connections, sessions }, mac }: Profile): string[] {
  if (connections === 1) return [];
  const ofOne =
    mac?.keyExchange?.belongsTo === "connection" ? ["a key that belongs to a connection is one connection's"] : [];
  const why = sessions === "one" ? ["one session is one connection", ...ofOne] : ofOne;
  return why.map((problem) => `network.connections: must be 1, because ${problem}`);
}

/** Why no message can have this element beside the others; none for a whole field. */
function placeProblems(key: string, fields: MessageTemplate["fields"], profile: Profile): string[] {
  const { field, tag } = placeOf(key);
  if (tag === "") return [];
  const structure = profile.structures[String(field)];
  if (structure === undefined) return [`structures says nothing of field ${field}`];
  const problem = tagProblem(tag, structure);
  const whole = Object.hasOwn(fields, String(field)) ? [`field ${field} is written as a whole too`] : [];
  return problem === undefined ? whole : [problem, ...whole];
}

function answerProblems({ answer, structures }: Profile): string[] {
  return Object.entries(answer).flatMap(([name, key]) => {
    const { field, tag } = placeOf(typeof key === "string" ? key : "");
    const structure = structures[String(field)];
    if (tag === "") return [];
    const problem = structure === undefined ? `structures says nothing of field ${field}` : tagProblem(tag, structure);
    return problem === undefined ? [] : [`answer.${name}: ${problem}`];
  });
}

function structureProblems({ structures, fields, standard }: Profile): string[] {
  return Object.entries(structures).flatMap(([field, { form }]) => {
    const own = fields[field];
    const format = (typeof own === "string" ? own : own?.format) ?? standardFields[standard].get(Number(field)) ?? "";
    if (format.startsWith("b") === (form === "ber")) return [];
    return [
      `structures.${field}: ${form} needs a field of ${form === "ber" ? "bytes" : "characters"}, and it is ${format}`,
    ];
  });
}

function shownProblems(profile: Profile): string[] {
  const withToken = new Set(
    messages(profile).flatMap(([, { fields }]) =>
      Object.entries(fields).flatMap(([field, template]) =>
        secretValues.test(template) ? [placeOf(field).field] : [],
      ),
    ),
  );
  return profile.shownFields
    .filter((field) => neverShown.has(field) || withToken.has(field))
    .map((field) => `shownFields: field ${field} holds card data`);
}

const cardValues = /\{(?:cardToken|expDate|entryMode)[:}]/;
const firstMessages = new Set(["messages.SALE", "messages.PREAUTH"]);

/** Whether a message after a transaction's first needs its card. */
export function wantsCards(profile: Profile): boolean {
  const later = messages(profile).filter(([name]) => !firstMessages.has(name));
  return later.some(([, { fields }]) => Object.values(fields).some((template) => cardValues.test(template)));
}

function messages({
  messages: own,
  network: { sessions: _, connections: __, hostRequests: ___, ...network },
  mac,
}: Profile): [string, MessageTemplate][] {
  const named = (group: string, of: Readonly<Record<string, MessageTemplate | null>>) =>
    Object.entries(of).flatMap(([name, message]): [string, MessageTemplate][] =>
      message === null ? [] : [[`${group}.${name}`, message]],
    );
  const request = mac?.keyExchange?.request ?? null;
  return [...named("messages", own), ...named("network", network), ...named("mac.keyExchange", { request })];
}

function isOriginal(name: string): boolean {
  return cardCommands.some((command) => name === `messages.${command}`);
}

/** Settings that have no effect as they are: a profile with one says something else than its author means. */
export function idleProblems({ clearing, mac }: Profile): string[] {
  const problems: string[] = [];
  if (clearing !== undefined) {
    const { columns, kinds, currency, format, delimiter } = clearing;
    const hasKinds = Object.keys(kinds).length > 0;
    if (hasKinds && columns.kind === undefined) {
      problems.push("clearing.kinds: has no effect without clearing.columns.kind: every line would be a sale");
    }
    if (!hasKinds && columns.kind !== undefined) {
      problems.push("clearing.kinds: is required with clearing.columns.kind, or no line can be read");
    }
    if (currency !== undefined && columns.currency !== undefined) {
      problems.push("clearing.currency: has no effect beside clearing.columns.currency");
    }
    if (format === "fixed" && delimiter !== ",") problems.push("clearing.delimiter: has no effect in fixed columns");
  }
  if (mac?.algorithm === "aes-cmac" && mac.padding !== "zeros") {
    problems.push("mac.padding: has no effect with aes-cmac, which has its own");
  }
  const exchange = mac?.keyExchange;
  if (exchange?.request === null && exchange.requestEveryMs !== null) {
    problems.push("mac.keyExchange.requestEveryMs: has no effect without mac.keyExchange.request");
  }
  if (exchange?.request === null && exchange.brings.values.length === 0) {
    problems.push("mac.keyExchange: no key ever comes: request is null, and brings.values is empty");
  }
  return problems;
}

/** In words: the session of the link of one instance for all. */
export function oneSessionOf(profile: Profile): string {
  const isAmbiguous = matchProblems(profile).length > 0;
  return isAmbiguous
    ? "the one session of a profile that cannot tell two requests apart"
    : "the one session that the host allows";
}

/**
 * Why answers matched by `matchBy` could be swapped: trace numbers count for each terminal, so only the
 * terminal and the trace number together distinguish a message.
 */
export function matchProblems({ messages, matchBy }: Profile): string[] {
  return Object.entries(messages).flatMap(([name, message]) => {
    if (message === null) return [];
    const matched = new Set(matchBy.flatMap((field) => valuesIn(message.fields[field] ?? "")));
    const missing = (["tid", "traceNo"] as const).filter((value) => !matched.has(value));
    if (missing.length === 0) return [];
    const values = missing.map((value) => `{${value}}`).join(" and ");
    return [
      `matchBy: no field of messages.${name} named there has ${values}: two requests could get each other's answers`,
    ];
  });
}
