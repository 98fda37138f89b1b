import { homeOf } from "../../packages/server/src/ids.ts";
import type { EventLoop } from "../service/event-loop.ts";
import type { World } from "../world.ts";
import type { Tables } from "./tables.ts";

/** The error of the simulated database and network. */
export class SimulatedFailure extends Error {}

/**
 * Writes, at READ COMMITTED: `candidates` sees what was committed when the statement began, and gives the rows that it
 * will lock. `apply` runs when all are locked and the transaction commits: it sees the rows as they are by then, and so
 * checks its conditions about them again, as PostgreSQL does after waiting for a row.
 */
export interface WriteStatement<T> {
  readonly name: string;
  readonly candidates: () => readonly string[];
  /** Rows that are known only when the candidates are locked: those of a foreign key. */
  readonly more?: () => readonly string[];
  readonly apply: () => T;
}

/** The conditions for statements. */
export const fairWeather = {
  isDown: false,
  failChance: 0,
  /** The chance of a COMMIT whose answer is lost: half of them are committed. */
  unknownChance: 0,
  slowChance: 0,
  /** All takes so many times as long. */
  slowness: 1,
};

/** A statement's caller. */
interface Call<T> {
  readonly loop: EventLoop;
  readonly line: Line;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

interface Running<T> {
  readonly transaction: TransactionNo;
  readonly statement: WriteStatement<T>;
  readonly keys: string[];
  readonly call: Call<T>;
}

/** The way of one process to the database. */
export class Session {
  readonly database: SimulatedDatabase;
  readonly tables: Tables;
  readonly loop: EventLoop;
  readonly #line: Line;

  constructor({ database, tables }: Pick<Session, "database" | "tables">, loop: EventLoop, line: Line) {
    this.database = database;
    this.tables = tables;
    this.loop = loop;
    this.#line = line;
  }

  read<T>(apply: () => T): Promise<T> {
    return this.database.read(this.loop, this.#line, apply);
  }

  write<T>(statement: WriteStatement<T>): Promise<T> {
    return this.database.write(this.loop, this.#line, statement);
  }
}

/** The ways of one process to the homes. Each statement is about the partners of one home. */
export function homeSessions({ database, tables, world }: HomesContext, all: readonly Session[]) {
  const about = (shards: readonly number[]): Session => {
    const asked = new Set(shards.map((shard) => homeOf(shard, all.length)));
    if (asked.size > 1) world.violated(0, `a statement is about ${asked.size} homes`);
    const [first = 0] = asked;
    // Every shard has one.
    return all[first] as Session;
  };
  return { all, database, tables, about };
}

type HomesContext = Pick<Session, "database" | "tables"> & { readonly world: World };
export type HomeSessions = ReturnType<typeof homeSessions>;

const manyRows = 8;
const lockTimeoutMs = 1_000;
/** The client gives up on a statement without an answer for this long. */
const silenceMs = 3_000;

/** Statements on their way: each takes time, may fail, and may be carried out although its answer is lost. */
export class SimulatedDatabase {
  readonly #world: World;
  readonly #locks = new RowLocks();
  readonly weather = { ...fairWeather };
  #clockOffsetMs = 0;
  /** When the clock last stepped, in the world's time. */
  steppedMs = 0;
  #transactions = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Microseconds, by the database's clock. */
  nowUs(): number {
    return Math.round((this.#world.nowMs + this.#clockOffsetMs + 1_790_000_000_000) * 1_000);
  }

  stepClock(ms: number): void {
    this.steppedMs = this.#world.nowMs;
    this.#clockOffsetMs += ms;
  }

  /** `apply` sees what was committed when the statement began. */
  read<T>(loop: EventLoop, line: Line, apply: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const call = { loop, line, resolve, reject };
      this.#send(call, () => {
        const value = apply();
        this.#answer(call, this.tookMs(0.4), () => resolve(value));
      });
    });
  }

