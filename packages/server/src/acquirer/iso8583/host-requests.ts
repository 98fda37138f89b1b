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
