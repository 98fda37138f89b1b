import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ciphers, encodings, type Signing, wireNames } from "@paybell/contract";
import { receiver } from "@paybell/partner";
import { expect, onTestFinished, test } from "vitest";
import { makeEnvelope } from "../../packages/server/src/delivery/attempt/envelope.ts";
import { newId } from "../../packages/server/src/ids.ts";
import type { IpnFacts } from "../../packages/server/src/ipn/facts.ts";
import { testSale } from "../../packages/server/src/notifications/sample.ts";
import { partnerSnapshot } from "../../packages/server/src/partners/partner.fixture.ts";
import type { Partner } from "../../packages/server/src/partners/partner.ts";
import { type PartnerSettings, partnerSettings } from "../../packages/server/src/partners/settings/settings.ts";
import { extractCommit } from "../../scripts/release.ts";
import { findReleases } from "../upgrade/old-version.ts";

const nowMs = Date.UTC(2026, 10, 21, 1, 2, 3);

/** The settings that change what a partner is sent, each with every value that a receiver may have to read. */
const varied: { readonly [Name in keyof PartnerSettings]?: readonly PartnerSettings[Name][] } = {
  contract: ["1"],
  wireNames,
  swipeTypes: ["code", "contact"],
  settlementTotal: ["sum", "net"],
  transactionTime: ["table", "iso8601"],
  timeZone: ["UTC", "Asia/Ho_Chi_Minh"],
  refunds: ["off", "silent", "notified"],
};
const agreed: Signing = { mode: "fields", card: ["id", "amount", "status", "transaction_type", "tid"] };
const signings: readonly Signing[] = [{ mode: "fields" }, agreed, { mode: "whole" }];
/** Settings of sealing and signing, tested in every combination. */
const combined = ["cipher", "encoding", "signing"];
/** They say where, when and whether something is sent, or are of the partner's own calls. */
const without = [
  ...[
    "name",
    "callbackAddresses",
    "callingAddresses",
    "callBackUrl",
    "callBackUrlByCommand",
    "callBackUrlChange",
    "callbackCa",
    "callbackPins",
    "callbackPorts",
    "contactMails",
    "contactUrl",
  ],
  ...["ordering", "retry", "maxInFlight", "maxPerSecond", "terminals", "reports"],
  // A partner that changes these values has agreed on them with the operator.
  ...["transactionTypes", "fields"],
];

const { fields } = testSale({ transactionId: newId(), reqId: crypto.randomUUID(), at: new Date(nowMs) });
const card = (command: "SALE" | "PREAUTH" | "PREAUTH_COMPLETE" | "VOID" | "REFUND", more: object = {}): IpnFacts => ({
  kind: "card",
  command,
  fields: { ...fields, merchantName: "Quán Cà Phê ☕ <&>", ...more },
});
const totals = { saleQuantity: "3", saleTotalAmount: "30", voidQuantity: "1", voidTotalAmount: "10", quantity: "2" };
const settlement = (settlementList: readonly { reqId: string; refNo: string }[]): IpnFacts => ({
  kind: "settlement",
  command: "SETTLEMENT",
  fields: { ...totals, id: newId(), batchNo: "000001", status: "SUCCESS", tid: "T1", mid: "M1" },
  settlementList,
  currency: "VND",
});

/** Every kind of IPN that is sent. */
const everyIpn: readonly IpnFacts[] = [
  card("SALE"),
  card("SALE", { status: "ERROR", isoResponseCode: "51", approveCode: "", refId: "" }),
  card("SALE", { aid: "", cardNumber: "", cardScheme: "", swipeType: "", paymentType: "qrmo" }),
  card("PREAUTH", { batchNo: "" }),
  card("PREAUTH_COMPLETE"),
  card("VOID"),
  { ...card("VOID"), voidsPreAuth: true } as IpnFacts,
  card("REFUND"),
  settlement([]),
  settlement([{ reqId: crypto.randomUUID(), refNo: "000000000001" }]),
];

interface Sent {
  readonly partner: Partner;
  readonly about: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const sent = partnersOfAllKinds().flatMap(({ about, partner }) =>
  everyIpn.map((facts, index) => send(partner, facts, `${about}, IPN ${index + 1}`)),
);

function partnersOfAllKinds(): { readonly about: string; readonly partner: Partner }[] {
  const sealed = ciphers.flatMap((cipher) =>
    (cipher === "jwe" ? (["base64url"] as const) : encodings).flatMap((encoding) =>
      signings.map((signing) => ({ cipher, encoding, signing })),
    ),
  );
  const others = Object.entries(varied).flatMap(([name, values]) => values.map((value) => ({ [name]: value })));
  return [...sealed, ...others].map((settings) => ({
    about: JSON.stringify(settings),
    partner: partnerSnapshot(settings as Partial<PartnerSettings>),
  }));
}

/** One POST as the service makes it now. */
function send(partner: Partner, facts: IpnFacts, about: string): Sent {
  const attempt = {
    notificationId: newId<"notification">(),
    command: facts.command,
    originalId: facts.command === "VOID" ? newId<"transaction">() : null,
    attemptNo: 2,
    callbackUrl: "https://partner.example/ipn",
    outOfOrder: true,
    nowMs,
  };
  const { headers, body } = makeEnvelope(JSON.stringify(facts), partner, attempt);
  return { partner, about, body: body.toString(), headers };
}

function optionsOf({ settings, keys }: Partner) {
  const inBase64 = (key: { export(): Buffer }) => key.export().toString("base64");
  const [webhook] = keys.webhook;
  if (webhook === undefined) throw new Error("the partner has no webhook secret");
  return {
    cipher: settings.cipher,
    encoding: settings.encoding,
    signing: settings.signing,
    encryptionKey: inBase64(keys.encryption.key),
    signingKey: inBase64(keys.signing.key),
    webhookSecret: `whsec_${inBase64(webhook.key)}`,
    clock: { nowMs: () => nowMs },
  };
}

test("every setting of a partner is varied here, or does not change what is sent", () => {
  expect([...Object.keys(varied), ...combined, ...without].sort()).toEqual(Object.keys(partnerSettings).sort());
});

/** What partners installed when the release of this commit was current. */
async function libraryOf(commit: string): Promise<{ readonly receiver: typeof receiver }> {
  const folder = mkdtempSync(join(tmpdir(), "paybell-contract-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const tree = join(folder, "tree");
  extractCommit(join(import.meta.dirname, "../.."), commit, tree, ["packages/contract", "packages/partner"]);
  // It must not find the contract of today.
  mkdirSync(join(tree, "node_modules/@paybell"), { recursive: true });
  symlinkSync("../../packages/contract", join(tree, "node_modules/@paybell/contract"));
  return await import(join(tree, "packages/partner/src/index.ts"));
}

test.for(findReleases())(
  "the library of $title accepts an IPN of today, with the same content",
  async ({ commit }, { skip }) => {
    if (commit === undefined) return skip("a shallow clone lacks the commit");
    const library = await libraryOf(commit);
    expect(library.receiver).not.toBe(receiver);
    expect(sent.length).toBeGreaterThan(250);
    for (const { partner, about, body, headers } of sent) {
      const options = optionsOf(partner);
      const opened = library.receiver(options).open(body, headers);
      expect(opened.ipn, about).toEqual(receiver(options).open(body, headers).ipn);
    }
  },
);
