import { Cooldown } from "../../bounded-map.ts";
import { ServiceError } from "../../errors.ts";
import type { PartnerId } from "../../ids.ts";
import { networkOf } from "../../partners/settings/address-blocks.ts";
import type { HttpDependencies } from "../dependencies.ts";
import { RateLimit } from "../limits/rate-limits.ts";
import { notAmong } from "../request-guards.ts";

type WrongKeysParts = Pick<HttpDependencies, "log" | "metrics" | "clock" | "events">;

/** Per address and minute. A valid key from there still works, because others may share the address. */
const wrongPerMinute = 100;
/** The same event is reported again after this time. */
const toldEveryMs = 3_600_000;
const toldMax = 10_000;

/** Refused callers: counted, slowed down by address, logged, and reported to the operator. */
export class WrongKeys {
  readonly #parts: WrongKeysParts;
  readonly #wrong: RateLimit;
  readonly #told = new Cooldown<string>(toldEveryMs, toldMax);

  constructor(parts: WrongKeysParts) {
    this.#parts = parts;
    this.#wrong = new RateLimit(wrongPerMinute, parts.clock);
  }

  /** @throws ServiceError `unauthorized`, or `too_many_requests` where the address has sent too many */
  refuse(address: string | undefined, message?: string): never {
    const network = networkOf(address);
    const { allowed, resetS } = this.#wrong.count(network);
    this.#parts.metrics.callersRefused.inc({ reason: allowed ? "wrong_key" : "too_many_wrong_keys" });
    if (allowed) throw new ServiceError("unauthorized", message);
    this.#report(`wrong ${network}`, () => {
      this.#parts.log.warn({ address }, "too many wrong keys from one address: it is answered 429");
      this.#parts.events?.record({ kind: "wrong_keys", partnerId: null, subjectId: null, detail: { address } });
    });
    throw new ServiceError("too_many_requests", "Too many wrong keys came from this address.", {
      retryAfterS: resetS,
    });
  }

  /** A right key from a wrong address may be a stolen one. @throws ServiceError `address_not_allowed` */
  refuseAddress(address: string | undefined, partnerId: PartnerId): never {
    this.#parts.metrics.callersRefused.inc({ reason: "address" });
    this.#report(`address ${partnerId} ${networkOf(address)}`, () => {
      this.#parts.log.warn(
        { address, partnerId },
        "a valid key came from an address that is not allowed: it may be stolen",
      );
      this.#parts.events?.record({ kind: "key_from_elsewhere", partnerId, subjectId: null, detail: { address } });
    });
    throw new ServiceError("address_not_allowed", notAmong("callingAddresses", address));
  }

  #report(what: string, tell: () => void): void {
    if (this.#told.begin(what, this.#parts.clock.monotonicMs())) tell();
  }
}
