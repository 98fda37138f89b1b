import type { FastifyRequest } from "fastify";
import type { Config } from "../config.ts";
import { ServiceError } from "../errors.ts";
import { AddressBlocks } from "../partners/address-blocks.ts";
import { callerAddress, notAmong } from "./caller.ts";

/** Before any token is checked: a caller that cannot be an operator learns nothing, not even health and metrics. */
export function operatorAddressesOnly(
  config: Pick<Config, "operatorAddresses" | "trustedProxies">,
): (request: FastifyRequest) => Promise<void> {
  const allowed = new AddressBlocks(config.operatorAddresses);
  const addressOf = callerAddress(config.trustedProxies);
  return async ({ raw }) => {
    const address = addressOf(raw);
    if (address !== undefined && allowed.contains(address)) return;
    throw new ServiceError("address_not_allowed", notAmong("PAYBELL_OPERATOR_ADDRESSES", address));
  };
}
