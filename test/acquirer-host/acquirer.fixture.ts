import type { AcquirerUnderTest } from "../../packages/server/src/acquirer/conformance.ts";
import { profile } from "../../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";
import { Iso8583Acquirer, type Iso8583Options } from "../../packages/server/src/acquirer/iso8583/iso8583.ts";
import { systemClock } from "../../packages/server/src/clock.ts";

/** It describes the host of these tests. */
export { profile, usualMac } from "../../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";

/** The host's cards. */
export const tokens: AcquirerUnderTest["tokens"] = {
  approved: "tok_approve",
  declined: { token: "tok_decline_51", responseCode: "51" },
  silent: "tok_timeout",
  late: "tok_late",
  silentFollowUps: "tok_then_timeout",
  lateFollowUps: "tok_then_late",
  unusable: "4242-stolen-token",
};

/** A link that is signed on at one of these local ports. */
export async function connected(
  ports: readonly number[],
  options: Partial<Iso8583Options> = {},
): Promise<Iso8583Acquirer> {
  const hosts = ports.map((port) => ({ host: "127.0.0.1", port }));
  const acquirer = new Iso8583Acquirer({ profile, hosts, clock: systemClock, ...options });
  if (await acquirer.isUpWithin(10_000)) return acquirer;
  await acquirer.close();
  throw new Error(`The link does not stand: ${acquirer.health().detail}`);
}
