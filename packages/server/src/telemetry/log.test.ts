import { describe, expect, test } from "vitest";
import { createLog } from "./log.ts";

function logged(write: (log: ReturnType<typeof createLog>) => void, level = "debug"): string {
  let lines = "";
  write(createLog(level, { write: (line) => (lines += line) }));
  return lines;
}

const secret = "s3cr3t-s3cr3t-s3cr3t";

describe("createLog", () => {
  test("writes one JSON object a line, with level, time and message", () => {
    const line = JSON.parse(logged((log) => log.info({ partnerId: "p" }, "registered"))) as Record<string, unknown>;
    expect(line).toEqual({ level: "info", time: expect.stringMatching(/Z$/), partnerId: "p", msg: "registered" });
  });

  test("lines below the level are not written", () => {
    expect(logged((log) => log.debug("quiet"), "info")).toBe("");
  });

  test.each([
    "authorization",
    "Authorization",
    "apiKey",
    "api_key",
    "key",
    "secret",
    "secrets",
    "alertSecret",
    "password",
    "cookie",
    "databaseUrl",
    "connectionString",
    "operatorToken",
    "encryptionKey",
    "signingKey",
    "webhookSecret",
    "masterKey",
    "operatorTokens",
    "token",
    "keys",
    "data",
    "extraData",
    "facts",
    "body",
    "card",
    "cardNumber",
    "cardHolder",
    "cardToken",
    "expDate",
    "track2",
    "pinBlock",
    "emv",
  ])("removes what stands under %s, at every depth", (name) => {
    const text = logged((log) => {
      log.info({ [name]: secret });
      log.info({ a: { b: [{ c: { [name]: { inner: secret } } }] } });
      log.child({ [name]: secret }).info("bound");
    });
    expect(text).not.toContain(secret);
    expect(text.match(/\[removed\]/g)).toHaveLength(3);
  });

  test("keeps ids, also those of keys", () => {
    expect(logged((log) => log.info({ keyId: "k1", partnerId: "p1" }))).toContain('"keyId":"k1","partnerId":"p1"');
  });

  test("an error shows its kind, code, message, stack and cause, and none of its other properties", () => {
    const cause = Object.assign(new Error("duplicate key"), { code: "23505", detail: `Key (x)=(${secret})` });
    const text = logged((log) => log.error({ err: new Error("no commit", { cause }) }, "failed"));
    const { err } = JSON.parse(text) as { err: { message: string; stack: string; cause: { code: string } } };
    expect(err.message).toBe("no commit");
    expect(err.stack).toContain("log.test.ts");
    expect(err.cause.code).toBe("23505");
    expect(text).not.toContain(secret);
  });

  test.each([
    `whsec_${Buffer.alloc(32, 1).toString("base64")}`,
    ...["pb", "pbo", "pbv"].map((prefix) => `${prefix}_${Buffer.alloc(32, 2).toString("base64url")}`),
  ])("removes a secret from the middle of a text by its shape: %s", (value) => {
    const text = logged((log) => log.warn({ err: new Error(`refused ${value} there`) }, `got ${value}.`));
    expect(text).not.toContain(value);
    expect(text).toContain("there");
  });

  test("removes bearer tokens and the passwords of URLs from texts", () => {
    const text = logged((log) => log.warn(`Bearer ${secret} to postgres://paybell:${secret}@db:5432/paybell`));
    expect(text).not.toContain(secret);
    expect(text).toContain("postgres://paybell:[removed]@db:5432/paybell");
  });

  test("reads a long text of begun URLs once, and still finds the password at its end", () => {
    const begun = "://a:".repeat(40_000);
    const text = logged((log) => log.info(`${begun} postgres://paybell:${secret}@db`));
    expect(text).toContain(`${begun} postgres://paybell:[removed]@db`);
  });

  test("shows no inside of what is no plain object, and survives what refers to itself", () => {
    const circle: Record<string, unknown> = { name: "circle" };
    circle["self"] = circle;
    const text = logged((log) => log.info({ circle, bytes: Buffer.from(secret), big: 12n }));
    expect(text).not.toContain(secret);
    expect(text).toContain('"bytes":"[Buffer]"');
    expect(text).toContain('"big":"12"');
  });
});
