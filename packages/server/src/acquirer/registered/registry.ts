import { createPrivateKey, X509Certificate } from "node:crypto";
import { hostAndPort } from "../../config/kinds.ts";
import { badFields, type FieldProblem, ServiceError } from "../../errors.ts";
import type { PartnerId } from "../../ids.ts";
import { KeyOpener } from "../iso8583/key-exchange.ts";
import type { Host, TlsOptions } from "../iso8583/link/connection.ts";
import { Mac } from "../iso8583/message/mac.ts";
import { idleProblems, matchProblems, ProfileError, readProfile } from "../iso8583/profile/read.ts";
import type { Profile } from "../iso8583/profile/schema.ts";

export interface StoredAcquirer extends Registration {
  readonly name: string;
  readonly sealed: Buffer;
  /** Differs after each change. */
  readonly version: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface AcquirerToStore extends Registration, Pick<StoredAcquirer, "sealed"> {
  /** Those that came over the link belong to the one before. */
  readonly isOtherMacKey: boolean;
}

/** Registered acquirers. Every change is durable, and announced to all instances, when it resolves. */
export interface AcquirerStore {
  versions(): Promise<ReadonlyMap<string, string>>;
  find(name: string): Promise<StoredAcquirer | undefined>;
  /** In the order of their names. */
  list(): Promise<readonly StoredAcquirer[]>;
  /** Registers or changes one under its row's lock: `next` gets the current state. */
  put(
    name: string,
    next: (current: StoredAcquirer | undefined, registered: number) => AcquirerToStore,
  ): Promise<StoredAcquirer>;
  /** The first `rowsMax` terminals that name it, by partner and tid. */
  terminals(name: string, rowsMax: number): Promise<readonly AcquirerTerminal[]>;
  /** In use: a terminal names it, or a Reversal goes to it. */
  remove(name: string): Promise<"removed" | "unknown" | "in_use">;
}

export interface AcquirerTerminal {
  readonly partnerId: PartnerId;
  readonly tid: string;
  readonly mid: string;
  readonly merchantName: string;
}

/** The master key: what is sealed under a name opens under no other. */
interface Sealer {
  sealNamed(plain: Buffer, name: string): Buffer;
  openNamed(sealed: Buffer, name: string): Buffer;
}

/** The visible part: of secrets, only whether they are set. */
export interface AcquirerRecord extends Omit<StoredAcquirer, "profile" | "tls" | "sealed" | "version"> {
  readonly profile: unknown;
  readonly tls: "on" | "off";
  readonly hasKey: boolean;
  readonly hasMacKey: boolean;
  readonly hasKeyEncryptionKey: boolean;
}

const acquirersMax = 100;

/** The name under which an acquirer's secrets are sealed, and stored. */
function sealedName(name: string): string {
  return `acquirer ${name}`;
}

/** Registers, changes, shows and removes acquirers. Every refusal is a ServiceError, and none repeats a secret. */
export class AcquirerRegistry {
  readonly #store: AcquirerStore;
  readonly #sealer: Sealer;

  constructor(store: AcquirerStore, sealer: Sealer) {
    this.#store = store;
    this.#sealer = sealer;
  }

