import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { PaybellError } from "../errors.ts";
import { AddressList } from "../partners/addresses.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import type { CallerAddress } from "./caller.ts";

const bearer = /^Bearer +([^\s]{1,512})$/i;

function bearerToken(request: FastifyRequest): string | undefined {
  return bearer.exec(request.headers.authorization ?? "")?.[1];
}

/** Who is calling, once the hook has let the request in. */
export class Callers {
  readonly #partners = new WeakMap<FastifyRequest, Partner>();
  readonly #addresses = new WeakMap<readonly string[], AddressList>();
  readonly #directory: Pick<PartnerDirectory, "findByApiKey">;
  readonly #callerAddress: CallerAddress;

  constructor(directory: Pick<PartnerDirectory, "findByApiKey">, address: CallerAddress) {
    this.#directory = directory;
    this.#callerAddress = address;
  }

  /**
   * Lets in a partner's own key from the partner's own addresses. Runs before the body is read, so that a stranger
   * learns nothing from it. A paused partner is let in: a pause stops deliveries, not commands.
   */
  readonly authenticate = async (request: FastifyRequest): Promise<void> => {
    const apiKey = bearerToken(request);
    const partner = apiKey === undefined ? undefined : await this.#directory.findByApiKey(apiKey);
    if (partner === undefined) throw new PaybellError("unauthorized");
    const address = this.#callerAddress(request.raw);
    if (address === undefined || !this.#allowed(partner).contains(address)) {
      throw new PaybellError(
        "address_not_allowed",
        `${address ?? "An unknown address"} is not among callingAddresses.`,
      );
    }
    if (partner.state === "disabled") throw new PaybellError("partner_disabled");
    this.#partners.set(request, partner);
  };

  /** The partner that `authenticate` let in. */
  partner(request: FastifyRequest): Partner {
    const partner = this.#partners.get(request);
    if (partner === undefined) throw new Error("a partner's route was reached without authentication");
    return partner;
  }

  /** Parsed once for each state of the settings: the list is replaced, never changed. */
  #allowed({ settings }: Partner): AddressList {
    const known = this.#addresses.get(settings.callingAddresses);
    if (known !== undefined) return known;
    const list = new AddressList(settings.callingAddresses);
    this.#addresses.set(settings.callingAddresses, list);
    return list;
  }
}

/** Lets in whoever has one of the operator's tokens. Compared as digests, all of them, in constant time. */
export function operatorAuthentication(tokens: readonly string[]): (request: FastifyRequest) => Promise<void> {
  const known = tokens.map(digest);
  return async (request) => {
    const token = bearerToken(request);
    const offered = digest(token ?? "");
    const matches = known.filter((one) => timingSafeEqual(one, offered)).length;
    if (token === undefined || matches === 0) throw new PaybellError("unauthorized");
  };
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
