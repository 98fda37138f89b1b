import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../errors.ts";
import type { KeyId } from "../../ids.ts";
import { isOperatorToken } from "../../operators/operators.ts";
import { type ApiKeys, scopeNotAllowed } from "../../partners/api-keys.ts";
import { isApiKey } from "../../partners/keys.ts";
import type { ApiKeyHolder, ApiKeyScope, Partner, PartnerDirectory } from "../../partners/partner.ts";
import { AddressBlocks } from "../../partners/settings/address-blocks.ts";
import type { HttpDependencies } from "../dependencies.ts";
import { policyOf } from "../policy.ts";
import type { CallerAddress } from "../request-guards.ts";
import type { Sessions } from "./sessions.ts";
import { isViewLink, type PartnerView, type ViewLinks } from "./view-links.ts";
import type { WrongKeys } from "./wrong-keys.ts";

/** The caller of a request, once the hook has admitted it. */
export class Callers {
  readonly #holders = new WeakMap<FastifyRequest, ApiKeyHolder>();
  readonly #addresses = new WeakMap<readonly string[], AddressBlocks>();
  readonly #directory: Pick<PartnerDirectory, "findByApiKey">;
  readonly #apiKeys: Pick<ApiKeys, "used">;
  readonly #callerAddress: CallerAddress;
  readonly #wrongKeys: WrongKeys;
  readonly #sessions: Pick<Sessions, "tokenOf">;
  readonly #viewLinks: Pick<ViewLinks, "open">;

  constructor(
    { directory, apiKeys }: Pick<HttpDependencies, "directory" | "apiKeys">,
    address: CallerAddress,
    doors: Doors,
  ) {
    this.#directory = directory;
    this.#apiKeys = apiKeys;
    this.#callerAddress = address;
    this.#wrongKeys = doors.wrongKeys;
    this.#sessions = doors.sessions;
    this.#viewLinks = doors.viewLinks;
  }

  /**
   * Lets in a partner's own key from the partner's own addresses. Runs before the body is read, so that a stranger
   * learns nothing from it. A paused partner is let in: a pause stops deliveries, not commands. A key with scopes opens
   * what they allow.
   */
  readonly authenticate = async (request: FastifyRequest): Promise<void> => {
    const token = await this.#sessions.tokenOf(request);
    const view = token === undefined ? undefined : await this.view(request, token);
    if (view === undefined && token !== undefined && isViewLink(token) && request.headers.authorization === undefined) {
      // It is not a guess: the page that it opened still asks.
      throw new ServiceError("unauthorized", "The link has expired, or was revoked.");
    }
    const holder = view === undefined ? await this.admit(request, token) : viewer(view);
    const needed = policyOf(request, "partner").scope;
    if (needed !== null && holder.scopes !== null && !holder.scopes.includes(needed)) {
      throw scopeNotAllowed([needed]);
    }
    this.#holders.set(request, holder);
    if (view === undefined) this.#apiKeys.used(holder.partner.id, holder.keyId);
  };

  /** The partner that a link shows: to the console's pages, from any address; undefined for what is no valid link. */
  async view({ headers }: FastifyRequest, token: string): Promise<PartnerView | undefined> {
    return headers.authorization === undefined && isViewLink(token) ? await this.#viewLinks.open(token) : undefined;
  }

  /**
   * Finds the partner of an API key, if the request comes from one of the partner's own addresses.
   *
   * @throws ServiceError `unauthorized`, `address_not_allowed`, `partner_disabled`, `too_many_requests`
   */
  async admit(request: FastifyRequest, apiKey: string | undefined): Promise<ApiKeyHolder> {
    const holder = apiKey === undefined ? undefined : await this.#directory.findByApiKey(apiKey);
    const address = this.#callerAddress(request.raw);
    if (holder === undefined) return this.#wrongKeys.refuse(address, this.#explain(apiKey));
    const { partner } = holder;
    if (address === undefined || !this.#allowed(partner).contains(address)) {
      return this.#wrongKeys.refuseAddress(address, partner.id);
    }
    if (partner.state === "disabled") throw new ServiceError("partner_disabled");
    return holder;
  }

  /** The partner that `authenticate` let in. */
  partner(request: FastifyRequest): Partner {
    return this.#holder(request).partner;
  }

  keyId(request: FastifyRequest): KeyId {
    return this.#holder(request).keyId;
  }

  /** The scopes of its key; null: everything. */
  scopes(request: FastifyRequest): readonly ApiKeyScope[] | null {
    return this.#holder(request).scopes;
  }

  #holder(request: FastifyRequest): ApiKeyHolder {
    const holder = this.#holders.get(request);
    if (holder === undefined) throw new Error("a partner's route was reached without authentication");
    return holder;
  }

  /** By the form alone: a comparison with the operators' tokens would confirm a stolen one. */
  #explain(apiKey: string | undefined): string | undefined {
    if (apiKey === undefined || isApiKey(apiKey)) return undefined;
    // The token of the settings has no form of its own.
    return isOperatorToken(apiKey)
      ? "This is an operator's token: the partner API requires a partner's API key."
      : "This is not a partner's API key: pb_ and 43 characters. An operator's token is for the operator API.";
  }

  /** Parsed once for each state of the settings: the list is replaced, never changed. */
  #allowed({ settings }: Partner): AddressBlocks {
    const known = this.#addresses.get(settings.callingAddresses);
    if (known !== undefined) return known;
    const list = new AddressBlocks(settings.callingAddresses);
    this.#addresses.set(settings.callingAddresses, list);
    return list;
  }
}

/** Authenticates callers that are not partners. */
export interface Doors {
  readonly wrongKeys: WrongKeys;
  readonly sessions: Pick<Sessions, "tokenOf">;
  readonly viewLinks: Pick<ViewLinks, "open">;
}

/** A link that was opened allows reading. */
function viewer({ partner, id }: PartnerView): ApiKeyHolder {
  return { partner, keyId: id, scopes: ["read"] };
}
