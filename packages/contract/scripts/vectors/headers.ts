import { webhookSignature } from "../../src/index.ts";
import { headerKey, webhookSecret } from "./material.ts";

export interface HeaderVector {
  readonly name: string;
  readonly secret: string;
  readonly id: string;
  readonly timestamp: string;
  readonly body: string;
  readonly signature: string;
}

/** Standard Webhooks v1: HMAC-SHA256 over `id.timestamp.body`. */
export function headerVectors(): HeaderVector[] {
  const id = "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a03";
  const timestampS = 1717140600;
  return [
    { name: "a body as it is sent", body: '{"data":"wMDAwMDAwMDAwMDA"}' },
    { name: "an empty body", body: "" },
    { name: "a body beyond ASCII", body: "cà phê ☕ 😀" },
  ].map(({ name, body }) => ({
    name,
    secret: webhookSecret,
    id,
    timestamp: String(timestampS),
    body,
    signature: webhookSignature(id, timestampS, body, headerKey),
  }));
}
