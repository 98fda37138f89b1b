import { afterAll, describe, expect, test } from "vitest";
import { scenarios } from "../../packages/cli/src/trigger.ts";
import { serviceOfFile } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const service = await serviceOfFile({ env: { PAYBELL_ACQUIRER_TIMEOUT_MS: "1000" } });
const partner = await service.register();
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_API_KEY: partner.secrets.apiKey });
afterAll(() => line.remove());

interface Triggered {
  readonly transaction: { readonly id: string; readonly command: string; readonly status: string };
  readonly before: readonly { readonly command: string }[];
  readonly notification: {
    readonly state: string;
    readonly attempts: readonly { readonly httpStatus: number }[];
  } | null;
}

async function trigger(...args: string[]) {
  const ran = await line.run(["trigger", ...args, "--json"]);
  expect(ran.code, ran.stderr).toBe(0);
  return ran.json<Triggered>();
}

describe("trigger", () => {
  test.each([
    ["sale", "SALE", "SALE", "SUCCESS", "00", []],
    ["decline", "SALE", "SALE", "ERROR", "05", []],
    ["timeout", "SALE", "SALE", "ERROR", "68", []],
    ["late", "SALE", "SALE", "ERROR", "68", []],
    ["void", "VOID", "VOID", "SUCCESS", "00", ["SALE"]],
    ["preauth", "PREAUTH", "SALE", "SUCCESS", "00", []],
    ["preauth-complete", "PREAUTH_COMPLETE", "SALE", "SUCCESS", "00", ["PREAUTH"]],
    ["preauth-void", "VOID", "CANCEL", "SUCCESS", "00", ["PREAUTH"]],
  ])("%s happens with what it needs first, and its IPN arrives", async (what, command, type, status, code, before) => {
    const { transaction, before: first, notification } = await trigger(what, "--tid", `T-${what}`.slice(0, 16));
    expect(transaction).toMatchObject({ command, status, transaction_type: type, isoResponseCode: code });
    expect(first.map((one) => one.command)).toEqual(before);
    expect(notification).toMatchObject({ state: "accepted", attempts: [{ httpStatus: 204 }] });
    const arrived = partner.server.deliveries.map(({ received }) => received?.ipn.id);
    expect(arrived).toContain(transaction.id);
  });

  test("settlement settles what was triggered on its terminal", async () => {
    const { transaction, before, notification } = await trigger("settlement", "--tid", "T-SETTLE");
    expect(before.map((one) => one.command)).toEqual(["SALE", "SALE", "VOID"]);
    expect(transaction).toMatchObject({ command: "SETTLEMENT", quantity: "1", totalAmount: "450000" });
    expect(notification?.state).toBe("accepted");
  });

  test.each([
    ["reversal", "REVERSAL", ["SALE"]],
    ["logon", "LOGON", []],
    ["batch-upload", "BATCH_UPLOAD", []],
  ])("%s has no IPN", async (what, command, before) => {
    const { transaction, before: first, notification } = await trigger(what);
    expect(transaction).toMatchObject({ command, status: "SUCCESS" });
    expect(first.map((one) => one.command)).toEqual(before);
    expect(notification).toBeNull();
  });

  test("every scenario is tried above", () => {
    expect(scenarios.map(({ name }) => name).sort()).toEqual(
      "sale decline timeout late void preauth preauth-complete preauth-void settlement reversal logon batch-upload"
        .split(" ")
        .sort(),
    );
  });

  test("another code, amount and currency are used, and shown with the target of the IPN", async () => {
    const args = ["trigger", "decline", "--code", "51", "--amount", "12.50", "--currency", "USD"];
    const { code, stdout } = await line.run(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/SALE {2}12\.50 USD {2}ERROR 51/);
    expect(stdout).toContain(`→ ${partner.server.url}  204`);
  });

  test("an IPN that was refused is shown with what the partner answered", async () => {
    partner.server.answers({ status: 500, body: "out of order" });
    const { code, stdout } = await line.run(["trigger", "sale"]);
    expect(code).toBe(0);
    expect(stdout).toContain("it answered: out of order");
    expect(stdout).toContain("pending, tried again at");
  });

  test("an unknown scenario, and a refusal by the service, are reported", async () => {
    const unknown = await line.run(["trigger", "refund"]);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain("preauth-complete");
    for (const noDecline of ["00", "5", "abc"]) {
      const { code, stderr } = await line.run(["trigger", "decline", "--code", noDecline]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("two digits or capitals")]);
    }
    const refused = await line.run(["trigger", "sale", "--amount", "-1", "--json"]);
    expect(refused.code).toBe(3);
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: "invalid_amount" } });
  });

  test("runs only against this machine without --anywhere", async () => {
    const reached: string[] = [];
    const nobody: typeof fetch = (input) => {
      reached.push(String(input));
      return Promise.reject(new TypeError("fetch failed"));
    };
    const args = ["trigger", "sale", "--url", "https://paybell.example"];
    const refused = await line.run(args, { fetch: nobody });
    expect([refused.code, reached]).toEqual([2, []]);
    expect(refused.stderr).toContain("--anywhere");
    expect((await line.run([...args, "--anywhere"], { fetch: nobody })).code).toBe(3);
    expect(reached).toEqual(["https://paybell.example/v1/commands"]);
  });
});
