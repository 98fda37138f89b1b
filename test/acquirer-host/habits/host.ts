import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { SeededRandom } from "../../../faults/random.ts";
import { Books, keyOf, type Received } from "./books.ts";
import { droppingHabits, moneyHabits, reversalHabits, settlementHabits, uploadHabits, type Visit } from "./habits.ts";
import { OwnRequests, type Site } from "./own-requests.ts";
import { Frames, hasMac, type Message, pack, unpack } from "./standard.ts";

/** The messages out of a hundred that meet a habit. */
const habitsOfHundred = 25;
const signOnsRefusedOfHundred = 5;
/** A command makes the host send a request of its own. */
const ownRequestChance = 1 / 60;
/** A line that drops all the time is let be for half a minute, and nothing is sold. */
const lineLastsMs = 3_000;
/** An answer waits for a connection for so long. */
const undeliveredMax = 500;

/** A site of the host: the other one has the same books, a little later. */
class HostSite implements Site {
  readonly name: string;
  readonly server: Server;
  readonly sockets = new Set<Socket>();
  isSignedOff = false;
  isRestarting = false;

  constructor(name: string, onSocket: (site: HostSite, socket: Socket) => void) {
    this.name = name;
    this.server = createServer((socket) => onSocket(this, socket));
  }
}

/** The connection over which a message came. */
interface Place {
  readonly site: HostSite;
  readonly socket: Socket;
}

/** The keys of the MACs at the start of a run. */
export interface HostKeys {
  readonly macKey: Buffer;
  readonly keyEncryptionKey: Buffer;
}

/**
 * An acquirer's host with two sites that behaves as real ones do, as a seed decides. Its books are the truth about the
 * money.
 */
export class HabitualHost {
  readonly books = new Books();
  /** The habits that each message met, by its key. */
  readonly metBy = new Map<string, string[]>();
  /** The commands that came, repeats not counted, by their keys. */
  readonly reached = new Set<string>();
  /** Messages without a MAC under a key that the host has. */
  foreign = 0;
  /** False: it answers every message at once, as it should. */
  hasHabits = true;
  readonly own: OwnRequests;
  readonly #random: SeededRandom;
  readonly #sites: readonly HostSite[];
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #log: WriteStream | undefined;
  /** The keys under which messages may come. The host's own requests have the first. */
  #keys: readonly Buffer[];
  #undelivered: Buffer[] = [];
  #droppedAtMs = 0;
  #count = 0;

  /** @param logFile every message, with its time */
  constructor(random: SeededRandom, { macKey, keyEncryptionKey }: HostKeys, logFile?: string) {
    this.#random = random;
    this.#keys = [macKey];
    this.#log = logFile === undefined ? undefined : createWriteStream(logFile);
    this.#sites = ["first", "second"].map((name) => new HostSite(name, (site, socket) => this.#serve(site, socket)));
    this.own = new OwnRequests({
      ...{ books: this.books, random: random.fork("own requests"), keyEncryptionKey },
      send: (site, message) => this.#sendOwn(site, message),
      onKeySent: (key) => {
        this.#keys = [...this.#keys, key];
      },
      onKey: (key) => {
        this.#keys = [key, ...this.#keys.filter((one) => one !== key)];
      },
      later: (afterMs, act) => this.#later(afterMs, act),
    });
  }

