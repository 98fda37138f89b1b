import { answerWith } from "./mapping.ts";
import { type IsoMessage, isNetworkMessage } from "./message/codec.ts";
import type { Profile } from "./profile/schema.ts";

/** The meaning of a request that the host sends by itself. `other`: it changes nothing. */
export type HostRequestMeaning = "signOn" | "signOff" | "echo" | "cutover" | "key" | "advice" | "other";

export interface HostRequest {
  readonly means: HostRequestMeaning;
  /** Undefined: the profile says that it is not answered. */
  readonly answer: IsoMessage | undefined;
}

const approved = "00";

/** Reads a host's own requests, and answers them, as its profile says. */
export class HostRequests {
  readonly #profile: Profile["network"]["hostRequests"];

  constructor({ network: { hostRequests } }: Profile) {
    this.#profile = hostRequests;
  }

  /** Undefined if it is not supported, such as a Sale. */
  read(request: IsoMessage): HostRequest | undefined {
    const { field, values, advices } = this.#profile;
    const answerOf = (code: string | null) => (code === null ? undefined : answerWith(request, code));
    if (isNetworkMessage(request.mti)) {
      const { means, answer } = values[request.fields.get(field)?.trim() ?? ""] ?? { means: "other", answer: approved };
      return { means, answer: answerOf(answer) };
    }
    // Another version of the standard has another first digit, and a repeat another last one.
    const advice = advices[`0${request.mti.slice(1, 3)}0`];
    if (advice === undefined) return undefined;
    return { means: "advice", answer: answerOf(advice) };
  }
}
