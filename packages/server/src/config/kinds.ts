import { fileURLToPath } from "node:url";
import { webhookKey } from "@paybell/contract";
import ipaddr from "ipaddr.js";
import { z } from "zod";

/** The type of a setting: it reads the text of a variable. */
export type Kind<Value> = z.ZodType<Value, string>;

/** What completes "must be …", and the unit that is shown with it. */
export function descriptionOf(of: Kind<unknown>): { readonly description: string; readonly unit?: string } {
  const { description, unit } = of.meta() ?? {};
  if (description === undefined) throw new Error("a setting's type has no description");
  return { description, ...(typeof unit === "string" && { unit }) };
}

function kind<Value>(read: Kind<Value>, description: string, unit?: string): Kind<Value> {
  return read.meta({ description, unit });
}

export const text = kind(z.string(), "a string");

export function wholeNumber(min: number, max: number, unit?: string): Kind<number> {
  const digits = z.string().regex(/^[0-9]{1,15}$/);
  return kind(
    digits.transform(Number).pipe(z.number().min(min).max(max)),
    `a whole number from ${min} to ${max}`,
    unit,
  );
}

export const share = kind(
  z
    .string()
    .regex(/^(0|1|0?\.\d{1,9}|1\.0+)$/)
    .transform(Number),
  "a number from 0 to 1",
  "share of the traces",
);

export function oneOf<const Values extends readonly string[]>(values: Values): Kind<Values[number]> {
  return kind(z.enum(values) as unknown as Kind<Values[number]>, `one of ${values.join(", ")}`);
}

export function listOf<Item>(item: Kind<Item>, items: string, itemsMax = 1_000): Kind<readonly Item[]> {
  const parts = z.string().transform((value) => value.split(",").map((part) => part.trim()));
  return kind(parts.pipe(z.array(item).max(itemsMax)), `${items}, separated by commas`, descriptionOf(item).unit);
}

function url(...protocols: readonly string[]): Kind<string> {
  return kind(
    z.string().refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol)),
    `a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`,
  );
}

export const httpUrl = url("https:", "http:");

const plainPostgresUrl = url("postgres:", "postgresql:");