  /** @returns the port of each site */
  async listen(): Promise<readonly number[]> {
    return Promise.all(
      this.#sites.map(async ({ server }) => {
        await once(server.listen(0, "127.0.0.1"), "listening");
        return (server.address() as AddressInfo).port;
      }),
    );
  }

  /** Answers, bookings and requests that are still to come from it. */
  get owed(): number {
    return this.#timers.size + this.#undelivered.length + this.own.open;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#log?.end();
    for (const { server, sockets } of this.#sites) {
      const closed = once(server.close(), "close");
      for (const socket of sockets) socket.destroy();
      await closed;
    }
  }

  #serve(site: HostSite, socket: Socket): void {
    if (site.isRestarting) return void socket.destroy();
    socket.setNoDelay(true);
    const frames = new Frames();
    socket.on("error", () => undefined);
    socket.on("close", () => site.sockets.delete(socket));
    socket.on("data", (bytes: Buffer) => {
      for (const frame of frames.push(bytes)) {
        this.#note(`in ${site.name}`, frame);
        this.#receive({ ...unpack(frame), site: site.name }, frame, { site, socket });
      }
    });
  }

  #receive(message: Received, frame: Buffer, at: Place): void {
    const { mti } = message;
    const macKey = isNetwork(mti) ? undefined : this.#keys.find((key) => hasMac(frame, key));
    if (!isNetwork(mti) && macKey === undefined) {
      this.foreign += 1;
      return;
    }
    if (Number(mti[2]) % 2 === 1) return void this.own.take(message);
    if (isNetwork(mti)) return void this.#network(message, at);
    if (mti < "0300") this.reached.add(keyOf(message));
    const visit = this.#visit(message, at, macKey);
    if (at.site.isSignedOff) {
      this.#met(message, "isSignedOff");
      return void visit.send(visit.answer("91"));
    }
    if (this.hasHabits && this.#random.chance(ownRequestChance)) this.own.send(at.site);
    const [kind, habits] = habitsOf(mti);
    const names = Object.keys(habits).filter((name) => !droppingHabits.has(name) || this.#mayDrop);
    if (this.hasHabits && names.length > 0 && this.#random.within(1, 100) <= habitsOfHundred) {
      const name = this.#random.pick(names);
      this.#met(message, `${kind}${name}`);
      habits[name]?.(visit);
      return;
    }
    visit.send(visit.answer(this.#plainly(message)));
  }

  #met(message: Received, habit: string): void {
    this.metBy.set(keyOf(message), [...(this.metBy.get(keyOf(message)) ?? []), habit]);
  }

  get #mayDrop(): boolean {
    return performance.now() - this.#droppedAtMs >= lineLastsMs;
  }

  #plainly(message: Received): string {
    if (message.mti.startsWith("04")) return this.books.reverse(message);
    if (message.mti.startsWith("05")) return this.books.settle(message);
    return message.mti.startsWith("03") ? this.books.upload(message) : this.books.book(message);
  }

  #network(message: Message, { site, socket }: Place): void {
    const isSignOn = message.fields.get(70) === "001";
    const isRefused = this.hasHabits && isSignOn && this.#random.within(1, 100) <= signOnsRefusedOfHundred;
    if (isRefused && this.#random.next() < 0.5) return;
    const isAccepted = !isRefused && !(isSignOn && site.isSignedOff);
    socket.write(pack(answerTo(message, isAccepted ? "00" : "96")));
    if (!isSignOn || !isAccepted) return;
    site.sockets.add(socket);
    for (const bytes of this.#undelivered.splice(0)) socket.write(bytes);
  }

  #later(afterMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, afterMs);
    this.#timers.add(timer);
  }

  #visit(message: Received, at: Place, macKey: Buffer | undefined): Visit {
    this.#count += 1;
    const [refId, approveCode] = [12, 6].map((digits) => this.#count.toString().padStart(digits, "0"));
    return {
      message,
      books: this.books,
      random: this.#random,
      later: (afterMs, act) => this.#later(afterMs, act),
      answer: (code, change) => {
        const answer = answerTo(message, code);
        answer.fields.set(37, refId ?? "").set(38, `A${approveCode?.slice(-5)}`);
        change?.(answer.fields);
        return answer;
      },
      send: (answer, afterMs = 0) => {
        const bytes = Buffer.isBuffer(answer) ? answer : pack(answer, isNetwork(answer.mti) ? undefined : macKey);
        if (afterMs === 0) this.#write(bytes, at);
        else if (afterMs > 0) this.#later(afterMs, () => this.#write(bytes, at));
        else for (const byte of bytes) this.#write(Buffer.of(byte), at, true);
      },
      drop: () => {
        this.#droppedAtMs = performance.now();
        at.socket.destroy();
      },
      restart: (forMs) => {
        this.#droppedAtMs = performance.now();
        at.site.isRestarting = true;
        for (const one of at.site.sockets) one.destroy();
        this.#later(forMs, () => {
          at.site.isRestarting = false;
        });
      },
    };
  }

  #sendOwn({ name }: Site, message: Message): boolean {
    const socket = this.#anyAt(name);
    if (socket === undefined) return false;
    const bytes = pack(message, isNetwork(message.mti) ? undefined : this.#keys[0]);
    this.#note("out, own", bytes.subarray(2));
    return socket.write(bytes);
  }

  /** The newest connection of a site; of the other one, if it has none. */
  #anyAt(name: string): Socket | undefined {
    const own = this.#sites.filter((site) => site.name === name);
    return [...this.#sites, ...own].flatMap(({ sockets }) => [...sockets]).at(-1);
  }

  /** @param onlyThere a part of a message belongs to its connection */
  #write(bytes: Buffer, { site, socket }: Place, onlyThere = false): void {
    this.#note(site.sockets.has(socket) ? "out" : "out, elsewhere", bytes.subarray(2));
    if (site.sockets.has(socket)) return void socket.write(bytes);
    if (onlyThere) return;
    const other = this.#anyAt(site.name);
    if (other !== undefined) other.write(bytes);
    else if (this.#undelivered.length < undeliveredMax) this.#undelivered.push(bytes);
  }

  #note(way: string, frame: Buffer): void {
    this.#log?.write(`${new Date().toISOString()} ${way} ${frame.toString("latin1")}\n`);
  }
}

function isNetwork(mti: string): boolean {
  return mti.startsWith("08");
}

function habitsOf(mti: string): readonly [kind: string, habits: typeof moneyHabits] {
  if (mti.startsWith("03")) return ["upload ", uploadHabits];
  if (mti.startsWith("04")) return ["Reversal ", reversalHabits];
  return mti.startsWith("05") ? ["Settlement ", settlementHabits] : ["", moneyHabits];
}

/** As the standard has it: what was sent, with the type of the answer and its code, and without the card and the MAC. */
function answerTo({ mti, fields }: Message, code: string): Message {
  const answered = new Map([...fields].filter(([field]) => ![22, 48, 64, 128].includes(field)));
  return { mti: `${mti.slice(0, 2)}${Number(mti[2]) + 1}0`, fields: answered.set(39, code) };
}
