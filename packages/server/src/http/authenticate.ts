import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { PaybellError } from "../errors.ts";
import { AddressList } from "../partners/addresses.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { isApiKey } from "../partners/secrets.ts";
import type { CallerAddress } from "./caller.ts";
import type { WrongKeys } from "./wrong-keys.ts";

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

  readonly #wrongKeys: WrongKeys;
  readonly #isOperators: (token: string) => boolean;

  constructor(directory: Pick<PartnerDirectory, "findByApiKey">, address: CallerAddress, doors: Doors) {
    this.#directory = directory;
    this.#callerAddress = address;
    this.#wrongKeys = doors.wrongKeys;
    this.#isOperators = tokenCheck(doors.operatorTokens);
  }

  /**
   * Lets in a partner's own key from the partner's own addresses. Runs before the body is read, so that a stranger
   * learns nothing from it. A paused partner is let in: a pause stops deliveries, not commands.
   */
  readonly authenticate = async (request: FastifyRequest): Promise<void> => {
    const apiKey = bearerToken(request);
    const partner = apiKey === undefined ? undefined : await this.#directory.findByApiKey(apiKey);
    const address = this.#callerAddress(request.raw);
    if (partner === undefined) return this.#wrongKeys.refuse(address, this.#explain(apiKey));
    if (address === undefined || !this.#allowed(partner).contains(address)) {
      return this.#wrongKeys.refuseAddress(address, partner.id);
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

  #explain(apiKey: string | undefined): string | undefined {
    return apiKey !== undefined && this.#isOperators(apiKey)
      ? "This is an operator's token: the partner API takes a partner's API key."
      : undefined;
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

/** What both APIs need to judge a caller by. */
export interface Doors {
  readonly operatorTokens: readonly string[];
  readonly wrongKeys: WrongKeys;
}

/** Lets in whoever has one of the operator's tokens. */
export function operatorAuthentication(
  address: CallerAddress,
  { operatorTokens, wrongKeys }: Doors,
): (request: FastifyRequest) => Promise<void> {
  const isOperators = tokenCheck(operatorTokens);
  return async (request) => {
    const token = bearerToken(request);
    if (token !== undefined && isOperators(token)) return;
    const isPartners = token !== undefined && isApiKey(token);
    const message = isPartners ? "This is a partner's API key: the operator API takes an operator's token." : undefined;
    wrongKeys.refuse(address(request.raw), message);
  };
}

/** Compared as digests, all of them, in constant time. */
function tokenCheck(tokens: readonly string[]): (token: string) => boolean {
  const known = tokens.map(digest);
  return (token) => {
    const offered = digest(token);
    return known.filter((one) => timingSafeEqual(one, offered)).length > 0;
  };
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
