import { randomBytes } from "node:crypto";
import { type CertifyReport, certify } from "@paybell/partner/certify";
import type { Clock } from "../clock.ts";
import { badFields, ServiceError } from "../errors.ts";
import type { Partner } from "../partners/partner.ts";
import type { SealBudget } from "../partners/seal-budget.ts";
import { type CallbackUrlRules, callbackUrlProblem } from "../partners/settings/callback-rules.ts";
import type { ConnectToEndpoint } from "./endpoint-connection.ts";

export interface CertificationsParts {
  readonly connect: ConnectToEndpoint;
  readonly seals: Pick<SealBudget, "spend">;
  readonly rules: CallbackUrlRules;
  readonly clock: Pick<Clock, "nowMs">;
}

export interface Certification extends CertifyReport {
  /** When the server's certificate ends; null without one. ISO 8601. */
  readonly certificateEndsAt: string | null;
}

/** A run seals fewer. */
const sealsOfRun = 256;
/** An endpoint that lets every case wait would hold the caller for minutes. */
const runMsMax = 120_000;
const retryAfterS = 10;

/** Runs the cases of `paybell certify` against a partner's endpoint, with the partner's keys, under the guard. */
export class Certifications {
  readonly #parts: CertificationsParts;
  readonly #running = new Set<string>();

  constructor(parts: CertificationsParts) {
    this.#parts = parts;
  }

  /**
   * @param url undefined: the registered one
   * @param signal the caller is gone
   * @throws ServiceError `no_callback_url`, that of a URL that cannot be called; `too_many_requests` while another run
   * of this partner is under way, `request_timeout` after two minutes
   */
  async run(partner: Partner, url: string | undefined, signal: AbortSignal): Promise<Certification> {
    const target = url ?? partner.settings.callBackUrl;
    if (target === null) throw new ServiceError("no_callback_url");
    const problem = callbackUrlProblem("url", target, this.#parts.rules, partner.settings);
    if (problem !== undefined) throw badFields([problem]);
    if (this.#running.has(partner.id)) {
      const message = "This partner's endpoint is being certified already.";
      throw new ServiceError("too_many_requests", message, { retryAfterS });
    }
    this.#running.add(partner.id);
    try {
      return await this.#run(partner, new URL(target), signal);
    } finally {
      this.#running.delete(partner.id);
    }
  }

  async #run(partner: Partner, url: URL, signal: AbortSignal): Promise<Certification> {
    const { connect, seals, clock } = this.#parts;
    const { settings, keys } = partner;
    for (let count = 0; count < sealsOfRun; count += 1) await seals.spend(partner.id, keys.encryption.id);
    const [webhook] = keys.webhook;
    if (webhook === undefined) throw new ServiceError("internal");
    const timeout = AbortSignal.timeout(runMsMax);
    let endsAt: Date | undefined;
    try {
      const report = await certify({
        url,
        keys: {
          sealing: { cipher: settings.cipher, encoding: settings.encoding },
          signing: settings.signing,
          fields: settings.fields,
          encryptionKey: keys.encryption,
          signingKey: keys.signing.key,
          webhookSecret: webhook.key,
        },
        run: randomBytes(4).toString("hex"),
        nowMs: clock.nowMs,
        signal: AbortSignal.any([signal, timeout]),
        limits: {
          connect: async (to) => {
            const { socket, certificateEndsAt } = await connect(partner, to);
            endsAt = certificateEndsAt ?? endsAt;
            return socket;
          },
        },
      });
      return { ...report, certificateEndsAt: endsAt?.toISOString() ?? null };
    } catch (error) {
      if (!timeout.aborted) throw error;
      const message = `The endpoint answered so slowly that the run was stopped after ${runMsMax / 60_000} minutes.`;
      throw new ServiceError("request_timeout", message);
    }
  }
}