  write<T>(loop: EventLoop, line: Line, statement: WriteStatement<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const call = { loop, line, resolve, reject };
      this.#send(call, () => {
        this.#transactions += 1;
        const running = { transaction: this.#transactions, statement, keys: [...statement.candidates()], call };
        // Its snapshot is older than its locks: by more when it changes many rows.
        const isLong = this.#world.random.chance(running.keys.length > manyRows ? 0.25 : 0.03);
        if (!isLong) this.#lock(running);
        else this.#world.agenda.after(this.#world.random.between(0, 150), () => this.#lock(running));
      });
    });
  }

  /** A random duration of an action that usually takes `ms`. */
  tookMs(ms: number): number {
    const { random } = this.#world;
    const { slowChance, slowness } = this.weather;
    if (slowChance > 0 && random.chance(slowChance)) return random.between(20, 2_500);
    return ms * slowness * (0.3 + random.next());
  }

  /** Whether a transaction that ends now is committed, and whether its caller hears of it. */
  fateOfCommit(): { readonly isCommitted: boolean; readonly isKnown: boolean } {
    const { random } = this.#world;
    const { isDown, unknownChance } = this.weather;
    const isKnown = !isDown && !(unknownChance > 0 && random.chance(unknownChance));
    return { isKnown, isCommitted: isKnown || random.chance(0.5) };
  }

  #send<T>(call: Call<T>, begin: () => void): void {
    const { random, agenda } = this.#world;
    if (call.line.isCut) {
      this.#fallSilent(call);
      return;
    }
    agenda.after(this.tookMs(0.3), () => {
      const { isDown, failChance } = this.weather;
      if (isDown) this.#fail(call, "the database is away");
      else if (failChance > 0 && random.chance(failChance)) this.#fail(call, "the statement failed");
      else begin();
    });
  }

  #answer<T>(call: Call<T>, afterMs: number, run: () => void): void {
    if (call.line.isOneWay || call.line.isCut) this.#fallSilent(call);
    else this.#world.agenda.after(afterMs, () => call.loop.enter(run));
  }

  #fail<T>(call: Call<T>, why: string): void {
    const { random } = this.#world;
    const afterMs = random.chance(0.3) ? random.between(50, silenceMs) : this.tookMs(0.3);
    this.#answer(call, afterMs, () => call.reject(new SimulatedFailure(why)));
  }

  #fallSilent<T>({ loop, reject }: Call<T>): void {
    const giveUp = () => reject(new SimulatedFailure("the connection fell silent"));
    this.#world.agenda.after(silenceMs, () => loop.enter(giveUp));
  }

  #lock<T>(running: Running<T>): void {
    const { statement, keys } = running;
    this.#acquire(running, keys, () => {
      const more = statement.more?.() ?? [];
      if (more.length === 0) {
        this.#commitSoon(running);
        return;
      }
      keys.push(...more);
      this.#acquire(running, more, () => this.#commitSoon(running));
    });
  }

  #acquire<T>({ transaction, keys, call }: Running<T>, wanted: readonly string[], run: () => void): void {
    if (this.#locks.acquire(transaction, wanted, run)) return;
    this.#world.agenda.after(lockTimeoutMs, () => {
      if (!this.#locks.giveUp(transaction)) return;
      this.#locks.release(transaction, keys);
      this.#fail(call, "it waited too long for a lock");
    });
  }

  #commitSoon<T>({ transaction, statement, keys, call }: Running<T>): void {
    this.#world.agenda.after(this.tookMs(0.8), () => {
      const { isCommitted, isKnown } = this.fateOfCommit();
      let why = "the answer was lost";
      let value: { readonly applied: T } | undefined;
      try {
        if (isCommitted) value = { applied: statement.apply() };
      } catch (error) {
        if (!(error instanceof SimulatedFailure)) throw error;
        why = error.message;
      }
      if (!isKnown) this.#world.note("db", statement.name, isCommitted ? "committed, unknown" : "lost, unknown");
      this.#locks.release(transaction, keys);
      const known = isKnown ? value : undefined;
      if (known === undefined) this.#fail(call, why);
      else this.#answer(call, this.tookMs(0.2), () => call.resolve(known.applied));
    });
  }
}

/** The way between one process and the database, or to one home. It may be cut in both directions or in one. */
export class Line {
  readonly #parts: readonly Line[];
  /** Statements do not arrive. */
  losesStatements = false;
  /** Statements are executed, and their answers are lost. */
  losesAnswers = false;
  /** As if cut in both directions, also after `heal`. */
  isBroken = false;

  /** @param parts other lines that it leads over */
  constructor(parts: readonly Line[] = []) {
    this.#parts = parts;
  }

  get isCut(): boolean {
    return this.losesStatements || this.isBroken || this.#parts.some(({ isCut }) => isCut);
  }

  get isOneWay(): boolean {
    return this.losesAnswers || this.#parts.some(({ isOneWay }) => isOneWay);
  }

  heal(): void {
    this.losesStatements = false;
    this.losesAnswers = false;
  }
}

/** A transaction's number. */
type TransactionNo = number;

interface Waiting {
  readonly transaction: TransactionNo;
  readonly keys: readonly string[];
  readonly run: () => void;
}

/** Locks of rows, held until the transaction ends. All that a statement needs are taken at once. */
class RowLocks {
  readonly #held = new Map<string, TransactionNo>();
  #waiting: Waiting[] = [];

  /** Runs `run` when all are held. @returns whether that was at once */
  acquire(transaction: TransactionNo, keys: readonly string[], run: () => void): boolean {
    const areFree = this.#areFree(transaction, keys);
    if (areFree) this.#take(transaction, keys, run);
    else this.#waiting.push({ transaction, keys, run });
    return areFree;
  }

  /** Waits no longer. @returns whether it still waited */
  giveUp(transaction: TransactionNo): boolean {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter((one) => one.transaction !== transaction);
    return this.#waiting.length < before;
  }

  release(transaction: TransactionNo, keys: readonly string[]): void {
    for (const key of keys) if (this.#held.get(key) === transaction) this.#held.delete(key);
    if (this.#waiting.length === 0) return;
    for (const one of [...this.#waiting]) {
      if (!this.#areFree(one.transaction, one.keys)) continue;
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      this.#take(one.transaction, one.keys, one.run);
    }
  }

  #areFree(transaction: TransactionNo, keys: readonly string[]): boolean {
    return keys.every((key) => (this.#held.get(key) ?? transaction) === transaction);
  }

  #take(transaction: TransactionNo, keys: readonly string[], run: () => void): void {
    for (const key of keys) this.#held.set(key, transaction);
    run();
  }
}
