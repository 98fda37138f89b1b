import { bcdEncoding, standardLayout } from "../packages/server/src/acquirer/iso8583/message/codec.fixture.ts";
import { Codec, type IsoMessage } from "../packages/server/src/acquirer/iso8583/message/codec.ts";
import { median } from "./statistics.ts";

const rounds = 9;
const messages = 20_000;

/** A Sale as hosts take it, with what a follow-up has besides: number=value. */
const fields = `3=000000 4=000000150000 7=1122061112 11=000042 12=131112 13=1122 22=051 24=003 25=00 37=632606000042
  38=A1B2C3 41=T0000001 42=M00000000000001 48=tok_approve 49=704 60=000001 62=000042 64=0123456789ABCDEF
  90=02000000411122061100${"0".repeat(22)}`;
const pairs = fields.split(/\s+/).map((field) => field.split("=") as [number: string, value: string]);
const message: IsoMessage = { mti: "0200", fields: new Map(pairs.map(([number, value]) => [Number(number), value])) };

/**
 * Microseconds of processor time to pack and unpack one message: the median of several rounds, after one that warms
 * up. Unlike elapsed time, it is the same beside other work.
 */
function packAndUnpackUs(): number {
  const codec = new Codec(standardLayout(bcdEncoding));
  const measured = Array.from({ length: rounds + 1 }, () => {
    const started = process.cpuUsage();
    for (let count = 0; count < messages; count += 1) codec.unpack(codec.pack(message));
    const { user, system } = process.cpuUsage(started);
    return (user + system) / messages;
  });
  return median(measured.slice(1));
}

// `node --conditions=paybell-source bench/iso8583.ts`: what the link to a host costs a message, apart from the network.
if (import.meta.main) {
  process.stdout.write(
    `ISO 8583, ${message.fields.size} fields, pack and unpack: ${packAndUnpackUs().toFixed(1)} µs of processor time\n`,
  );
}
