import type { FastifyRequest } from "fastify";
import { PaybellError } from "../errors.ts";
import { isOperatorToken } from "../operators/operator.ts";
import { AddressList } from "../partners/addresses.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { bearerToken } from "./bearer.ts";
import type { CallerAddress } from "./caller.ts";
import { tokenCheck } from "./operator-callers.ts";
import type { WrongKeys } from "./wrong-keys.ts";

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
    return apiKey !== undefined && (isOperatorToken(apiKey) || this.#isOperators(apiKey))
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

/** What judges a caller who is not a partner. */
export interface Doors {
  readonly operatorTokens: readonly string[];
  readonly wrongKeys: WrongKeys;
}
