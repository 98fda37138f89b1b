import { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import type { PartnerId } from "../../ids.ts";
import type { PostResult } from "../transport/transport.ts";
import { LeaseLost, type Posting, type Sender, type Sending, type SendingPartner } from "./sender.ts";
import type { Done, Numbered, Orders, SendingThreadData } from "./sending-thread-entry.ts";
import { threadEnvironment } from "./thread-environment.ts";

export interface SendingThreadOptions extends SendingThreadData {
  readonly log: Logger;
  /** Past an attempt's deadline by so much without its result, the thread is taken for stuck, and ended. */
  readonly graceMs?: number;
  readonly watchEveryMs?: number;
  /** Told to the thread at most at once; beyond, all are told anew. */
  readonly partnersMax?: number;
}

interface Job {
  readonly dueMs: number;
  readonly resolve: (result: PostResult) => void;
  readonly reject: (error: Error) => void;
}

const graceDefaultMs = 15_000;
const partnersDefault = 4_096;
const watchEveryDefaultMs = 5_000;
/** For the connections to say good-bye. */
const closeMaxMs = 1_000;

/**
 * Seals and POSTs in a thread of its own, so that the main thread has its processor for commands and the database.
 * Orders and results cross in one message for each turn of the event loop. A thread that breaks or is stuck is started
 * anew; what it had in hand is a failed attempt, for nobody knows what left.
 */
export class SendingThread implements Sender {
  readonly #options: SendingThreadOptions;
  readonly #jobs = new Map<number, Job>();
  /** As the thread knows them. */
  readonly #partners = new Map<PartnerId, SendingPartner>();
  #orders: Writable<Orders> = noOrders();
  #handing: NodeJS.Immediate | undefined;
  #lastNo = 0;
  #thread: Worker | undefined;
  #watch: NodeJS.Timeout | undefined;
  /** Overdue at the last look. Where the process stood still all is, at first, with the answers still to be read. */
  #overdue: Job | undefined;
  #closed = false;

  constructor(options: SendingThreadOptions) {
    this.#options = options;
    this.#thread = this.#start();
    this.#watch = setInterval(() => this.#endWhenStuck(), options.watchEveryMs ?? watchEveryDefaultMs).unref();
  }

  /** Attempts in the thread's hands. */
  get jobs(): number {
    return this.#jobs.size;
  }

  /** Milliseconds for which the thread was busy since it was started. */
  get busyMs(): number {
    return this.#thread?.performance.eventLoopUtilization().active ?? 0;
  }

  send({ partner, content, attempt, deadlineMs, startBeforeMs }: Sending): Promise<PostResult> {
    return this.#order(partner, deadlineMs, (no) => {
      this.#orders.sendings.push({ no, partnerId: partner.id, content, attempt, deadlineMs, startBeforeMs });
    });
  }

  post({ partner, envelope, url, deadlineMs, startBeforeMs }: Posting): Promise<PostResult> {
    return this.#order(partner, deadlineMs, (no) => {
      this.#orders.postings.push({ no, partnerId: partner.id, envelope, url, deadlineMs, startBeforeMs });
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watch);
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once("exit", resolve));
    thread.postMessage("close");
    const timer = setTimeout(() => void thread.terminate(), closeMaxMs);
    await ended;
    clearTimeout(timer);
  }

  #order(partner: SendingPartner, deadlineMs: number, add: (no: number) => void): Promise<PostResult> {
    if (this.#closed) return Promise.reject(new Error("Sending was stopped."));
    return new Promise((resolve, reject) => {
      this.#lastNo += 1;
      this.#jobs.set(this.#lastNo, { dueMs: performance.now() + deadlineMs, resolve, reject });
      this.#tellOf(partner);
      add(this.#lastNo);
      this.#handing ??= setImmediate(() => this.#hand());
    });
  }

  #tellOf(partner: SendingPartner): void {
    if (this.#partners.get(partner.id) === partner) return;
    if (this.#partners.size >= (this.#options.partnersMax ?? partnersDefault)) {
      this.#partners.clear();
      // What is ordered already names its partner by id.
      if (this.#handing !== undefined) this.#hand();
      this.#orders.forget = true;
    }
    this.#partners.set(partner.id, partner);
    const { id, settings, keys } = partner;
    this.#orders.partners.push({ id, settings, keys });
  }

  #hand(): void {
    clearImmediate(this.#handing);
    this.#handing = undefined;
    const orders = this.#orders;
    this.#orders = noOrders();
    const bodies = orders.postings.map(({ envelope }) => envelope.body.buffer as ArrayBuffer);
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(orders satisfies Orders, bodies);
    } catch (error) {
      this.#options.log.error({ err: error }, "the sending thread cannot be reached");
      if (this.#thread === undefined) this.#lost();
      else void this.end();
    }
  }

  #start(): Worker {
    const { log, sandbox, extraCas = [], connectTimeoutMs } = this.#options;
    // Beside this file, in the sources as in what is published.
    const entry = import.meta.url.endsWith(".ts") ? "./sending-thread-entry.ts" : "./sending-thread-entry.js";
    const data: SendingThreadData = { sandbox, extraCas, connectTimeoutMs };
    const thread = new Worker(new URL(entry, import.meta.url), {
      name: "paybell sending",
      env: threadEnvironment(),
      // What is young there is little: 512 attempts. Without it the thread would hold 40 MB more.
      resourceLimits: { maxYoungGenerationSizeMb: 24 },
      workerData: data,
    });
    thread.on("message", (done: readonly Done[]) => {
      for (const one of done) this.#done(one);
    });
    thread.on("error", (error) => log.error({ err: error }, "the sending thread broke"));
    thread.on("messageerror", () => void thread.terminate());
    thread.on("exit", (code) => {
      if (thread === this.#thread) this.#lost(code);
    });
    return thread;
  }

  #done(done: Done): void {
    const job = this.#jobs.get(done.no);
    this.#jobs.delete(done.no);
    if ("result" in done) job?.resolve(withBuffer(done.result));
    else job?.reject("leaseLost" in done ? new LeaseLost() : new Error(done.problem));
  }

  /** Ends the thread in the midst of whatever it does. */
  async end(): Promise<void> {
    await this.#thread?.terminate();
  }

  #endWhenStuck(): void {
    const [oldest] = this.#jobs.values();
    const graceMs = this.#options.graceMs ?? graceDefaultMs;
    const isOverdue = oldest !== undefined && performance.now() >= oldest.dueMs + graceMs;
    const wasOverdue = isOverdue && oldest === this.#overdue;
    this.#overdue = isOverdue ? oldest : undefined;
    if (!wasOverdue) return;
    this.#options.log.error({ jobs: this.#jobs.size }, "the sending thread is stuck");
    void this.end();
  }

  /** The thread is none any more. The next order starts a new one, which knows nobody. */
  #lost(code?: number): void {
    this.#thread = undefined;
    this.#partners.clear();
    this.#orders = noOrders();
    if (this.#jobs.size > 0) this.#options.log.error({ code, jobs: this.#jobs.size }, "the sending thread ended");
    const jobs = [...this.#jobs.values()];
    this.#jobs.clear();
    const detail = "The thread that sends ended before it had told what became of this.";
    for (const job of jobs) job.resolve({ reason: "internal", detail, address: null });
  }
}

type Writable<Value> = {
  -readonly [Key in keyof Value]: Value[Key] extends readonly (infer Item)[] ? Item[] : Value[Key];
};

function noOrders(): Writable<Orders> {
  return { forget: false, partners: [] as SendingPartner[], sendings: [] as Numbered<Sending>[], postings: [] };
}

/** What comes from another thread is bytes without Buffer's methods. */
function withBuffer(result: PostResult): PostResult {
  if (!("answer" in result) || result.answer === null) return result;
  const { buffer, byteOffset, byteLength } = result.answer;
  return { ...result, answer: Buffer.from(buffer, byteOffset, byteLength) };
}
