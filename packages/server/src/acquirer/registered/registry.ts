import { badFields, ServiceError } from "../../errors.ts";
import type { PartnerId } from "../../ids.ts";
import {
  type AcquirerInput,
  linkOptions,
  merged,
  mergedSecrets,
  noRegistration,
  noSecrets,
  type Registration,
  registrationProblems,
  type Secrets,
} from "./registration.ts";

export interface StoredAcquirer extends Registration {
  readonly name: string;
  readonly sealed: Buffer;
  /** Differs after each change. */
  readonly version: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type AcquirerToStore = Registration & Pick<StoredAcquirer, "sealed">;

/** Registered acquirers. Every change is durable, and announced to all instances, when it resolves. */
export interface AcquirerStore {
  /** The versions by name. */
  versions(): Promise<ReadonlyMap<string, string>>;
  find(name: string): Promise<StoredAcquirer | undefined>;
  /** In the order of their names. */
  list(): Promise<readonly StoredAcquirer[]>;
  /** Registers or changes one under its row's lock: `next` gets the current state. */
  put(
    name: string,
    next: (standing: StoredAcquirer | undefined, registered: number) => AcquirerToStore,
  ): Promise<StoredAcquirer>;
  /** The first `rowsMax` terminals that name it, by partner and tid. */
  terminals(name: string, rowsMax: number): Promise<readonly AcquirerTerminal[]>;
  /** In use: a terminal names it, or a Reversal goes to it. */
  remove(name: string): Promise<"removed" | "unknown" | "in_use">;
}

/** A terminal whose commands go to an acquirer. */
export interface AcquirerTerminal {
  readonly partnerId: PartnerId;
  readonly tid: string;
  readonly mid: string;
  readonly merchantName: string;
}

/** The master key: what is sealed under a name opens under no other. */
export interface Sealer {
  sealNamed(plain: Buffer, name: string): Buffer;
  openNamed(sealed: Buffer, name: string): Buffer;
}

/** The visible part: of secrets, only whether they are set. */
export interface AcquirerRecord {
  readonly name: string;
  readonly profile: unknown;
  readonly hosts: readonly string[];
  readonly tls: "on" | "off";
  readonly ca: string;
  readonly certificate: string;
  readonly hasKey: boolean;
  readonly hasMacKey: boolean;
  readonly hasKeyEncryptionKey: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
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
    const stored = await this.#store.put(name, (standing, registered) => {
      const registration = merged(standing ?? noRegistration, input);
      const secrets = mergedSecrets(standing === undefined ? noSecrets : this.#secretsOf(standing), input);
      const [first, ...rest] = registrationProblems(name, registration, secrets, standing);
      if (first !== undefined) throw badFields([first, ...rest]);
      if (standing === undefined && registered >= acquirersMax) {
        const message = `There are ${acquirersMax} acquirers already.`;
        throw badFields([{ field: "name", code: "invalid_value", message }]);
      }
      return {
        ...registration,
        sealed: this.#sealer.sealNamed(Buffer.from(JSON.stringify(secrets)), sealedName(name)),
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
    const standing = await this.find(name);
    const outcome = await this.#store.remove(name);
    if (outcome === "in_use") throw new ServiceError("acquirer_in_use");
    if (outcome === "unknown" || standing === undefined) {
      throw new ServiceError("not_found", "There is no such acquirer.");
    }
    return standing;
  }

  /** The options for opening its link. */
  linkOptions(stored: StoredAcquirer): ReturnType<typeof linkOptions> {
    return linkOptions(stored, this.#secretsOf(stored));
  }

  #secretsOf({ name, sealed }: StoredAcquirer): Secrets {
    const opened = this.#sealer.openNamed(sealed, sealedName(name)).toString();
    return { ...noSecrets, ...(JSON.parse(opened) as Partial<Secrets>) };
  }

  #record(stored: StoredAcquirer): AcquirerRecord {
    const { name, profile, hosts, tls, ca, certificate, createdAt, updatedAt } = stored;
    const { key, macKey, keyEncryptionKey } = this.#secretsOf(stored);
    return {
      name,
      profile: JSON.parse(profile),
      hosts,
      tls: tls ? "on" : "off",
      ca,
      certificate,
      hasKey: key !== "",
      hasMacKey: macKey !== "",
      hasKeyEncryptionKey: keyEncryptionKey !== "",
      createdAt: createdAt.toISOString(),
      updatedAt: updatedAt.toISOString(),
    };
  }
}
