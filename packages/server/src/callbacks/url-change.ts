import type { NotifiedCommand } from "@paybell/contract";
import { post, postDefaults, type RequestResult } from "@paybell/partner/certify";
import type { Clock } from "../clock.ts";
import { makeEnvelope } from "../delivery/attempt/envelope.ts";
import { badFields, type FieldProblem, ServiceError } from "../errors.ts";
import { type KeyId, newId } from "../ids.ts";
import { testSale, testSettlement } from "../notifications/sample.ts";
import type { Partner, PartnerSettings } from "../partners/partner.ts";
import type { PartnerRecord, PartnerRegistry } from "../partners/registry.ts";
import type { SealBudget } from "../partners/seal-budget.ts";
import { type CallbackUrlRules, callbackUrlProblem } from "../partners/settings/callback-rules.ts";
import type { ConnectToEndpoint } from "./endpoint-connection.ts";

export interface UrlChangeParts {
  readonly connect: ConnectToEndpoint;
  readonly seals: Pick<SealBudget, "spend">;
  readonly registry: Pick<PartnerRegistry, "change">;
  readonly rules: CallbackUrlRules;
  readonly clock: Pick<Clock, "nowMs">;
  readonly newReqId: () => string;
}

/** A change of the URL of one command, or of callBackUrl. */
export interface ChangeOfUrl {
  /** Null: the command's notifications go to callBackUrl again. */
  readonly callBackUrl: string | null;
  readonly command?: NotifiedCommand | undefined;
}

/**
 * A partner's own change of a registered URL. A test IPN is sent to the new URL first: the change takes place only when
 * it was answered 2xx, and nothing is stored otherwise. Removing the URL of a command sends nothing.
 */
export class UrlChange {
  readonly #parts: UrlChangeParts;

  constructor(parts: UrlChangeParts) {
    this.#parts = parts;
  }

  /**
   * @param by the API key of the caller
   * @throws ServiceError `callback_url_fixed` if the operator has not allowed it, `callback_url_not_confirmed` if the
   * test IPN was not accepted, and those of a URL that cannot be called
   */
  async change(partner: Partner, by: KeyId, { callBackUrl, command }: ChangeOfUrl): Promise<PartnerRecord> {
    const { rules, registry, clock } = this.#parts;
    requirePermission(partner.settings);
    // The operator may act while the test IPN is on its way, say because the key was stolen.
    const approve = (standing: PartnerSettings, _: PartnerSettings, stored: PartnerRecord) => {
      requireValid(by, stored, clock.nowMs());
      requirePermission(standing);
    };
    if (callBackUrl === null) {
      if (command === undefined) throw badFields([nullWithoutCommand]);
      const remove = ({ callBackUrlByCommand: { [command]: _, ...others } }: PartnerSettings) => ({
        callBackUrlByCommand: others,
      });
      return await registry.change(partner.id, remove, approve);
    }
    const problem = callbackUrlProblem("callBackUrl", callBackUrl, rules, partner.settings);
    if (problem !== undefined) throw badFields([problem]);
    const came = await this.#sendTest(partner, callBackUrl, command);
    const isAccepted = "status" in came && came.status >= 200 && came.status < 300;
    if (!isAccepted) throw new ServiceError("callback_url_not_confirmed", `${whatCame(came)} Nothing was changed.`);
    const set = ({ callBackUrlByCommand }: PartnerSettings) =>
      command === undefined
        ? { callBackUrl }
        : { callBackUrlByCommand: { ...callBackUrlByCommand, [command]: callBackUrl } };
    return await registry.change(partner.id, set, approve);
  }

  async #sendTest(partner: Partner, callbackUrl: string, command: NotifiedCommand | undefined): Promise<RequestResult> {
    const { connect, seals, clock, newReqId } = this.#parts;
    await seals.spend(partner.id, partner.keys.encryption.id);
    const nowMs = clock.nowMs();
    const test = { transactionId: newId(), reqId: newReqId(), at: new Date(nowMs) };
    const facts = command === "SETTLEMENT" ? testSettlement(test) : testSale(test);
    const { headers, body } = makeEnvelope(JSON.stringify(facts), partner, {
      notificationId: newId<"notification">(),
      command: facts.command,
      originalId: null,
      attemptNo: 1,
      callbackUrl,
      outOfOrder: false,
      nowMs,
    });
    const options = { ...postDefaults, connect: async (url: URL) => (await connect(partner, url)).socket };
    return await post(new URL(callbackUrl), { method: "POST", headers, body: body.toString() }, options);
  }
}

function requirePermission({ callBackUrlChange }: PartnerSettings): void {
  if (callBackUrlChange !== "partner") throw new ServiceError("callback_url_fixed");
}

function requireValid(by: KeyId, { state, keys }: PartnerRecord, nowMs: number): void {
  const key = keys.find(({ id }) => id === by);
  if (key === undefined || (key.expiresAt !== null && key.expiresAt.getTime() <= nowMs)) {
    throw new ServiceError("unauthorized", "The API key was replaced or revoked meanwhile. Nothing was changed.");
  }
  if (state === "disabled") throw new ServiceError("partner_disabled");
}

const nullWithoutCommand: FieldProblem = {
  field: "callBackUrl",
  code: "invalid_value",
  message: "callBackUrl can be null only with command, whose URL is then removed.",
};

function whatCame(came: RequestResult): string {
  if ("failure" in came) return `The test IPN to it was not delivered: ${came.detail}.`.replace(/\.\.$/, ".");
  return `The test IPN to it was answered ${came.status}, not 2xx.`;
}
