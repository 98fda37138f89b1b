import { parseJson } from "@paybell/contract";
import type { CommandContext } from "../context.ts";
import { Failure } from "../failure.ts";
import { readNamedFile } from "../named-file.ts";

export interface RegistrationOptions {
  readonly name?: string;
  readonly callBackUrl?: string;
  readonly callbackAddresses?: readonly string[];
  readonly callingAddresses?: readonly string[];
  readonly cipher?: string;
  readonly encoding?: string;
  readonly signing?: string;
  readonly fields?: string;
  readonly wireNames?: string;
  readonly timeZone?: string;
  readonly settings?: string;
}

/** The input of a registration: the settings file, overridden by options. The service checks every value. */
export async function readRegistration(
  context: CommandContext,
  options: RegistrationOptions,
): Promise<Readonly<Record<string, unknown>>> {
  const { settings, signing, ...given } = options;
  const { name, callBackUrl, callbackAddresses, callingAddresses, cipher, encoding, fields, wireNames, timeZone } =
    given;
  const sent = { cipher, encoding, fields, wireNames, timeZone };
  const flags = Object.entries({ name, callBackUrl, callbackAddresses, callingAddresses, ...sent }).filter(
    ([, value]) => value !== undefined,
  );
  return {
    ...(settings !== undefined && (await readSettings(context, settings))),
    ...Object.fromEntries(flags),
    ...(signing !== undefined && { signing: readSigning(signing) }),
  };
}

/** Reads a file of settings. @throws Failure if it is not a JSON object */
export async function readSettings(context: CommandContext, path: string): Promise<object> {
  const value = parse(await readNamedFile(context, path, "unreadable"));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Failure(`${path} is not a JSON object of settings.`, { code: "bad_settings" });
}

function readSigning(text: string): unknown {
  if (text === "fields" || text === "whole") return { mode: text };
  const value = parse(text);
  if (value !== undefined) return value;
  throw new Failure("--signing must be fields, whole, or JSON.", { code: "bad_settings" });
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
