import { describe, expect, test } from "vitest";
import { usualMac } from "../example-profile.fixture.ts";
import { asciiEncoding, bcdEncoding, ebcdicEncoding, standardLayout } from "../message/codec.fixture.ts";
import { Codec, type IsoMessage } from "../message/codec.ts";
import { Mac } from "../message/mac.ts";
import { framing } from "./fake-host.fixture.ts";
import { FrameReader } from "./framing.ts";
import { type Authentication, Wire } from "./wire.ts";

const mac = new Mac("aes-cmac", Buffer.alloc(16, 3));
const other = new Mac("aes-cmac", Buffer.alloc(16, 4));
const sale: IsoMessage = {
  mti: "0200",
  fields: new Map([
    [4, "000000150000"],
    [11, "000042"],
  ]),
};
const late: IsoMessage = {
  mti: "0400",
  fields: new Map([
    [11, "000042"],
    [90, "1".repeat(42)],
  ]),
};
const echo: IsoMessage = {
  mti: "0800",
  fields: new Map([
    [11, "000042"],
    [70, "301"],
  ]),
};

const wires = (
  [
    ["binary", bcdEncoding],
    ["hex", asciiEncoding],
    ["hex in EBCDIC", ebcdicEncoding],
  ] as const
).map(([encoding, fields]) => ({
  encoding,
  fields,
  open: (key: Mac | undefined, change: Partial<Authentication> = {}) =>
    new Wire({
      codec: new Codec(standardLayout(fields)),
      framing,
      authentication: key && { ...usualMac, networkMessages: false, mac: key, ...change },
    }),
}));

const network = { networkMessages: true };
const message = (frame: Buffer) => new FrameReader(framing).push(frame)[0] ?? Buffer.alloc(0);

describe.each(wires)("a wire whose MACs are written as $encoding", ({ encoding, fields, open }) => {
  test.each([
    ["field 64", sale, 64],
    ["field 128, where a field above 64 is there", late, 128],
  ] as const)("has the MAC in %s, over everything before it", (_, sent, field) => {
    const read = open(mac).read(message(open(mac).write(sent)));
    expect([...read.fields.keys()]).toEqual([...sent.fields.keys(), field]);
    expect(read.fields.get(field)).toMatch(/^[0-9A-F]{16}$/);
  });

  const in64 = (covers: Authentication["covers"]) => open(mac, { field: 64, covers });
  test.each(["before", "without", "zeros"] as const)(
    "may have it in field 64 beside a field above it: over the message %s",
    (covers) => {
      const sent = message(in64(covers).write(late));
      const read = in64(covers).read(sent);
      expect([...read.fields.keys()]).toEqual([11, 64, 90]);
      // The key covers field 90, or not.
      const changed = Buffer.from(sent);
      const last = changed.length - 1;
      changed[last] = (changed[last] ?? 0) ^ 1;
      if (covers === "before") expect(in64(covers).read(changed).fields.get(64)).toBe(read.fields.get(64));
      else expect(() => in64(covers).read(changed)).toThrow("the message's MAC does not match");
      expect(() => in64(covers).read(message(open(mac).write(late)))).toThrow("the message has no MAC");
    },
  );

  test("has a MAC over these very bytes", () => {
    const codec = new Codec(standardLayout(fields));
    const place = 8 * (encoding === "binary" ? 1 : 2);
    const packed = (value: string) => codec.pack({ ...late, fields: new Map([...late.fields, [64, value]]) });
    const empty = packed("0".repeat(16));
    const after = codec.packField(90, "1".repeat(42)).length;
    const covered = {
      before: empty.subarray(0, -after - place),
      without: Buffer.concat([empty.subarray(0, -after - place), empty.subarray(-after)]),
      zeros: empty,
    };
    for (const covers of ["before", "without", "zeros"] as const) {
      expect(message(in64(covers).write(late))).toEqual(packed(mac.of(covered[covers])));
    }
  });

  test("refuses a message of another key, one that was changed, and one without a MAC", () => {
    expect(() => open(mac).read(message(open(other).write(sale)))).toThrow("the message's MAC does not match");
    const changed = Buffer.from(message(open(mac).write(sale)));
    const at = changed.length - 20;
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => open(mac).read(changed)).toThrow();
    expect(() => open(mac).read(message(open(undefined).write(sale)))).toThrow("the message has no MAC");
  });

  test("asks for none in sign-on and echo, unless the profile says so", () => {
    expect(open(mac).read(message(open(mac).write(echo)))).toEqual(echo);
    expect(
      open(mac, network)
        .read(message(open(mac, network).write(echo)))
        .fields.has(128),
    ).toBe(true);
    expect(() => open(mac, network).read(message(open(mac).write(echo)))).toThrow("the message has no MAC");
  });
});