  /** Registers one, or changes what `input` names. */
  async put(name: string, input: AcquirerInput): Promise<AcquirerRecord> {
    const stored = await this.#store.put(name, (current, registered) => {
      const registration = merged(current ?? noRegistration, input);
      const before = current === undefined ? noSecrets : this.#secretsOf(current);
      const secrets = mergedSecrets(before, input);
      const [first, ...rest] = registrationProblems(name, registration, secrets, current);
      if (first !== undefined) throw badFields([first, ...rest]);
      if (current === undefined && registered >= acquirersMax) {
        const message = `There are ${acquirersMax} acquirers already.`;
        throw badFields([{ field: "name", code: "invalid_value", message }]);
      }
      return {
        ...registration,
        sealed: this.#sealer.sealNamed(Buffer.from(JSON.stringify(secrets)), sealedName(name)),
        isOtherMacKey: secrets.macKey.toLowerCase() !== before.macKey.toLowerCase(),
      };
    });
    return this.#record(stored);
  }

  async find(name: string): Promise<AcquirerRecord | undefined> {
    const stored = await this.#store.find(name);
    return stored && this.#record(stored);
  }

  async list(): Promise<readonly AcquirerRecord[]> {
    return (await this.#store.list()).map((stored) => this.#record(stored));
  }

  terminals(name: string, rowsMax: number): Promise<readonly AcquirerTerminal[]> {
    return this.#store.terminals(name, rowsMax);
  }

  /**
   * @returns the acquirer as it was
   * @throws ServiceError `not_found`, or `acquirer_in_use`
   */
  async remove(name: string): Promise<AcquirerRecord> {
    const current = await this.find(name);
    const outcome = await this.#store.remove(name);
    if (outcome === "in_use") throw new ServiceError("acquirer_in_use");
    if (outcome === "unknown" || current === undefined) {
      throw new ServiceError("not_found", "There is no such acquirer.");
    }
    return current;
  }

  linkOptions(stored: StoredAcquirer): ReturnType<typeof linkOptions> {
    return linkOptions(stored, this.#secretsOf(stored));
  }

  #secretsOf({ name, sealed }: StoredAcquirer): Secrets {
    const opened = this.#sealer.openNamed(sealed, sealedName(name)).toString();
    return { ...noSecrets, ...(JSON.parse(opened) as Partial<Secrets>) };
  }

  #record(stored: StoredAcquirer): AcquirerRecord {
    const { profile, tls, sealed: _, version: __, ...shown } = stored;
    const { key, macKey, keyEncryptionKey } = this.#secretsOf(stored);
    return {
      ...shown,
      profile: JSON.parse(profile),
      tls: tls ? "on" : "off",
      hasKey: key !== "",
      hasMacKey: macKey !== "",
      hasKeyEncryptionKey: keyEncryptionKey !== "",
    };
  }
}

/** The input of an acquirer's registration, except its name. In a change, missing fields are unchanged. */
interface AcquirerInput {
  /** The JSON of the host's profile. */
  readonly profile?: Readonly<Record<string, unknown>> | undefined;
  /** Each as name:port, in the order in which they are tried. */
  readonly hosts?: readonly string[] | undefined;
  readonly tls?: "on" | "off" | undefined;
  /** PEM; an empty text removes it, as of the others. */
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  /** The certificate's, PEM. */
  readonly key?: string | undefined;
  /** In hexadecimal. */
  readonly macKey?: string | undefined;
  /** In hexadecimal: under it new keys of the MACs come over the link. */
  readonly keyEncryptionKey?: string | undefined;
}

/** The fields stored in the clear. */
export interface Registration {
  readonly profile: string;
  readonly hosts: readonly string[];
  readonly tls: boolean;
  readonly ca: string;
  readonly certificate: string;
}

/** The fields stored sealed, and never shown; empty: none. */
export interface Secrets {
  readonly key: string;
  readonly macKey: string;
  readonly keyEncryptionKey: string;
}

export const noRegistration: Registration = { profile: "", hosts: [], tls: true, ca: "", certificate: "" };
export const noSecrets: Secrets = { key: "", macKey: "", keyEncryptionKey: "" };

const namePattern = /^[a-z0-9][a-z0-9-]{0,31}$/;
export const acquirerNameRule = "1 to 32 characters, a-z, 0-9 and -";
const hostsMax = 10;
const hexadecimal = /^(?:[0-9A-Fa-f]{2})*$/;

/** The label of the acquirer of the settings in metrics and events: no other has that name. */
export const settingsName = "default";

export function isAcquirerName(text: string): boolean {
  return namePattern.test(text);
}

export function merged(current: Registration, { profile, tls, ...others }: AcquirerInput): Registration {
  const changes = { profile: profile && JSON.stringify(profile), tls: tls && tls === "on", ...others };
  return changed(current, changes);
}

export function mergedSecrets(current: Secrets, input: AcquirerInput): Secrets {
  return changed(current, input);
}

/** What is not among the changes, or undefined there, stays. */
function changed<Fields extends object>(current: Fields, changes: object): Fields {
  const given = Object.entries(changes).filter(([name, value]) => name in current && value !== undefined);
  return { ...current, ...Object.fromEntries(given) };
}

/**
 * Everything that is wrong with a registration as it would be: no problem repeats a secret.
 *
 * @param current a profile that was registered by a version which let it confuse two requests, or have idle settings, may stay
 */
