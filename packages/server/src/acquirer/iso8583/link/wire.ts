import { type Codec, type IsoMessage, isNetworkMessage } from "../message/codec.ts";
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
  /** The field of the MAC, or the last one of its message. */
  readonly field: 64 | 128 | "last";
  /** All before it, the message without it, or the message with zeros in its place. */
  readonly covers: "before" | "without" | "zeros";
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
    const field = macField(message, authentication);
    const packed = codec.pack({ ...message, fields: new Map([...message.fields, [field, noMac]]) });
    const place = codec.fieldIn(packed, field, isLast(field, message));
    const mac = authentication.mac.of(covered(packed, place, authentication));
    codec.packField(field, mac).copy(place);
    return frame(packed, framing);
  }

  /** @throws IsoFormatError if it cannot be parsed, or its MAC is missing or wrong: its sender did not have the key */
  read(bytes: Buffer): IsoMessage {
    const { codec, authentication } = this.#options;
    const message = codec.unpack(bytes);
    if (!isAuthenticated(message, authentication)) return message;
    const field = macField(message, authentication);
    const mac = message.fields.get(field);
    if (mac === undefined) throw new IsoFormatError("the message has no MAC");
    const packed = authentication.covers === "zeros" ? Buffer.from(bytes) : bytes;
    const place = codec.fieldIn(packed, field, isLast(field, message));
    if (packed !== bytes) codec.packField(field, noMac).copy(place);
    if (!authentication.mac.fits(covered(packed, place, authentication), mac)) {
      throw new IsoFormatError("the message's MAC does not match");
    }
    return message;
  }
}

function macField({ fields }: IsoMessage, { field }: Authentication): number {
  if (field !== "last") return field;
  for (const number of fields.keys()) if (number > primaryMacField) return secondaryMacField;
  return primaryMacField;
}

function isLast(field: number, { fields }: IsoMessage): boolean {
  for (const number of fields.keys()) if (number > field) return false;
  return true;
}

/** @param place the MAC's bytes in `packed`: zeros, if they are covered */
function covered(packed: Buffer, place: Buffer, { covers }: Authentication): Buffer {
  if (covers === "zeros") return packed;
  const from = place.byteOffset - packed.byteOffset;
  const before = packed.subarray(0, from);
  return covers === "before" ? before : Buffer.concat([before, packed.subarray(from + place.length)]);
}

function isAuthenticated(message: IsoMessage, by: Authentication | undefined): by is Authentication {
  return by !== undefined && (by.networkMessages || !isNetworkMessage(message.mti));
}
