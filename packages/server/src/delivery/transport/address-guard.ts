import { AddressBlocks } from "../../partners/address-blocks.ts";
import { literalAddress } from "../../partners/callback-url.ts";

/** This partner may not be called at this address. The message names the address and the list. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

export interface GuardRules {
  /** Only the sandbox calls loopback addresses, and they must be listed there as well. */
  readonly loopbackAllowed: boolean;
}

/**
 * The addresses that a partner's callbacks may go to: section 5, rule 2. It checks three times: a host that is a
 * literal address before anything is connected (a resolver is never asked for those), every address that a name
 * resolves to, and the address that a socket is really connected to, before its first byte.
 */
export class AddressGuard {
  readonly #list: AddressBlocks;
  readonly #rules: GuardRules;

  constructor(callbackAddresses: readonly string[], rules: GuardRules) {
    this.#list = new AddressBlocks(callbackAddresses);
    this.#rules = rules;
  }

  /** Why this address must not be called; undefined if it may. */
  refusal(address: string): string | undefined {
    return this.#list.refusal(address, this.#rules.loopbackAllowed);
  }

  /** @throws AddressRefused */
  requireAllowed(address: string | undefined): void {
    if (address === undefined) throw new AddressRefused("The connection has no address to check.");
    const refusal = this.refusal(address);
    if (refusal !== undefined) throw new AddressRefused(`${refusal}.`);
  }

  /**
   * The allowed ones of the addresses that a name resolved to. Only they are connected to, so a mixed answer does no
   * harm.
   *
   * @throws AddressRefused if there is none, with the reason for each
   */
  allowedOf(hostname: string, addresses: readonly string[]): readonly string[] {
    const allowed = addresses.filter((address) => this.refusal(address) === undefined);
    if (allowed.length > 0) return allowed;
    const shownMax = 4;
    const reasons = addresses.slice(0, shownMax).map((address) => this.refusal(address));
    const more = addresses.length > shownMax ? ` and ${addresses.length - shownMax} more` : "";
    throw new AddressRefused(`${hostname}: ${reasons.join("; ")}${more}.`);
  }

  /** Checks and returns the literal address in a URL's hostname; undefined for a name. @throws AddressRefused */
  literal(hostname: string): string | undefined {
    const address = literalAddress(hostname);
    if (address !== undefined) this.requireAllowed(address);
    return address;
  }
}
