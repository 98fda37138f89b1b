import crypto = require("node:crypto");
import partner = require("@paybell/partner");
import testing = require("@paybell/partner/testing");

const options = {
  encryptionKey: crypto.randomBytes(32).toString("base64"),
  signingKey: crypto.randomBytes(32).toString("base64"),
  webhookSecret: `whsec_${crypto.randomBytes(32).toString("base64")}`,
};
const { body, headers } = testing.testDelivery(options, { kind: "card", ipn: { amount: "12.50" } });
const received: partner.ReceivedIpn = partner.receiver(options).open(body, headers);
// The kind tells which body it is, also to the compiler.
const amount: string = received.kind === "card" ? received.ipn.amount : received.ipn.totalAmount;

let refused = false;
try {
  partner.receiver({ ...options, signingKey: crypto.randomBytes(32).toString("base64") }).open(body, headers);
} catch (error) {
  refused = error instanceof partner.IpnRefused;
}
process.stdout.write(JSON.stringify({ amount, refused }));
