import type { Dispatcher } from "undici";
import type { Connection } from "./connection.ts";
import { TransportFailure } from "./failure.ts";

/** Kept of an answer that is not 2xx. */
export const answerBytesKept = 4 * 1_024;
/** Read of any answer's body, to use the connection again; a longer one is cut with its connection. */
const bodyBytesMax = 64 * 1_024;
/** The status line has decided by then: no body keeps its slot longer than this. */
const bodyWaitMs = 1_000;

/** Before the answer itself; one is usual. Measured: endless ones took half a processor until the attempt's end. */
const interimAnswersMax = 16;

export interface CallbackResponse {
  readonly httpStatus: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer | null;
}

/** One request over one connection, from its first byte to the end of its answer. Calls one of its callbacks, once. */
export class HttpExchange implements Dispatcher.DispatchHandler {
  /** Something of the answer has come. */
  answerBegan = false;
  /** The request went over a connection that had answered before. */
  reused = false;
  /** The request was written. */
  sent = false;
  readonly #connection: Connection;
  readonly #answered: (answer: CallbackResponse, reusable: boolean) => void;
  readonly #failed: (error: Error) => void;
  #interimAnswers = 0;
  #httpStatus = 0;
  #retryAfter: string | undefined;
  #kept: Buffer[] = [];
  #bytes = 0;
  #bodyTimer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(
    connection: Connection,
    answered: (answer: CallbackResponse, reusable: boolean) => void,
    failed: (error: Error) => void,
  ) {
    this.#connection = connection;
    this.#answered = answered;
    this.#failed = failed;
  }

  onRequestStart(): void {
    this.sent = true;
    this.#connection.head.begin();
    this.reused = this.#connection.answers > 0;
  }

  onResponseStarted(): void {
    this.answerBegan = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    httpStatus: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 103 and the like come before the answer.
    if (httpStatus < 200) {
      this.#interimAnswers += 1;
      if (this.#interimAnswers > interimAnswersMax) controller.abort(tooManyInterimAnswers());
      return;
    }
    this.#connection.head.complete();
    this.#httpStatus = httpStatus;
    const retryAfter = headers["retry-after"];
    if (typeof retryAfter === "string") this.#retryAfter = retryAfter;
    const hasBody = httpStatus !== 204 && headers["content-length"] !== "0";
    if (hasBody) this.#bodyTimer = setTimeout(() => this.#end(false), bodyWaitMs);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    const room = answerBytesKept - this.#bytes;
    // Copied: a part of the chunk would keep all of it in memory.
    if (room > 0 && this.#httpStatus >= 300) this.#kept.push(Buffer.from(chunk.subarray(0, room)));
    this.#bytes += chunk.length;
    if (this.#bytes > bodyBytesMax) this.#end(false);
  }

  onResponseEnd(): void {
    this.#connection.answers += 1;
    this.#end(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    // The status line decides: what becomes of the body after it changes nothing.
    if (this.#httpStatus !== 0) this.#end(false);
    else if (!this.#over) {
      this.#over = true;
      this.#failed(error);
    }
  }

  /** Gives up: nothing is told any more. */
  abandon(): void {
    this.#over = true;
    clearTimeout(this.#bodyTimer);
  }

  #end(reusable: boolean): void {
    if (this.#over) return;
    this.abandon();
    const body = this.#httpStatus >= 300 ? Buffer.concat(this.#kept) : null;
    this.#answered({ httpStatus: this.#httpStatus, retryAfter: this.#retryAfter, body }, reusable);
  }
}

function tooManyInterimAnswers(): TransportFailure {
  return new TransportFailure("bad_response", `Over ${interimAnswersMax} answers of status 1xx came before any other.`);
}
