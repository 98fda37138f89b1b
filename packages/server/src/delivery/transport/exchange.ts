import type { Dispatcher } from "undici";
import type { Connection } from "./connection.ts";
import { TransportFailure } from "./failure.ts";

/** Bytes kept of a response that is not 2xx. */
export const answerBytesKept = 4 * 1_024;
/** Bytes read of any response body, to reuse the connection; a longer one is cut off with its connection. */
const bodyBytesMax = 64 * 1_024;
/** The status line has decided by then: no body occupies its slot longer than this. */
const bodyWaitMs = 1_000;

/**
 * Interim responses before the final one; one is usual. Measured: endless ones used half a processor until the
 * attempt's end.
 */
const interimAnswersMax = 16;

export interface CallbackResponse {
  readonly httpStatus: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer | null;
}

/**
 * One request over one connection, from its first byte to the end of its response. It calls one of its callbacks, once.
 */
export class HttpExchange implements Dispatcher.DispatchHandler {
  /** Part of the response was received. */
  answerBegan = false;
  /** The connection had received a response before. */
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
    // Interim responses such as 103.
    if (httpStatus < 200) {
      this.#interimAnswers += 1;
      const detail = `Over ${interimAnswersMax} answers of status 1xx came before any other.`;
      if (this.#interimAnswers > interimAnswersMax) controller.abort(new TransportFailure("bad_response", detail));
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
    // Copied, because a slice would keep the whole chunk in memory.
    if (room > 0 && this.#httpStatus >= 300) this.#kept.push(Buffer.from(chunk.subarray(0, room)));
    this.#bytes += chunk.length;
    if (this.#bytes > bodyBytesMax) this.#end(false);
  }

  onResponseEnd(): void {
    this.#connection.answers += 1;
    this.#end(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    // The status line decides; a failure in the body changes nothing.
    if (this.#httpStatus !== 0) this.#end(false);
    else if (!this.#over) {
      this.#over = true;
      this.#failed(error);
    }
  }

  /**
   * The attempt's time is over. The status decides where it is known; otherwise no callback is called any more.
   *
   * @returns whether the status is known
   */
  endAtDeadline(): boolean {
    const isAnswered = this.#httpStatus !== 0;
    if (isAnswered) this.#end(false);
    else this.#over = true;
    return isAnswered;
  }

  #end(reusable: boolean): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#bodyTimer);
    const body = this.#httpStatus >= 300 ? Buffer.concat(this.#kept) : null;
    this.#answered({ httpStatus: this.#httpStatus, retryAfter: this.#retryAfter, body }, reusable);
  }
}
