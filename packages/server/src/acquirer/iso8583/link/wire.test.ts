import { describe, expect, test } from "vitest";
import { asciiEncoding, bcdEncoding, standardLayout } from "../message/codec.fixture.ts";
import { Codec, type IsoMessage } from "../message/codec.ts";
import { Mac } from "../message/mac.ts";
import { framing } from "./fake-host.fixture.ts";
import { FrameReader } from "./framing.ts";
import { Wire } from "./wire.ts";

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
  ] as const
).map(([encoding, fields]) => ({
  encoding,
  open: (key: Mac | undefined, networkMessages = false) =>
    new Wire({
      codec: new Codec(standardLayout(fields)),
      framing,
      authentication: key && { mac: key, encoding, networkMessages },
    }),
}));

const message = (frame: Buffer) => new FrameReader(framing).push(frame)[0] ?? Buffer.alloc(0);

describe.each(wires)("a wire whose MACs are written as $encoding", ({ open }) => {
  test.each([
    ["field 64", sale, 64],
    ["field 128, where a field above 64 is there", late, 128],
  ] as const)("has the MAC in %s, over everything before it", (_, sent, field) => {
    const read = open(mac).read(message(open(mac).write(sent)));
    expect([...read.fields.keys()]).toEqual([...sent.fields.keys(), field]);
    expect(read.fields.get(field)).toMatch(/^[0-9A-F]{16}$/);
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
      open(mac, true)
        .read(message(open(mac, true).write(echo)))
        .fields.has(128),
    ).toBe(true);
    expect(() => open(mac, true).read(message(open(mac).write(echo)))).toThrow("the message has no MAC");
  });
});
