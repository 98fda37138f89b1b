import { answerWith } from "./mapping.ts";
import { type IsoMessage, isNetworkMessage } from "./message/codec.ts";
import type { Profile } from "./profile/schema.ts";

/**
 * The meaning of a request that the host sends by itself. `other`: the profile lists it, and it changes nothing.
 * `unknown`: the profile says nothing of it.
 */
export type HostRequestMeaning = "signOn" | "signOff" | "echo" | "cutover" | "key" | "advice" | "other" | "unknown";

export interface HostRequest {
  readonly means: HostRequestMeaning;
  /** Undefined: the profile says that it is not answered. */
  readonly answer: IsoMessage | undefined;
}

interface StandardRequests {
  readonly field: number;
  readonly values: NonNullable<Profile["network"]["hostRequests"]["values"]>;
}

/** The requests that each version of the standard has, by the field that says what is asked. */
const ofStandard: Readonly<Record<Profile["standard"], StandardRequests>> = {
  "1987": {
    field: 70,
    values: {
      "001": { means: "signOn", answer: "00" },
      "002": { means: "signOff", answer: "00" },
      "101": { means: "key", answer: "40" },
      "161": { means: "key", answer: "40" },
      "201": { means: "cutover", answer: "00" },
      "301": { means: "echo", answer: "00" },
    },
  },
  "1993": {
    field: 24,
    values: {
      "801": { means: "signOn", answer: "00" },
      "802": { means: "signOff", answer: "00" },
      "811": { means: "key", answer: "40" },
      "821": { means: "cutover", answer: "00" },
      "831": { means: "echo", answer: "00" },
    },
  },
};

/** What a profile says of the host's own requests; where it says nothing, its standard does. */
export function hostRequestsOf({ standard, network }: Pick<Profile, "standard" | "network">) {
  const { field = ofStandard[standard].field, values = ofStandard[standard].values, ...others } = network.hostRequests;
  return { field, values, ...others };
}

/** Reads a host's own requests, and answers them, as its profile says. */
export class HostRequests {
  readonly #profile: ReturnType<typeof hostRequestsOf>;

  constructor(profile: Profile) {
    this.#profile = hostRequestsOf(profile);
  }

  /** Undefined if it is not supported, such as a Sale. */
  read(request: IsoMessage): HostRequest | undefined {
    const { field, values, others, advices } = this.#profile;
    const answerOf = (code: string | null) => (code === null ? undefined : answerWith(request, code));
    if (isNetworkMessage(request.mti)) {
      const asked = request.fields.get(field)?.trim() ?? "";
      const { means, answer } = values[asked] ?? { means: "unknown", answer: others };
      return { means, answer: answerOf(answer) };
    }
    // Another version of the standard has another first digit, and a repeat another last one.
    const advice = advices[`0${request.mti.slice(1, 3)}0`];
    if (advice === undefined) return undefined;
    return { means: "advice", answer: answerOf(advice) };
  }
}

/** The sign-offs of an acquirer's hosts, for all instances: a sign-on belongs to a host, and not to a connection. */
export interface SignOffStore {
  /** The hosts that signed off, and have not signed on since. */
  read(): Promise<ReadonlySet<string>>;
  /** Durable, and announced to all instances, when it resolves. */
  note(host: string, isSignedOff: boolean): Promise<void>;
  /** Other instances are signed on: a sign-off by this one would be theirs too. */
  isUsedByOthers(): Promise<boolean>;
}

/** A process alone, such as a certification. */
const unshared: SignOffStore = {
  read: async () => new Set(),
  note: async () => undefined,
  isUsedByOthers: async () => false,
};

/** The hosts that have signed off: they take no message until they, or we, sign on. */
export class SignOffs {
  readonly #store: SignOffStore;
  readonly #isShared: boolean;
  readonly #listeners: (() => void)[] = [];
  #hosts: ReadonlySet<string> = new Set();
  /** Changes by this process: what is read must not be older. */
  #changes = 0;

  constructor(store: SignOffStore | undefined) {
    this.#store = store ?? unshared;
    this.#isShared = store !== undefined;
  }

  /** From now on called whenever other hosts have signed off. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  has(host: string): boolean {
    return this.#hosts.has(host);
  }

  /** Other instances may have noted a change. */
  async reread(): Promise<void> {
    if (!this.#isShared) return;
    const changes = this.#changes;
    const hosts = await this.#store.read();
    if (changes !== this.#changes) return;
    const isSame = hosts.size === this.#hosts.size && [...hosts].every((host) => this.#hosts.has(host));
    this.#hosts = hosts;
    if (!isSame) this.changed();
  }

  /** Counts at once, also if it cannot be stored. The caller says when the listeners are called. */
  async note(host: string, isSignedOff: boolean): Promise<void> {
    this.#changes += 1;
    this.#hosts = new Set([...[...this.#hosts].filter((one) => one !== host), ...(isSignedOff ? [host] : [])]);
    await this.#store.note(host, isSignedOff);
  }

  isUsedByOthers(): Promise<boolean> {
    return this.#store.isUsedByOthers();
  }
}
