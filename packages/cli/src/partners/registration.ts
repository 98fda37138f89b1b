import { parseJson } from "@paybell/contract";
import { Failure } from "../failure.ts";
import { readNamedFile } from "../named-file.ts";
import type { World } from "../world.ts";

export interface RegistrationOptions {
  readonly name?: string;
  readonly callBackUrl?: string;
  readonly callbackAddresses?: readonly string[];
  readonly callingAddresses?: readonly string[];
  readonly cipher?: string;
  readonly encoding?: string;
  readonly signing?: string;
  readonly wireNames?: string;
  readonly timeZone?: string;
  readonly settings?: string;
}

/** What is registered: the settings file, and the options over it. The service judges every value. */
export async function readRegistration(
  world: World,
  options: RegistrationOptions,
): Promise<Readonly<Record<string, unknown>>> {
  const { settings, signing, ...given } = options;
  const { name, callBackUrl, callbackAddresses, callingAddresses, cipher, encoding, wireNames, timeZone } = given;
  const values = { name, callBackUrl, callbackAddresses, callingAddresses, cipher, encoding, wireNames, timeZone };
  const flags = Object.entries(values).filter(([, value]) => value !== undefined);
  return {
    ...(settings !== undefined && (await readSettings(world, settings))),
    ...Object.fromEntries(flags),
    ...(signing !== undefined && { signing: readSigning(signing) }),
  };
}

async function readSettings(world: World, path: string): Promise<object> {
  const value = parse(await readNamedFile(world, path, "unreadable"));
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Failure(`${path} is no JSON object of settings.`, { code: "bad_settings" });
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
