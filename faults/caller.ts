import { Agent, request } from "undici";
import type { ServiceInstance } from "./instance.ts";

export interface CallerResponse {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A report is repeated immediately at another instance. */
const reportPath = "/operator/v1/completions";
const reportAnsweredWithinMs = 3_000;
/** A command waits for its acquirer. */
const answeredWithinMs = 15_000;
const pauseMs = 100;
/** As a load balancer's health check does, where there are others. */
const avoidedForMs = 2_000;

type CallMethod = "GET" | "POST" | "PUT";

const noAnswer: CallerResponse = { status: 0, body: {} };

/** Calls whichever instance answers, as a client behind a load balancer does. */
export class Caller {
  readonly #instances: readonly ServiceInstance[];
  readonly #agent = new Agent({ connections: 64, connect: { timeout: 2_000 } });
  readonly #avoidedUntilMs = new Map<ServiceInstance, number>();
  #turn = 0;
  /** The number of calls by the status of their answer. */
  readonly answers = new Map<string, number>();
  readonly #troubles = new Map<string, number>();

  constructor(instances: readonly ServiceInstance[]) {
    this.#instances = instances;
  }

  /** One call of one instance. @returns status 0 if there was no answer: its result is unknown */
  async call(method: CallMethod, path: string, key: string, json?: unknown): Promise<CallerResponse> {
    const answer = await this.#call(method, path, key, json);
    const name = answer.status === 0 ? "none" : String(answer.status);
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1);
    if (answer.status >= 500 && answer.status !== 503) this.#noteTrouble(method, path, answer);
    return answer;
  }

  /** Answers since the last call that no client should get. */
  takeTroubles(): readonly string[] {
    const troubles = [...this.#troubles].map(([answer, count]) => `${answer} × ${count}`);
    this.#troubles.clear();
    return troubles;
  }

  /** Time for a missing server to come back. */
  async pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #call(method: CallMethod, path: string, key: string, json: unknown): Promise<CallerResponse> {
    const instance = this.#choose();
    if (instance === undefined) return noAnswer;
    const withinMs = path === reportPath ? reportAnsweredWithinMs : answeredWithinMs;
    try {
      const { statusCode, body } = await request(instance.urlOf(path), {
        method,
        dispatcher: this.#agent,
        headersTimeout: withinMs,
        bodyTimeout: withinMs,
        headers: { authorization: `Bearer ${key}`, ...(json !== undefined && { "content-type": "application/json" }) },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      });
      return { status: statusCode, body: JSON.parse(await body.text()) as CallerResponse["body"] };
    } catch {
      this.#avoidedUntilMs.set(instance, performance.now() + avoidedForMs);
      return noAnswer;
    }
  }

  /** A client retries after 503; it should not get any other error of the service. */
  #noteTrouble(method: string, path: string, { status, body }: CallerResponse): void {
    const route = path.replace(/[0-9a-f]{8}-[-0-9a-f]{27}/, ":id").replace(/\?.*/, "");
    const name = `${status} ${String(body["code"])} to ${method} ${route}`;
    this.#troubles.set(name, (this.#troubles.get(name) ?? 0) + 1);
  }

  #choose(): ServiceInstance | undefined {
    const running = this.#instances.filter(({ isUsed }) => isUsed);
    const healthy = running.filter((instance) => (this.#avoidedUntilMs.get(instance) ?? 0) < performance.now());
    const choice = healthy.length > 0 ? healthy : running;
    this.#turn += 1;
    return choice[this.#turn % Math.max(1, choice.length)];
  }
}
