import type { Codec, IsoMessage } from "../message/codec.ts";
import { IsoFormatError } from "../message/error.ts";
import type { Mac } from "../message/mac.ts";
import { type Framing, frame } from "./framing.ts";

export interface WireOptions {
  readonly codec: Codec;
  readonly framing: Framing;
  /** Undefined: messages carry no MAC. */
  readonly authentication: Authentication | undefined;
}

export interface Authentication {
  readonly mac: Pick<Mac, "of" | "fits">;
  /** The encoding of the MAC itself. */
  readonly encoding: "binary" | "hex";
  /** Sign-on and echo carry one too. */
  readonly networkMessages: boolean;
}

const primaryMacField = 64;
const secondaryMacField = 128;
const noMac = "0".repeat(16);

/** Messages as a connection carries them: packed, with their MAC, behind their length. */
export class Wire {
  readonly #options: WireOptions;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  /** @throws IsoFormatError when a field does not fit */
  write(message: IsoMessage): Buffer {
    const { codec, framing, authentication } = this.#options;
    if (!isAuthenticated(message, authentication)) return frame(codec.pack(message), framing);
    const packed = codec.pack({ ...message, fields: new Map([...message.fields, [macField(message), noMac]]) });
    const covered = packed.subarray(0, -macBytes(authentication));
    const mac = authentication.mac.of(covered);
    packed.write(mac, covered.length, authentication.encoding === "binary" ? "hex" : "latin1");
    return frame(packed, framing);
  }

  /** @throws IsoFormatError if it cannot be parsed, or its MAC is missing or wrong: its sender did not have the key */
  read(bytes: Buffer): IsoMessage {
    const { codec, authentication } = this.#options;
    const message = codec.unpack(bytes);
    if (!isAuthenticated(message, authentication)) return message;
    const mac = message.fields.get(macField(message));
    if (mac === undefined) throw new IsoFormatError("the message has no MAC");
    if (!authentication.mac.fits(bytes.subarray(0, -macBytes(authentication)), mac)) {
      throw new IsoFormatError("the message's MAC does not match");
    }
    return message;
  }
}

/** It is the last field of its message. */
function macField({ fields }: IsoMessage): number {
  for (const number of fields.keys()) if (number > primaryMacField) return secondaryMacField;
  return primaryMacField;
}

function macBytes({ encoding }: Authentication): number {
  return encoding === "binary" ? 8 : 16;
}

function isAuthenticated(message: IsoMessage, by: Authentication | undefined): by is Authentication {
  return by !== undefined && (by.networkMessages || !isNetworkMessage(message));
}

/** MTI x8xx: sign-on, echo, sign-off. */
function isNetworkMessage({ mti }: IsoMessage): boolean {
  return mti[1] === "8";
}
