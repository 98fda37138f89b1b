import type { AcquirerUnderTest } from "../../packages/server/src/acquirer/conformance.ts";
import { profile } from "../../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";
import { Iso8583Acquirer, type Iso8583Options } from "../../packages/server/src/acquirer/iso8583/iso8583.ts";
import { readProfile } from "../../packages/server/src/acquirer/iso8583/profile/read.ts";
import type { MessageTemplate, Profile } from "../../packages/server/src/acquirer/iso8583/profile/schema.ts";
import { systemClock } from "../../packages/server/src/clock.ts";

/** It describes the host of these tests. */
export { profile, usualMac } from "../../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";

/** Everything in characters. */
export const ascii: Profile["encoding"] = {
  ...{ mti: "ascii", bitmap: "hex", lengths: "ascii", text: "ascii", digits: "ascii", tracks: "ascii", bytes: "hex" },
  oddDigits: { fixed: "left", variable: "left" },
};

const { VOID, BATCH_UPLOAD, SETTLEMENT } = profile.messages;
/** The original by its type, trace number, local time and acquirer, behind its length. */
const original56 = "{originalMti}{originalTraceNo}{originalLocalDateTime}079704001";
const totals93 = {
  ...{ "74": "{refundQuantity}", "76": "{saleQuantity}", "77": "{voidQuantity}" },
  ...{ "86": "{refundTotal}", "88": "{saleTotal}", "89": "{voidTotal}" },
};

/** The same host by ISO 8583:1993. */
export const profile93 = readProfile(
  JSON.stringify({
    ...profile,
    standard: "1993",
    entryModes: { C: "510101511344", "": "010101110141" },
    messages: {
      SALE: in93(profile.messages.SALE, "1200"),
      PREAUTH: in93(profile.messages.PREAUTH, "1100"),
      PREAUTH_COMPLETE: in93(profile.messages.PREAUTH_COMPLETE, "1220"),
      REFUND: profile.messages.REFUND && in93(profile.messages.REFUND, "1200"),
      VOID: in93(VOID, "1200"),
      REVERSAL: in93(profile.messages.REVERSAL, "1420"),
      SETTLEMENT: in93(SETTLEMENT, "1500", totals93),
      SETTLEMENT_AFTER_UPLOAD: in93(profile.messages.SETTLEMENT_AFTER_UPLOAD, "1500", totals93),
      BATCH_UPLOAD: in93(BATCH_UPLOAD, "1320"),
      LOGON: in93(profile.messages.LOGON, "1804", { "24": "831" }),
    },
    network: { signOn: network93("801"), echo: network93("831"), signOff: network93("802") },
    matchBy: [11, 12, 41],
    answer: { ...profile.answer, totals: Object.keys(totals93).map(Number) },
  }),
);

function network93(functionCode: string): MessageTemplate {
  const fields = { "7": "{transmission}", "11": "{traceNo}", "12": "{localDateTime}", "24": functionCode };
  return { mti: "1804", fields };
}

/** The date in field 12, a function code, the reason behind it, and the original in field 56. */
function in93({ fields }: MessageTemplate, mti: string, own: MessageTemplate["fields"] = {}): MessageTemplate {
  const { "13": _, "25": __, "63": ___, "90": original, ...kept } = fields;
  const also = { ...(original !== undefined && { "56": original56 }), "12": "{localDateTime}", "24": "200" };
  return { mti, fields: { ...kept, ...also, ...own } };
}

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