export function registrationProblems(
  name: string,
  registration: Registration,
  secrets: Secrets,
  current: Registration = noRegistration,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const wrong = (field: string, message: string) => problems.push({ field, code: "invalid_value", message });
  if (!isAcquirerName(name) || name === settingsName) {
    wrong("name", `name must have ${acquirerNameRule}, and not be ${settingsName}.`);
  }
  const { hosts, tls, ca, certificate } = registration;
  if (hosts.length === 0 || hosts.length > hostsMax) wrong("hosts", `hosts must be 1 to ${hostsMax}, as name:port.`);
  if (hosts.some((host) => !hostAndPort.safeParse(host).success)) wrong("hosts", "hosts must be given as name:port.");
  const profile = problemsOf(() => readProfile(registration.profile));
  for (const problem of profile.problems) wrong("profile", problem);
  if (profile.value !== undefined && registration.profile !== current.profile) {
    const refused = [...matchProblems(profile.value), ...idleProblems(profile.value)];
    for (const problem of refused) wrong("profile", problem);
  }
  problems.push(...keyProblems(profile.value?.mac ?? null, secrets));
  // They are shown and audited, and a provider may deliver both in one file.
  for (const [field, pem] of Object.entries({ ca, certificate })) {
    if (pem.includes("PRIVATE KEY-----")) wrong(field, `${field} must not hold a private key, which belongs in key.`);
  }
  if (!tls) return problems;
  const authorities = problemsOf(() => ca === "" || new X509Certificate(ca));
  if (authorities.problems.length > 0) wrong("ca", "ca must be certificates in PEM.");
  if ((certificate === "") !== (secrets.key === "")) wrong("key", "certificate and key are required together.");
  if (certificate === "" || secrets.key === "") return problems;
  const own = problemsOf(() => new X509Certificate(certificate));
  if (own.value === undefined) wrong("certificate", "certificate must be one in PEM.");
  const key = problemsOf(() => createPrivateKey(secrets.key));
  if (key.value === undefined) wrong("key", "key must be a private key in PEM, not encrypted.");
  if (own.value && key.value && !own.value.checkPrivateKey(key.value)) wrong("key", "key is not the certificate's.");
  return problems;
}

function keyProblems(mac: Profile["mac"], { macKey, keyEncryptionKey }: Secrets): FieldProblem[] {
  const wrong = (field: string, rule: string): FieldProblem => ({
    field,
    code: "invalid_value",
    message: `${field}: ${rule}.`,
  });
  const problems = Object.entries({ macKey, keyEncryptionKey }).flatMap(([field, key]) =>
    hexadecimal.test(key) ? [] : [wrong(field, "it must be in hexadecimal")],
  );
  if (problems.length > 0 || mac === null) return problems;
  const { algorithm, keyExchange } = mac;
  const key = problemsOf(() => new Mac(algorithm, Buffer.from(macKey, "hex")));
  problems.push(...key.problems.map((rule) => wrong("macKey", rule)));
  if (keyExchange === null) return problems;
  const kek = Buffer.from(keyEncryptionKey, "hex");
  const opener = problemsOf(() => new KeyOpener(keyExchange.encryption, algorithm, kek));
  return [...problems, ...opener.problems.map((rule) => wrong("keyEncryptionKey", rule))];
}

/** The options for opening the link. @throws ProfileError if a later version refuses the registered profile */
export function linkOptions(
  { profile, hosts, tls, ca, certificate }: Registration,
  { key, macKey, keyEncryptionKey }: Secrets,
) {
  const tlsOptions: TlsOptions = {
    ...(ca !== "" && { ca }),
    ...(certificate !== "" && { cert: certificate, key }),
  };
  return {
    profile: readProfile(profile),
    hosts: hosts.flatMap((host) => hostAndPort.safeParse(host).data ?? []),
    tls: tls ? tlsOptions : undefined,
    macKey: macKey === "" ? undefined : Buffer.from(macKey, "hex"),
    keyEncryptionKey: keyEncryptionKey === "" ? undefined : Buffer.from(keyEncryptionKey, "hex"),
  } satisfies { profile: Profile; hosts: readonly Host[]; [more: string]: unknown };
}

function problemsOf<Value>(make: () => Value): { readonly value?: Value; readonly problems: readonly string[] } {
  try {
    return { value: make(), problems: [] };
  } catch (error) {
    if (error instanceof ProfileError) return { problems: error.problems };
    return { problems: [error instanceof Error ? error.message : "cannot be read"] };
  }
}
