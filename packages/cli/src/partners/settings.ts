import { type Command, Option, type OptionValues } from "@commander-js/extra-typings";
import type { CommandContext } from "../shell/context.ts";
import { Failure } from "../shell/failure.ts";
import { jsonIn, readNamedFile } from "../shell/files.ts";
import { type SettingFlag, settingFlags } from "./setting-flags.ts";

const values = {
  text: "<text>",
  number: "<n>",
  list: "<text...>",
  numbers: "<n...>",
  map: "<name=text...>",
  json: "<json>",
};

function optionOf({ name, group, kind, meaning, choices, initial }: SettingFlag): Option {
  const flag = `${group === undefined ? "" : `${group}-`}${name}`.replaceAll(
    /[A-Z]/g,
    (letter) => `-${letter.toLowerCase()}`,
  );
  const note = initial === undefined ? "required of a new partner" : `default: ${initial}`;
  const made = new Option(`--${flag} ${values[kind]}`, `${meaning.replaceAll("null:", "none:")} (${note})`);
  return choices === undefined ? made : made.choices(choices);
}

const options = settingFlags.map((setting) => ({ setting, option: optionOf(setting) }));

/** Adds every setting of a partner, and a file of settings. */
export function withPartnerSettings<Args extends unknown[], Options extends OptionValues>(
  made: Command<Args, Options>,
): Command<Args, Options> {
  for (const { option } of options) made.addOption(option);
  made.option("--settings <file>", "settings as JSON, under the names of the operator API; flags override it");
  return made;
}

export const settingsHelp =
  "`none` empties a setting. A value that begins with @ names a file with the value, as in --callback-ca @bank.pem. " +
  "Lists are separated by spaces or commas. The service checks every value.";

/** The settings that the file and the flags name. @throws Failure naming the flag that cannot be read */
export async function readSettings(
  context: CommandContext,
  given: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const file = given["settings"];
  const settings: Record<string, unknown> = typeof file === "string" ? { ...(await settingsIn(context, file)) } : {};
  for (const { setting, option } of options) {
    const typed = given[option.attributeName()];
    if (typed === undefined) continue;
    const texts = await Promise.all([typed].flat().map((text) => ofFile(context, String(text))));
    const value = readValue(setting, option, texts);
    const { name, group } = setting;
    if (group === undefined) settings[name] = value;
    else settings[group] = { ...Object(settings[group]), [name]: value };
  }
  return settings;
}

function readValue({ kind, nullable, choices }: SettingFlag, { long }: Option, texts: readonly string[]): unknown {
  const [text = ""] = texts;
  const isNone = text === "none" && choices === undefined && texts.length === 1;
  const refused = (what: string) => new Failure(`${long} must be ${what}.`, { code: "bad_settings" });
  const number = (digits: string) => {
    if (!/^\d{1,9}$/.test(digits)) throw refused("a whole number");
    return Number(digits);
  };
  if (isNone && nullable === true) return null;
  if (kind === "text") return text;
  if (kind === "number") return number(text);
  // Also as the console takes them.
  const each = texts.flatMap((list) => list.replace(/,$/, "").split(","));
  if (kind === "list") return isNone ? [] : each;
  if (kind === "numbers") return isNone ? [] : each.map(number);
  if (kind === "map") {
    const pairs = texts.map((pair) => /^([^=]+)=(.*)$/s.exec(pair) ?? []);
    if (!isNone && pairs.some(({ length }) => length === 0)) throw refused("one or more name=text");
    return isNone ? {} : Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
  }
  // The mode alone is the usual form of `signing`.
  if (/^[a-z]+$/.test(text)) return { mode: text };
  const value = jsonIn(text);
  if (value === undefined) throw refused("a word or JSON");
  return value;
}

async function ofFile(context: CommandContext, text: string): Promise<string> {
  return text.startsWith("@") ? readNamedFile(context, text.slice(1), "unreadable_file") : text;
}

async function settingsIn(context: CommandContext, path: string): Promise<object> {
  const value = jsonIn(await readNamedFile(context, path, "unreadable_file"));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  const remedy = "Flags do without a file.";
  throw new Failure(`${path} is not a JSON object of settings.`, { code: "bad_settings", remedy });
}
