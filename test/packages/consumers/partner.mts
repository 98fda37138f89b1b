import { randomBytes } from "node:crypto";
import { IpnRefused, type ReceivedIpn, receiver } from "@paybell/partner";
import { testDelivery } from "@paybell/partner/testing";

const options = {
  encryptionKey: randomBytes(32).toString("base64"),
  signingKey: randomBytes(32).toString("base64"),
  webhookSecret: `whsec_${randomBytes(32).toString("base64")}`,
};
const { body, headers } = testDelivery(options, { kind: "card", ipn: { amount: "12.50" } });
const received: ReceivedIpn = receiver(options).open(body, headers);
// The kind tells which body it is, also to the compiler.
const amount: string = received.kind === "card" ? received.ipn.amount : received.ipn.totalAmount;

let refused = false;
try {
  receiver({ ...options, signingKey: randomBytes(32).toString("base64") }).open(body, headers);
} catch (error) {
  refused = error instanceof IpnRefused;
}
process.stdout.write(JSON.stringify({ amount, refused }));
