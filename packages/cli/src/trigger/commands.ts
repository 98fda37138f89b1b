import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Api } from "../client/api.ts";
import type { CommandContext } from "../shell/command.ts";

/** The fields of the answer of POST /v1/commands that are shown. */
export interface RanCommand {
  readonly id: string;
  readonly command: string;
  readonly status: "INIT" | "SUCCESS" | "ERROR";
  readonly isoResponseCode?: string;
  readonly amount?: string;
  readonly currency?: string;
  readonly totalAmount?: string;
  readonly quantity?: string;
  readonly batchNo: string;
  readonly refId?: string;
  readonly reqId: string;
  readonly transaction_type: string;
  readonly notification: { readonly id: string; readonly state: string } | null;
}

/** The common fields of the commands of one run. */
export interface ScenarioFields {
  readonly amount: string;
  readonly currency: string;
  readonly tid: string;
  readonly mid: string;
  readonly merchantTransId: string;
  readonly callBackUrl?: string;
}

/** Runs commands as a partner does, each with a reqId of its own, and waits for their outcome. */
export class Commander {
  readonly #context: CommandContext;
  readonly #api: Api;
  readonly #scene: ScenarioFields;
  readonly ran: RanCommand[] = [];

  constructor(context: CommandContext, api: Api, scene: ScenarioFields) {
    this.#context = context;
    this.#api = api;
    this.#scene = scene;
  }

  /** A Sale or PreAuth with a test card. */
  pay(command: "SALE" | "PREAUTH", token: string): Promise<RanCommand> {
    const card = { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
    return this.#run({ command, ...this.#scene, card });
  }

  void(original: RanCommand): Promise<RanCommand> {
    return this.#run({ command: "VOID", transactionId: original.id, ...this.#callBackUrl() });
  }

  complete(original: RanCommand): Promise<RanCommand> {
    const { amount } = this.#scene;
    return this.#run({ command: "PREAUTH_COMPLETE", transactionId: original.id, amount, ...this.#callBackUrl() });
  }

  reverse(original: RanCommand): Promise<RanCommand> {
    return this.#run({ command: "REVERSAL", transactionId: original.id });
  }

  settle(): Promise<RanCommand> {
    return this.#run({ command: "SETTLEMENT", ...this.#terminal(), ...this.#callBackUrl() });
  }

  system(command: "LOGON" | "BATCH_UPLOAD"): Promise<RanCommand> {
    return this.#run({ command, ...this.#terminal() });
  }

  #terminal(): Pick<ScenarioFields, "tid" | "mid"> {
    const { tid, mid } = this.#scene;
    return { tid, mid };
  }

  #callBackUrl(): Pick<ScenarioFields, "callBackUrl"> {
    const { callBackUrl } = this.#scene;
    return callBackUrl === undefined ? {} : { callBackUrl };
  }

  async #run(body: Readonly<Record<string, unknown>>): Promise<RanCommand> {
    const answered = await this.#api.post<RanCommand>("/v1/commands", { reqId: randomUUID(), ...body });
    const transaction = await this.#outcome(answered);
    this.ran.push(transaction);
    return transaction;
  }

  /** A command whose outcome is not known in time is answered INIT. */
  async #outcome(answered: RanCommand): Promise<RanCommand> {
    let transaction = answered;
    while (transaction.status === "INIT") {
      await sleep(lookEveryMs, undefined, { signal: this.#context.signal });
      transaction = await this.#api.get<RanCommand>(`/v1/transactions/${answered.id}`);
    }
    return transaction;
  }
}

export const lookEveryMs = 250;
