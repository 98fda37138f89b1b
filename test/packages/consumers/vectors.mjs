// Runs the published vectors through the installed package, on whatever runtime this is: one line of JSON.
import { readFileSync } from "node:fs";
import { IpnRefused, receiver } from "@paybell/partner";
import { fetchHandler } from "@paybell/partner/fetch";

const { vectors } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const wrong = [];

function receiverOf({ encryptionKey, signingKey, webhookSecret, cipher, encoding, signing, nowSeconds }) {
  return receiver({
    encryptionKey,
    signingKey,
    webhookSecret,
    cipher,
    encoding,
    signing,
    clock: { nowMs: () => nowSeconds * 1000 },
  });
}

function became({ body, headers, ...vector }) {
  try {
    const { kind, ipn, keyId } = receiverOf(vector).open(body, headers);
    return ["accept", kind, keyId, sorted(ipn)];
  } catch (error) {
    return error instanceof IpnRefused ? ["refuse"] : [String(error)];
  }
}

function sorted(ipn) {
  return ipn === undefined ? undefined : Object.entries(ipn).sort(([a], [b]) => (a < b ? -1 : 1));
}

for (const vector of vectors) {
  const { expect, kind, keyId, ipn } = vector;
  const expected = expect === "accept" ? [expect, kind, keyId, sorted(ipn)] : [expect];
  const got = became(vector);
  if (JSON.stringify(got) !== JSON.stringify(expected)) wrong.push(`${vector.name}: ${JSON.stringify(got)}`);
}

// A whole POST through the handler of servers that speak fetch.
const [good] = vectors;
const handled = [];
const handle = fetchHandler(receiverOf(good), async ({ ipn }) => handled.push(ipn.id), { log: () => undefined });
const post = (body) => handle(new Request("http://localhost/ipn", { method: "POST", headers: good.headers, body }));
const statuses = [(await post(good.body)).status, (await post(`${good.body} `)).status, (await post("")).status];

process.stdout.write(JSON.stringify({ tried: vectors.length, wrong, statuses, handled: handled.length }));
