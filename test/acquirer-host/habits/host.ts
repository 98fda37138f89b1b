import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { SeededRandom } from "../../../faults/random.ts";
import { Books, keyOf } from "./books.ts";
import { droppingHabits, moneyHabits, reversalHabits, settlementHabits, uploadHabits, type Visit } from "./habits.ts";
import { Frames, type Message, pack, unpack } from "./standard.ts";

/** The messages out of a hundred that meet a habit. */
const habitsOfHundred = 25;
const signOnsRefusedOfHundred = 5;
const restartMs = 300;
/** A line that drops all the time is let be for half a minute, and nothing is sold. */
const lineLastsMs = 3_000;
/** An answer waits for a connection for so long. */
const undeliveredMax = 500;

/** An acquirer's host that behaves as real ones do, as a seed decides. Its books are the truth about the money. */
export class HabitualHost {
  readonly books = new Books();
  /** The habits that each message met, by its key. */
  readonly metBy = new Map<string, string[]>();
  /** The commands that came, repeats not counted, by their keys. */
  readonly reached = new Set<string>();
  /** False: it answers every message at once, as it should. */
  hasHabits = true;
  readonly #random: SeededRandom;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #log: WriteStream | undefined;
  #undelivered: Buffer[] = [];
  #isRestarting = false;
  #droppedAtMs = 0;
  #count = 0;

  /** @param logFile every message, with its time */
  constructor(random: SeededRandom, logFile?: string) {
    this.#random = random;
    this.#log = logFile === undefined ? undefined : createWriteStream(logFile);
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(): Promise<number> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  /** Answers and bookings that are still to come from it. */
  get owed(): number {
    return this.#timers.size + this.#undelivered.length;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of this.#sockets) socket.destroy();
    this.#log?.end();
    await once(this.#server.close(), "close");
  }

  #serve(socket: Socket): void {
    if (this.#isRestarting) return void socket.destroy();
    socket.setNoDelay(true);
    const frames = new Frames();
    socket.on("error", () => undefined);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (bytes: Buffer) => {
      for (const frame of frames.push(bytes)) {
        this.#note("in", frame);
        this.#receive(unpack(frame), socket);
      }
    });
  }

  #receive(message: Message, socket: Socket): void {
    const { mti } = message;
    if (Number(mti[2]) % 2 === 1) return;
    if (mti === "0800") {
      this.#network(message, socket);
      return;
    }
    if (mti < "0300") this.reached.add(keyOf(message));
    const visit = this.#visit(message, socket);
    const [kind, habits] = habitsOf(mti);
    const names = Object.keys(habits).filter((name) => !droppingHabits.has(name) || this.#mayDrop);
    if (this.hasHabits && names.length > 0 && this.#random.within(1, 100) <= habitsOfHundred) {
      const name = this.#random.pick(names);
      const own = this.metBy.get(keyOf(message)) ?? [];
      this.metBy.set(keyOf(message), [...own, `${kind}${name}`]);
      habits[name]?.(visit);
      return;
    }
    visit.send(visit.answer(this.#plainly(message)));
  }

  get #mayDrop(): boolean {
    return performance.now() - this.#droppedAtMs >= lineLastsMs;
  }

  #plainly(message: Message): string {
    if (message.mti.startsWith("04")) return this.books.reverse(message);
    if (message.mti.startsWith("05")) return this.books.settle(message);
    return message.mti.startsWith("03") ? this.books.upload(message) : this.books.book(message);
  }

  #network(message: Message, socket: Socket): void {
    const isSignOn = message.fields.get(70) === "001";
    const isRefused = this.hasHabits && isSignOn && this.#random.within(1, 100) <= signOnsRefusedOfHundred;
    if (isRefused && this.#random.next() < 0.5) return;
    socket.write(pack(answerTo(message, isRefused ? "96" : "00")));
    if (!isSignOn || isRefused) return;
    this.#sockets.add(socket);
    for (const bytes of this.#undelivered.splice(0)) socket.write(bytes);
  }

  #visit(message: Message, socket: Socket): Visit {
    const later = (afterMs: number, act: () => void) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        act();
      }, afterMs);
      this.#timers.add(timer);
    };
    this.#count += 1;
    const [refId, approveCode] = [12, 6].map((digits) => this.#count.toString().padStart(digits, "0"));
    return {
      message,
      books: this.books,
      random: this.#random,
      later,
      answer: (code, change) => {
        const answer = answerTo(message, code);
        answer.fields.set(37, refId ?? "").set(38, `A${approveCode?.slice(-5)}`);
        change?.(answer.fields);
        return answer;
      },
      send: (answer, afterMs = 0) => {
        const bytes = Buffer.isBuffer(answer) ? answer : pack(answer);
        if (afterMs === 0) this.#write(bytes, socket);
        else if (afterMs > 0) later(afterMs, () => this.#write(bytes, socket));
        else for (const byte of bytes) this.#write(Buffer.of(byte), socket, true);
      },
      drop: () => {
        this.#droppedAtMs = performance.now();
        socket.destroy();
      },
      restart: () => {
        this.#droppedAtMs = performance.now();
        this.#isRestarting = true;
        for (const one of this.#sockets) one.destroy();
        later(restartMs, () => {
          this.#isRestarting = false;
        });
      },
    };
  }

  /** @param onlyThere a part of a message belongs to its connection */
  #write(bytes: Buffer, socket: Socket, onlyThere = false): void {
    this.#note(this.#sockets.has(socket) ? "out" : "out, elsewhere", bytes.subarray(2));
    if (this.#sockets.has(socket)) return void socket.write(bytes);
    if (onlyThere) return;
    const other = [...this.#sockets].at(-1);
    if (other !== undefined) other.write(bytes);
    else if (this.#undelivered.length < undeliveredMax) this.#undelivered.push(bytes);
  }

  #note(way: string, frame: Buffer): void {
    this.#log?.write(`${new Date().toISOString()} ${way} ${frame.toString("latin1")}\n`);
  }
}

function habitsOf(mti: string): readonly [kind: string, habits: typeof moneyHabits] {
  if (mti.startsWith("03")) return ["upload ", uploadHabits];
  if (mti.startsWith("04")) return ["Reversal ", reversalHabits];
  return mti.startsWith("05") ? ["Settlement ", settlementHabits] : ["", moneyHabits];
}

/** As the standard has it: what was sent, with the type of the answer and its code, and without the card. */
function answerTo({ mti, fields }: Message, code: string): Message {
  const answered = new Map([...fields].filter(([field]) => field !== 48 && field !== 22));
  return { mti: `${mti.slice(0, 2)}${Number(mti[2]) + 1}0`, fields: answered.set(39, code) };
}