/** As PostgreSQL's own clients parse it: without a host it means a socket, `postgres://user@/database?host=/folder`. */
export const postgresUrl = kind(
  z.string().refine((value) => {
    const withHost = value.replace(/^(\w+:\/\/(?:[^@/?#]*@)?)(?=\/)/, "$1socket");
    return plainPostgresUrl.safeParse(withHost).success;
  }),
  descriptionOf(plainPostgresUrl).description,
);

export const feedUrl = kind(
  z.string().refine((value) => {
    if (!URL.canParse(value)) return false;
    const { protocol, host, pathname } = new URL(value);
    const isFile = protocol === "file:" && host === "" && pathname !== "/" && canRead(() => fileURLToPath(value));
    return isFile || (["syslog:", "syslogs:"].includes(protocol) && host !== "");
  }),
  "file:///path, syslog://host:port or syslogs://host:port",
);

/** Its user and password are decoded when it is used. */
function urlWithPassword(...protocols: readonly string[]): Kind<string> {
  const of = url(...protocols);
  return kind(
    of.refine((value) => {
      const { username, password } = new URL(value);
      return isPercentEncoded(username + password);
    }),
    `${descriptionOf(of).description}, its user and password percent-encoded`,
  );
}

export const mailUrl = urlWithPassword("smtp:", "smtps:");
export const proxyUrl = urlWithPassword("http:", "https:");

function isPercentEncoded(value: string): boolean {
  return canRead(() => decodeURIComponent(value));
}

function canRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}

const addressRange = kind(
  z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]).refine((range) => {
    const address = ipaddr.parse(range.replace(/\/.*/, ""));
    // Lists of addresses refuse it: its IPv4 form is equivalent.
    return !(address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress());
  }),
  "an IP address or a CIDR range",
);
export const addressRanges = listOf(addressRange, "IP addresses or CIDR ranges");

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** A name or an IPv4 address, or an IPv6 address in brackets, and a port. */
const hostAndPortPattern = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/;

export const hostAndPort = kind(
  z
    .string()
    .regex(hostAndPortPattern)
    .transform((value): HostAndPort => {
      const [, bracketed, name = "", digits] = hostAndPortPattern.exec(value) ?? [];
      return { host: bracketed ?? name, port: Number(digits) };
    })
    .refine(({ port }) => port >= 1 && port <= 65_535),
  "a host and its port, such as host.example:5000",
);

const header = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([\x20-\x7e]*)$/;

/** One header as the standard variable has it: its value is percent-encoded. */
export const headerValue = kind(
  z
    .string()
    .regex(header)
    .refine((pair) => isPercentEncoded(pair))
    .transform((pair): readonly [name: string, value: string] => {
      const [, name = "", value = ""] = header.exec(pair) ?? [];
      return [name, decodeURIComponent(value.trim())];
    })
    .refine(([, value]) => /^[\x20-\x7e]*$/.test(value)),
  "name=value",
);

const role = oneOf(["viewer", "operator", "admin"]);

/** Its role is after the last "=": a value may hold others, as the distinguished name of a group does. */
export const roleOfValue = kind(
  z.string().refine((pair) => {
    const at = pair.lastIndexOf("=");
    return at > 0 && role.safeParse(pair.slice(at + 1)).success;
  }),
  `pairs value=role, each role ${descriptionOf(role).description}`,
);

/** @param lengths in bytes */
export function keyInHex(lengths: readonly number[]): Kind<Buffer> {
  return kind(
    z
      .hex()
      .transform((value) => Buffer.from(value, "hex"))
      .refine(({ length }) => lengths.includes(length)),
    `the hexadecimal of ${lengths.slice(0, -1).join(", ")} or ${lengths.at(-1)} bytes`,
  );
}

const key32 = z
  .base64()
  .refine((value) => Buffer.from(value, "base64").toString("base64") === value)
  .transform((value) => Buffer.from(value, "base64"))
  .refine(({ length }) => length === 32);

/** Plain, or as wrapped by a key service. */
export const masterKeyText: Kind<Buffer | string> = kind(
  z.union([key32, z.string().regex(/^(vault:v\d+|aws:kms):[A-Za-z0-9+/=]+$/)]),
  "the base64 of 32 bytes, or what a key service wrapped (vault:v1:… or aws:kms:…)",
);

/** Of texts of 32 random hexadecimal digits, one in 400,000 has less. */
const tokenBitsMin = 90;

export const token = kind(
  z
    .string()
    .regex(/^[A-Za-z0-9\-._~+/=]{32,}$/)
    .refine((value) => bitsOf(value) >= tokenBitsMin),
  "a string of at least 32 letters, digits, or - . _ ~ + / = that cannot be guessed, as `openssl rand -hex 32` " +
    "prints one",
);

/** Estimates the entropy of a text by the frequency of its characters; of a repetitive one, only the repeated part. */
function bitsOf(value: string): number {
  const once = value.slice(0, periodOf(value));
  const counts = new Map<string, number>();
  for (const character of once) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((bits, count) => bits + count * Math.log2(once.length / count), 0);
}

function periodOf(value: string): number {
  for (let period = 1; period < value.length; period += 1) {
    if (value.startsWith(value.slice(period))) return period;
  }
  return value.length;
}

export const webhookSecret = kind(
  z.string().refine((value) => canRead(() => webhookKey(value))),
  "whsec_ and the base64 of 32 bytes",
);

/** One setting of the service, read from one environment variable. */
export interface Setting<Value, Initial extends Value | null = Value> {
  readonly name: string;
  readonly kind: Kind<Value>;
  /** The value if the variable is not set, or empty; null where there is none. */
  readonly default: Initial;
  readonly meaning: string;
  /** Its value is never shown, neither in an error nor in a log. It may be in a file, which `<name>_FILE` names. */
  readonly isSecret: boolean;
}

function settings(isSecret: boolean) {
  return <Value, Initial extends Value | null = null>(name: string, kind: Kind<Value>, initial = null as Initial) => ({
    /** Says in the reference what it is for. */
    means: (meaning: string): Setting<Value, Initial> => ({ name, kind, default: initial, meaning, isSecret }),
  });
}

export const setting = settings(false);
export const secret = settings(true);

/** Settings under one heading of the reference. */
export function section<Settings extends Readonly<Record<string, object>>>(title: string, list: Settings) {
  const entries = Object.entries(list).map(([key, one]) => [key, { ...one, section: title }] as const);
  // The keys are those of the list.
  return Object.fromEntries(entries) as { readonly [Key in keyof Settings]: Settings[Key] & { section: string } };
}
