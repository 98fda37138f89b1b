import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { idTimeMs } from "../../packages/server/src/ids.ts";
import { sale } from "../support/commands.ts";
import { databaseUrl, queryHomes } from "../support/database.ts";
import { eventually, operatorToken, serviceOfFile } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const service = await serviceOfFile();
const partner = await service.register({ retry: [1] });
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
line.write("partner.json", { baseUrl: service.baseUrl, partnerId: partner.id, ...partner.secrets });
afterAll(() => line.remove());

const ok = (...args: string[]) => line.ok(...args);

/** A notification of the partner, once it has been accepted. */
async function acceptedNotification(merchantTransId: string): Promise<string> {
  const { id } = await partner.notify(sale({ merchantTransId }), "accepted");
  await partner.listed(id);
  return id;
}

describe("operator", () => {
  test("add makes a token that works, list shows who there is, revoke ends it", async () => {
    const added = await ok("operator", "add", "Ada", "--role", "viewer", "--out", "ada.json");
    expect(added.stdout).not.toContain("pbo_");
    expect(((await stat(join(line.folder, "ada.json"))).mode & 0o777).toString(8)).toBe("600");
    // As `id`, it would be taken for a partner's.
    const written = JSON.parse(readFileSync(join(line.folder, "ada.json"), "utf8")) as object;
    expect(written).toMatchObject({ operatorId: expect.any(String) });
    expect(written).not.toHaveProperty("id");
    const own = { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_URL: "" };
    const asAda = (...args: string[]) => line.run([...args, "--credentials", "ada.json"], { env: own });
    expect((await asAda("partner", "list")).code).toBe(0);
    const refused = await asAda("operator", "list");
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("role")]);
    const { items } = (await ok("operator", "list", "--json")).json<{ items: { id: string; lastUsedAt: string }[] }>();
    const [ada] = items;
    expect(ada).toMatchObject({ name: "Ada", role: "viewer", revokedAt: null });
    await ok("operator", "revoke", ada?.id ?? "", "--yes");
    await eventually("the token is refused", async () =>
      (await asAda("partner", "list")).code === 0 ? undefined : true,
    );
    expect((await ok("operator", "list")).stdout).toContain("revoked");
  });

  test("audit verify reads the chain of the database, and finds it complete", async () => {
    const verify = await line.run(["audit", "verify", "--json"], { env: { DATABASE_URL: service.database.url } });
    expect(verify.code, verify.stderr).toBe(0);
    const verified = verify.json<{ entries: number; hash: string }>();
    const { body } = await service.operator("GET", "/operator/v1/audit?limit=1");
    expect(body["items"]).toMatchObject([{ seq: verified.entries, hash: verified.hash }]);
  });

  test.each(["verify", "export"])("audit %s without a database says what it needs, and makes none", async (what) => {
    const home = join(line.folder, "no-home");
    const read = await line.run(["audit", what], { env: { PAYBELL_HOME: home } });
    expect([read.code, read.stdout]).toEqual([1, ""]);
    expect(read.stderr).toBe(
      `paybell: DATABASE_URL is not set, and ${home} has no data of the sandbox. ` +
        "Set DATABASE_URL to the service's database, or PAYBELL_HOME to the sandbox's folder.\n",
    );
    expect(existsSync(home)).toBe(false);
  });

  test("audit verify says of a database without an audit that it is not the service's", async () => {
    const DATABASE_URL = databaseUrl(service.database.url, "postgres");
    const verify = await line.run(["audit", "verify"], { env: { DATABASE_URL } });
    expect([verify.code, verify.stdout]).toEqual([1, ""]);
    expect(verify.stderr).toBe(
      "paybell: this database has no audit: no service has started on it. Does DATABASE_URL name the right one?\n",
    );
  });
});

describe("api-key", () => {
  type Keys = { items: { id: string; name?: string; scopes?: string[]; lastUsedAt: string | null }[] };

  test("add makes another key with scopes, list shows its use, and the partner revokes it itself", async () => {
    const own = { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_URL: "" };
    const asPartner = (file: string, ...args: string[]) => line.run([...args, "--credentials", file], { env: own });
    const add = (...args: string[]) => asPartner("partner.json", "api-key", "add", ...args);
    const added = await add("till", "--scopes", "read", "pull", "--out", "till.json");
    expect(added.code, added.stderr).toBe(0);
    expect(added.stdout).not.toContain("pb_");
    expect(((await stat(join(line.folder, "till.json"))).mode & 0o777).toString(8)).toBe("600");
    expect((await asPartner("till.json", "partner", "show")).code).toBe(0);
    const beyond = await asPartner("till.json", "api-key", "add", "more", "--scopes", "manage");
    expect([beyond.code, beyond.stderr]).toEqual([3, expect.stringContaining("scope")]);

    const till = await eventually("its use is recorded", async () => {
      const listed = await ok("api-key", "list", "--partner", partner.id, "--json");
      return listed.json<Keys>().items.find(({ name, lastUsedAt }) => name === "till" && lastUsedAt !== null);
    });
    expect(till).toMatchObject({ scopes: ["read", "pull"], lastUsedAt: expect.any(String) });
    expect((await asPartner("partner.json", "api-key", "list")).stdout).toMatch(/till +read, pull +last used /);
    expect((await asPartner("partner.json", "api-key", "revoke", till?.id ?? "", "--yes")).code).toBe(0);
    await eventually("the key is refused", async () =>
      (await asPartner("till.json", "partner", "show")).code === 3 ? true : undefined,
    );
    const left = (await ok("api-key", "list", "--partner", partner.id, "--json")).json<Keys>();
    expect(left.items.map(({ name }) => name)).not.toContain("till");
  });

  test("add by the operator prints the key without --out, and says what is wrong", async () => {
    const args = ["api-key", "add", "reports", "--scopes", "read", "--partner", partner.id];
    expect((await ok(...args, "--expires-in-days", "30", "--json")).json()).toMatchObject({
      partnerId: partner.id,
      apiKey: expect.stringMatching(/^pb_/),
    });
    expect((await line.run(["api-key", "add", "reports", "--partner", partner.id])).code).toBe(2);
    expect((await line.run([...args, "--scopes", "all"])).code).toBe(2);
    const unknown = await line.run(["api-key", "revoke", "x", "--partner", partner.id, "--yes"]);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('no valid API key "x"')]);
  });
});

describe("partner", () => {
  const settings = ["--callback-addresses", "192.0.2.10/32", "--calling-addresses", "127.0.0.1/32", "192.0.2.0/24"];

  test("add registers, and keeps the keys in a file for its owner, which the other commands read", async () => {
    const added = await ok("partner", "add", "--name", "Shop", ...settings, "--cipher", "jwe", "--out", "shop.json");
    expect(added.stdout).toContain("shop.json");
    expect(added.stdout).not.toContain("pb_");
    expect(((await stat(join(line.folder, "shop.json"))).mode & 0o777).toString(8)).toBe("600");

    const own = { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_URL: "" };
    const shown = await line.run(["partner", "show", "--credentials", "shop.json", "--json"], { env: own });
    expect(shown.json()).toMatchObject({
      settings: { name: "Shop", cipher: "jwe", callingAddresses: ["127.0.0.1/32", "192.0.2.0/24"] },
    });
    const listed = await ok("partner", "list");
    expect(listed.stdout).toContain("Shop");
  });

  test("add keeps the operators' own URL out of the partner's file", async () => {
    // In production operators have their own listener, which serves no partner.
    const ofOperators: typeof fetch = (input, init) =>
      String(input).includes("/v1/self") && !String(input).includes("/operator/")
        ? Promise.resolve(new Response("{}", { status: 404 }))
        : fetch(input, init);
    const add = (name: string, ...more: string[]) =>
      line.run(["partner", "add", "--name", name, ...settings, "--out", `${name}.json`, ...more], {
        fetch: ofOperators,
      });
    const written = (name: string) => JSON.parse(readFileSync(join(line.folder, `${name}.json`), "utf8"));
    expect((await add("apart")).stdout).toContain("--partner-url");
    expect(written("apart")).not.toHaveProperty("baseUrl");
    await add("told", "--partner-url", "https://paybell.example");
    expect(written("told")).toMatchObject({ baseUrl: "https://paybell.example" });
  });

  test("an API key in place of an operator's token is reported as such, and the reverse", async () => {
    const swapped = { env: { PAYBELL_OPERATOR_TOKEN: partner.secrets.apiKey } };
    expect((await line.run(["partner", "list"], swapped)).stderr).toContain("This is a partner's API key");
    line.write("swapped.json", { baseUrl: service.baseUrl, apiKey: `pbo_${"a".repeat(43)}` });
    const args = ["notifications", "list", "--as", "partner", "--credentials", "swapped.json"];
    expect((await line.run(args)).stderr).toContain("This is an operator's token");
  });

  test("add writes over no file, and leaves none where the service refuses", async () => {
    line.write("there.json", "{}");
    const there = await line.run(["partner", "add", "--name", "A", ...settings, "--out", "there.json"]);
    expect([there.code, there.stderr]).toEqual([2, expect.stringContaining("exists already")]);
    const refused = await line.run(["partner", "add", "--name", "A", "--out", "new.json"]);
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain("callbackAddresses");
    await expect(stat(join(line.folder, "new.json"))).rejects.toThrow("ENOENT");
    const { json } = await ok("partner", "list", "--json");
    const { items } = json<{ items: { settings: { name: string } }[] }>();
    expect(items.map((one) => one.settings.name)).not.toContain("A");
  });

  test("add takes the other settings from a file, and prints the keys without --out", async () => {
    line.write("settings.json", { ordering: "none", timeZone: "UTC", retry: [7] });
    const args = ["partner", "add", "--name", "B", ...settings, "--settings", "settings.json", "--json"];
    const added = (await ok(...args, "--time-zone", "Asia/Ho_Chi_Minh")).json<Record<string, string>>();
    expect(added["webhookSecret"]).toMatch(/^whsec_/);
    const shown = await ok("partner", "show", added["partnerId"] ?? "", "--json");
    expect(shown.json()).toMatchObject({ settings: { ordering: "none", retry: [7], timeZone: "Asia/Ho_Chi_Minh" } });
    expect(shown.stdout).not.toContain(added["signingKey"]);
  });

  test("rotate replaces a key, shows it once, and names the overlap", async () => {
    const args = ["partner", "rotate", "webhookSecret", "--partner", partner.id, "--overlap-hours", "1"];
    const rotated = (await ok(...args, "--json")).json<Record<string, string>>();
    expect(rotated["secret"]).toMatch(/^whsec_/);
    const filed = await ok(...args, "--out", "rotated.json");
    expect(filed.stdout).not.toContain("whsec_");
    expect(JSON.parse(readFileSync(join(line.folder, "rotated.json"), "utf8"))).toEqual({
      webhookSecret: [
        {
          id: expect.any(String),
          key: expect.stringMatching(/^whsec_/),
          activeFrom: expect.any(String),
          expiresOld: expect.any(String),
        },
      ],
    });
    const shown = await ok("partner", "show", partner.id, "--json");
    const { keys } = shown.json<{ keys: { id: string; kind: string }[] }>();
    expect(keys.filter(({ kind }) => kind === "webhookSecret").length).toBeGreaterThan(1);

    const unknown = await line.run(["partner", "rotate", "masterKey", "--partner", partner.id]);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("encryptionKey")]);
    expect((await line.run([...args.slice(0, -1), "1000"])).code).toBe(2);
  });
});

describe("the records of the operator", () => {
  test("a partner is changed, paused, resumed and disabled, and shows its statistics", async () => {
    const { id } = await service.register({ name: "Changing" });
    line.write("change.json", { maxInFlight: 3 });
    const changed = (await ok("partner", "set", id, "--settings", "change.json", "--json")).json();
    expect(changed).toMatchObject({ settings: { maxInFlight: 3, name: "Changing" } });
    const flags = ["--retry", "5", "60", "--max-per-second", "9", "--reports-amounts", "minor", "--signing", "whole"];
    expect((await ok("partner", "set", "Changing", ...flags, "--json")).json()).toMatchObject({
      settings: {
        maxInFlight: 3,
        retry: [5, 60],
        maxPerSecond: 9,
        signing: { mode: "whole" },
        reports: { amounts: "minor" },
      },
    });
    const same = await line.run(["partner", "set", id, ...flags]);
    expect([same.code, same.stdout]).toEqual([1, expect.stringMatching(/^Nothing changes/)]);
    const emptied = await ok("partner", "set", id, "--max-per-second", "none", "--json");
    expect(emptied.json()).toMatchObject({ settings: { maxPerSecond: null, retry: [5, 60] } });
    for (const [action, state] of [
      ["pause", "paused"],
      ["resume", "active"],
      ["disable", "disabled"],
    ] as const) {
      expect((await ok("partner", action, "changing")).stdout).toBe(`Changing is ${state}.\n`);
      const again = await line.run(["partner", action, id]);
      expect([again.code, again.stdout]).toEqual([1, `Changing is ${state} already.\n`]);
      expect((await ok("partner", "show", id, "--json")).json()).toMatchObject({ state });
    }
    expect((await ok("partner", "statistics", id, "--span", "day")).stdout).toMatch(/^Accepted +0\n/);
    const own = { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_URL: "" };
    const statistics = await line.run(["partner", "statistics", "--credentials", "partner.json", "--json"], {
      env: own,
    });
    expect(statistics.json()).toMatchObject({ span: "hour", accepted: expect.any(Number) });
    expect((await line.run(["partner", "set", id])).stderr).toContain("--help");
  });

  test("a terminal is registered and listed; the service's own message says what is wrong", async () => {
    const of = ["--partner", partner.id];
    const set = await ok("terminal", "set", "T0000077", "--mid", "M00000000000077", "--merchant-name", "Shop", ...of);
    expect(set.stdout).toContain("T0000077 belongs to M00000000000077");
    expect((await ok("terminal", "list", ...of)).stdout).toMatch(/^TID .*\nT0000077 +M00000000000077 +Shop/);
    expect((await ok("terminal", "release", "T0000077", "--yes", ...of)).stdout).toContain("T0000077 is released");
    expect((await ok("terminal", "list", ...of)).stdout).not.toContain("T0000077");
    const refused = await line.run(["terminal", "set", "T0000078", ...of]);
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("mid")]);
  });

  test("transactions, batches and events are listed and shown, a transaction with its chain", async () => {
    const { body } = await partner.run(sale({ merchantTransId: "for-records" }));
    const id = body["id"] as string;
    const voided = await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: id });
    expect(voided.status, JSON.stringify(voided.body)).toBe(200);
    const of = ["--partner", partner.id];
    expect((await ok("transaction", "list", ...of)).stdout).toMatch(new RegExp(`VOID.*\\n.*SALE.*${id}`));
    const misnamed = await line.run(["transaction", "list", "--acquirer", "First Bank"]);
    expect([misnamed.code, misnamed.stderr]).toEqual([
      3,
      expect.stringContaining("acquirer must be 1 to 32 characters"),
    ]);
    const shown = await ok("transaction", "show", id);
    expect(shown.stdout).toMatch(/^command +SALE$/m);
    expect(shown.stdout).toMatch(/^Chain\nCREATED AT .*\n.*VOID/m);
    for (const noun of ["batch", "settlement", "reversal", "event"]) {
      const { items } = (await ok(noun, "list", "--json")).json<{ items: { id: string }[] }>();
      const [first] = items;
      if (first !== undefined) expect((await ok(noun, "show", first.id, "--json")).json()).toMatchObject(first);
    }
    const unknown = "01a1fc4e-6d3c-700f-874e-0ad9ef58793d";
    expect((await line.run(["reversal", "retry", unknown])).code).toBe(3);
    const bare = await line.run(["reversal", "resolve", unknown]);
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining("--reason")]);
    expect((await line.run(["settlement", "abort", unknown, "--reason", "not there"])).code).toBe(3);
  });

  test("an endpoint that is gone is listed, and closed manually", async () => {
    const gone = await service.register({ name: "Closing" });
    gone.server.answersAlways(410);
    await gone.run(sale());
    const found = await eventually("the circuit to be tripped", async () => {
      const { items } = (await ok("endpoint", "list", "--partner", gone.id, "--json")).json<{
        items: { id: string }[];
      }>();
      return items[0];
    });
    gone.server.answersAlways(204);
    expect((await ok("endpoint", "list", "--state", "gone")).stdout).toContain(found.id);
    expect((await ok("endpoint", "close", found.id)).stdout).toContain("is closed");
    const again = await line.run(["endpoint", "close", found.id, "--partner", "closing"]);
    expect([again.code, again.stdout]).toEqual([1, expect.stringContaining("is closed already")]);
  });

  test("a partner changes the URL of a command, and removes it", async () => {
    const own = await service.register({ callBackUrlChange: "partner" });
    const env = { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_API_KEY: own.secrets.apiKey };
    const change = (...words: string[]) => line.run(["endpoint", "change", ...words], { env });
    const url = `${own.server.url}/books`;
    const changed = await change(url, "--command", "SETTLEMENT");
    expect([changed.code, changed.stdout]).toEqual([
      0,
      `It accepted a test IPN: deliveries of SETTLEMENT go to ${url} now.\n`,
    ]);
    const removed = await change("--command", "SETTLEMENT", "--remove");
    expect(removed.stdout).toBe(`Removed: deliveries of SETTLEMENT go to ${own.server.url} now.\n`);
    expect((await change("--remove")).stderr).toContain("Give the new URL, or --command and --remove.");
    expect((await change(url, "--command", "LOGON")).stderr).toContain("SALE, VOID");
  });

  test("top prints once if the output is not a terminal", async () => {
    const { stdout } = await ok("top");
    expect(stdout).toMatch(/^Deliveries of the last hour/m);
    expect(stdout).toMatch(/^Pending /m);
    expect((await ok("top", "--json")).json()).toMatchObject({ pending: expect.any(Number) });
  });

  test("top and status begin with the partners that receive nothing now, and why", async () => {
    const shop = await service.register({ name: "Refusing", retry: [3_600] });
    shop.server.answersAlways(400);
    await shop.run(sale());
    const stdout = await eventually("its trouble", async () => {
      const printed = (await ok("top")).stdout;
      return printed.includes(shop.id) ? printed : undefined;
    });
    const why =
      /^Trouble now\n(?:.*\n)*? {2}Refusing +answered 400 +since 2\S+ +1 wait +next try at 2\S+ +parked at 2\S+ +\S+$/m;
    expect(stdout).toMatch(why);
    expect((await ok("status")).stdout).toMatch(why);
    const env = { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_API_KEY: shop.secrets.apiKey };
    const own = await line.run(["status"], { env });
    expect([own.code, own.stdout]).toEqual([1, expect.stringMatching(why)]);
    expect(own.stdout).toMatch(/^Pending +1, the oldest since 2/m);
    const partners = { ...env, PAYBELL_API_KEY: partner.secrets.apiKey };
    const fine = await line.run(["status"], { env: partners });
    expect([fine.code, fine.stdout]).toEqual([0, expect.stringMatching(/^You receive your notifications\n/)]);
  });

  test("status names a partner of which notifications are parked, and the partner sees why", async () => {
    const shop = await service.register({ name: "Parking", retry: [1] });
    shop.server.answersAlways(401);
    const { id } = await shop.notify(sale(), "parked");
    const why = /^ {2}Parking +answered 401 +since 2\S+ +1 parked +sent again when a person acts +\S+$/m;
    const own = await line.run(["status"], {
      env: { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_API_KEY: shop.secrets.apiKey },
    });
    expect([own.code, own.stdout]).toEqual([1, expect.stringMatching(why)]);
    const stdout = await eventually("the overview to have it", async () => {
      const printed = (await ok("status")).stdout;
      return printed.includes("Parking") ? printed : undefined;
    });
    expect(stdout).toMatch(why);
    shop.server.answersAlways(204);
    await shop.notify(sale(), "accepted");
    const task =
      /^Waits for a person\n(?:.*\n)*? {2}Parking +answered 401 +since 2\S+ +1 parked +sent again when a person acts +others accepted, last at 2\S+ +\S+$/m;
    await eventually("it to be out of trouble", async () =>
      task.test((await ok("status")).stdout) ? true : undefined,
    );
    const fine = await line.run(["status"], {
      env: { PAYBELL_OPERATOR_TOKEN: "", PAYBELL_API_KEY: shop.secrets.apiKey },
    });
    expect([fine.code, fine.stdout]).toEqual([0, expect.stringMatching(/^You receive .*\n\n.*\nParked +1: /)]);
    await ok("notifications", "redeliver", id);
    await shop.settled(id, "accepted");
    await eventually("the overview to leave it out", async () =>
      (await ok("status")).stdout.includes("Parking") ? undefined : true,
    );
  });

  test("completion prints a script, and complete prints the completions", async () => {
    expect((await ok("completion", "bash")).stdout).toContain("complete -o default -F _paybell paybell");
    expect((await ok("complete", "--", "rever")).stdout).toContain("reversal\t");
  });
});

describe("notifications", () => {
  test("list and show find what somebody quotes, with its attempts", async () => {
    const id = await acceptedNotification("quoted-1");
    const listed = await ok("notifications", "list", "--q", "quoted-1");
    expect(listed.stdout).toContain(id);
    const shown = await ok("notifications", "show", id);
    expect(shown.stdout).toContain(`→ ${partner.server.url}  204`);
    expect(shown.stdout).toMatch(/accepted at .*, attempt 1/);
  });

  test("show --json prints the input of open", async () => {
    const id = await acceptedNotification("opened-1");
    const shown = await ok("notifications", "show", id, "--json", "--credentials", "partner.json");
    const opened = await line.run(["open", "-", "--credentials", "partner.json"], { stdin: shown.stdout });
    expect(opened.code, opened.stdout).toBe(0);
    expect(opened.stdout).toContain('"merchantTransId": "opened-1"');
    const bare = await ok("notifications", "show", id, "--json", "--no-sealed", "--credentials", "partner.json");
    expect(bare.json()).not.toHaveProperty("sealed");
  });

  test("list names the partner, the amount and the order; show says why what is pending is not sent", async () => {
    const shop = await service.register({ name: "Waiting Shop" });
    await service.operator("POST", `/operator/v1/partners/${shop.id}/pause`);
    const { id } = await shop.notify(sale({ merchantTransId: "order-7" }));
    const { stdout } = await ok("notifications", "list", "--partner", shop.id);
    expect(stdout).toMatch(/Waiting Shop +SALE +150000 VND +order-7 /);
    const shown = await ok("notifications", "show", id);
    expect(shown.stdout).toContain("pending: its partner is paused");
    expect(shown.stdout).toContain(`Waiting Shop (${shop.id})`);
    await service.operator("POST", `/operator/v1/partners/${shop.id}/resume`);
    await shop.settled(id, "accepted");
  });

  test("show says why a tripped endpoint failed, and what one that is due waits for", async () => {
    const id = await acceptedNotification("waits-1");
    const shown = async (waiting: object) => {
      const waits = { state: "pending", nextAttemptAt: "2026-11-21T02:40:50.113Z", waiting };
      const changed: typeof fetch = async (input, init) => {
        const answer = await fetch(input, init);
        return Response.json({ ...((await answer.json()) as object), ...waits });
      };
      return (await line.run(["notifications", "show", id], { fetch: changed })).stdout;
    };
    expect(await shown({ because: "circuit", target: "https://shop.example", reason: "timeout" })).toContain(
      "pending: its endpoint https://shop.example fails (timeout), and is tried again at 2026-11-21T02:40:50.113Z",
    );
    expect(await shown({ because: "turn" })).toContain("pending: it is due, and waits for a free slot");
  });

  test("a partner lists its own in their order, page by page, and searches among them", async () => {
    const ids = [await acceptedNotification("mine-1"), await acceptedNotification("mine-2")];
    const as = ["--as", "partner", "--credentials", "partner.json"];
    const all = await ok("notifications", "list", ...as, "--limit", "500", "--json");
    const { items } = all.json<{ items: { id: string }[] }>();
    expect(items.map(({ id }) => id).slice(-2)).toEqual(ids);
    const first = (await ok("notifications", "list", ...as, "--limit", "1", "--json")).json<{ next: string }>();
    const rest = await ok("notifications", "list", ...as, "--after", first.next, "--limit", "500", "--json");
    expect(rest.json<{ items: unknown[] }>().items).toHaveLength(items.length - 1);
    const found = await ok("notifications", "list", ...as, "--q", "mine-1", "--since", "2026-01-01", "--json");
    expect(found.json<{ items: { id: string }[] }>().items.map(({ id }) => id)).toEqual([ids[0]]);
    for (const refused of [
      ["--partner", partner.id],
      ["--q", "x", "--after", first.next],
    ]) {
      expect((await line.run(["notifications", "list", ...as, ...refused])).code).toBe(2);
    }
  });

  test("redeliver sends by id, names those it could not, and sends parked ones by filter", async () => {
    const id = await acceptedNotification("again-1");
    const seen = partner.server.deliveries.length;
    const stranger = "01a1fc4e-6d3c-700f-874e-0ad9ef58793d";
    for (const [index, as] of [[], ["--as", "partner", "--credentials", "partner.json"]].entries()) {
      const ran = await line.run(["notifications", "redeliver", id, stranger, "--json", ...as]);
      expect(ran.code).toBe(1);
      expect(ran.json()).toMatchObject({ redelivered: 1, held: [], refused: [{ id: stranger, code: "not_found" }] });
      await partner.server.until((all) => all.length > seen + index);
      await partner.settled(id, "accepted");
    }

    partner.server.answers(400, 400);
    const { id: parked } = await partner.notify(sale(), "parked");
    await eventually("the status to count it", async () => {
      const { stdout } = await ok("status");
      return stdout.includes("1 parked: paybell notifications list --state parked") ? true : undefined;
    });
    const shown = await line.run(["notifications", "show", parked]);
    expect(shown.code).toBe(1);
    expect(shown.stdout).toMatch(/^\d{4}-\S+ {2}parked {2}\{.*"httpStatus":400/m);
    const counted = await ok("notifications", "redeliver", "--state", "parked", "--dry-run", "--json");
    expect(counted.json()).toMatchObject({
      matched: 1,
      redelivered: 0,
      partners: [{ partner: partner.id, matched: 1 }],
    });
    const again = await ok("notifications", "redeliver", "--state", "parked", "--yes", "--json");
    expect(again.json()).toMatchObject({ matched: 1, redelivered: 1, held: { paused: 0, order: 0 } });
    await partner.settled(parked, "accepted");
    const { id: many } = again.json<{ id: string }>();
    const progress = await ok("notifications", "progress", many);
    expect(progress.stdout).toBe("1 of 1 delivered.\n");
  });

  test("a partner redelivers its own by time, and follows them until they are delivered", async () => {
    const id = await acceptedNotification("again-2");
    const since = new Date(idTimeMs(id)).toISOString();
    const as = ["--as", "partner", "--credentials", "partner.json", "--state", "accepted", "--since", since, "--yes"];
    const sent = await ok("notifications", "redeliver", ...as, "--follow");
    expect(sent.stdout).toBe("1 is due now, 1 of yours matched.\n1 of 1 delivered.\n");
    expect((await line.run(["notifications", "redeliver", ...as, "--partner", partner.id])).code).toBe(2);
  });

  describe("a redelivery is followed", () => {
    const nextAttemptAt = "2026-11-21T10:00:30.000Z";
    const now = { redelivered: 3, delivered: 1, parked: 0, nextAttemptAt: null };
    const sending = { ...now, pending: 2, due: 1, failed: 0, held: { paused: 1, order: 0 } };
    const paused = { ...now, delivered: 2, pending: 1, due: 0, failed: 0, held: { paused: 1, order: 0 } };
    const failed = { ...now, pending: 2, due: 0, failed: 1, held: { paused: 1, order: 0 }, nextAttemptAt };

    test.each([
      ["--follow", "what is pending waits for a person", [sending, paused]],
      ["--follow", "what is pending waits for its schedule", [sending, failed]],
      ["--wait", "what is pending waits for a person", [sending, failed, paused]],
    ])("with %s until %s", async (flag, _, readings) => {
      const answers = readings.map((reading) => Response.json(reading));
      const progress: typeof fetch = async () => answers.shift() ?? Promise.reject(new Error("asked again"));
      const ran = await line.run(["notifications", "progress", crypto.randomUUID(), flag], { fetch: progress });
      const text =
        readings.at(-1) === paused
          ? "2 of 3 delivered, 1 pending; 1 held: the partner is paused.\n"
          : "1 of 3 delivered, 2 pending, 1 of them failed again; 1 held: the partner is paused; " +
            `the next attempt is at ${nextAttemptAt}.\n`;
      expect([ran.code, ran.stdout]).toEqual([1, text]);
      expect(answers).toEqual([]);
    });

    test("through a restart of the service, also just after it was made", async () => {
      const made = { id: crypto.randomUUID(), matched: 3, redelivered: 3, held: { paused: 0, order: 0 } };
      const done = { ...now, delivered: 3, pending: 0, due: 0, failed: 0, held: made.held };
      const away = () => Response.json({}, { status: 502 });
      const answers = [made, made, away, sending, away, done, sending, away, away, done];
      const service: typeof fetch = async () => {
        const answer = answers.shift();
        return typeof answer === "function" ? answer() : Response.json(answer);
      };
      const filter = ["--state", "parked", "--partner", partner.id, "--yes"];
      for (const args of [
        ["redeliver", ...filter],
        ["progress", made.id],
      ]) {
        const ran = await line.run(["notifications", ...args, "--follow"], { fetch: service });
        expect([ran.code, ran.stdout]).toEqual([0, expect.stringContaining("3 of 3 delivered.\n")]);
        expect(ran.stderr.match(/answered 502/g)).toHaveLength(2);
      }
    });

    test.each([
      ["the key ends while it is followed", ["--partner", partner.id, "--follow"], ["made", "made", "refused"]],
      ["one of several partners' fails", [], ["partners", "made", "made", "made", "refused"]],
    ] as const)("later by its id, also if %s", async (_, args, given) => {
      const id = crypto.randomUUID();
      const partners = { items: [{ id: partner.id }, { id: crypto.randomUUID() }], next: null };
      const answers: (keyof typeof all)[] = [...given];
      const all = {
        partners: () => Response.json(partners),
        made: () => Response.json({ id, matched: 3, redelivered: 3, held: { paused: 0, order: 0 } }),
        refused: () => Response.json({ code: "unauthorized", title: "x", detail: "x" }, { status: 401 }),
      };
      const service: typeof fetch = async () => all[answers.shift() ?? "refused"]();
      const filter = ["--state", "parked", "--yes"];
      const ran = await line.run(["notifications", "redeliver", ...filter, ...args], { fetch: service });
      expect([ran.code, ran.stderr]).toEqual([
        3,
        expect.stringContaining(`paybell notifications progress ${id} --follow\n`),
      ]);
    });
  });

  test.each([
    [[], "no notification is selected"],
    [["x", "--state", "parked"], "ids exclude filters"],
    [["--state", "accepted"], "only with --since"],
    [["--state", "parked", "--since", "11-22"], "must be a time"],
  ])("redeliver %j ends with 2", async (args, word) => {
    const { code, stderr } = await line.run(["notifications", "redeliver", ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(word)]);
  });
});

test("restore reconcile ends with 1 while a notification, or only a command, is held", async () => {
  const at = new Date(0).toISOString();
  const ids = { partnerId: partner.id, transactionId: crypto.randomUUID() };
  const command = { ...ids, command: "SALE", reqId: crypto.randomUUID(), createdAt: at };
  const share = { partnerId: partner.id, count: 1, attempted: 0, oldestAt: at, newestAt: at };
  const restore = { name: "drill", endsAt: at, heldAt: at, held: 1, releasedAt: null };
  const codeOf = async (commands: object[], partners: object[]) => {
    const report: typeof fetch = (input, init) =>
      String(input).endsWith("/operator/v1/restore")
        ? Promise.resolve(Response.json({ restore: { ...restore, commands, partners } }))
        : fetch(input, init);
    return (await line.run(["restore", "reconcile"], { fetch: report })).code;
  };
  expect(await codeOf([command], [])).toBe(1);
  expect(await codeOf([], [share])).toBe(1);
  expect(await codeOf([], [])).toBe(0);
});

test("restore release takes the notifications of one partner, or the commands of all", async () => {
  const { code, stderr } = await line.run(["restore", "release", "--partner", crypto.randomUUID(), "--commands"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("exclude each other")]);
});

test("restore release sends what the restore holds, and nothing that was parked otherwise", async () => {
  const shop = await service.register({ retry: [1] });
  shop.server.answersAlways(400);
  const [{ id: held }, { id: refused }] = await Promise.all([
    shop.notify(sale(), "parked"),
    shop.notify(sale(), "parked"),
  ]);
  // As if the first instance on a restored database had parked it.
  const hold = "UPDATE parked SET reason = 'restored' WHERE partner_id = $1 AND id = $2";
  await queryHomes(service.database, hold, [shop.id, held]);
  shop.server.answersAlways(204);
  const released = await ok("restore", "release", "--partner", shop.id, "--yes", "--json");
  expect(released.json()).toMatchObject({ redelivered: 1 });
  await shop.settled(held, "accepted");
  const { body } = await shop.call("GET", `/v1/notifications/${refused}`);
  expect(body["state"]).toBe("parked");
});

describe("status", () => {
  test("shows readiness, backlog, failing endpoints and expiring keys", async () => {
    const { id } = await service.register({ name: "Rotating" });
    await ok("partner", "rotate", "apiKey", "--partner", id, "--overlap-hours", "48");
    const { ready, backlog, endpoints, keysEnding, partners } = (await ok("status", "--json")).json<{
      ready: boolean;
      backlog: { pending: number };
      endpoints: unknown[];
      keysEnding: { kind: string; partner: string }[];
      partners: { total: number };
    }>();
    expect({ ready, endpoints }).toEqual({ ready: true, endpoints: [] });
    expect(backlog.pending).toBeGreaterThanOrEqual(0);
    expect(partners.total).toBeGreaterThan(1);
    expect(keysEnding).toContainEqual(expect.objectContaining({ kind: "apiKey", partner: "Rotating" }));
    const within = await ok("status", "--keys-within", "1", "--json");
    expect(within.json<{ keysEnding: { partner: string }[] }>().keysEnding.map((one) => one.partner)).not.toContain(
      "Rotating",
    );
    expect((await ok("status")).stdout).toContain("Ready");
  });

  test("says how many are pending and since when, and how many are parked", async () => {
    const nowMs = Date.now();
    const oldestPendingAt = new Date(nowMs - 90_000).toISOString();
    const waiting: typeof fetch = async (input, init) => {
      const answer = await fetch(input, init);
      if (!String(input).endsWith("/operator/v1/overview")) return answer;
      const overview = (await answer.json()) as object;
      return Response.json({ ...overview, pending: 3, oldestPendingAt, standing: { parked: 2 } });
    };
    const { stdout } = await line.run(["status"], { fetch: waiting, nowMs: () => nowMs });
    expect(stdout).toContain("Backlog    3 pending, the oldest for 90 s\n");
    expect(stdout).toContain("Parked     2 parked: paybell notifications list --state parked\n");
  });

  test("names an endpoint that is open, and the partner whose it is", async () => {
    const gone = await service.register({ name: "Gone" });
    gone.server.answersAlways(410);
    await gone.run(sale());
    await gone.server.next(1);
    const found = await eventuallyOpen(gone.id);
    expect(found).toContain("gone");
  });

  async function eventuallyOpen(partnerId: string): Promise<string> {
    for (;;) {
      const { stdout } = await ok("status");
      if (stdout.includes(partnerId) && stdout.includes("open or gone")) return stdout;
    }
  }

  test("marks the warning of a check, such as of a delivery worker without a lease", async () => {
    const detail = "warning: a worker has had no lease for 12 s and sends nothing: run paybell check, and see the log";
    const answer = { ready: true, checks: { lease: { ok: true, detail: "is held" }, delivery: { ok: true, detail } } };
    const warned: typeof fetch = (input, init) =>
      String(input).endsWith("/readyz") ? Promise.resolve(Response.json(answer)) : fetch(input, init);
    const { code, stdout } = await line.run(["status"], { fetch: warned });
    expect(code).toBe(0);
    expect(stdout).toContain("✓  lease     is held");
    expect(stdout).toContain(`!  delivery  ${detail}`);
  });

  test("that is not ready ends with 1", async () => {
    const answer = { ready: false, checks: { database: { ok: false, detail: "does not answer" } } };
    const unready: typeof fetch = (input, init) =>
      String(input).endsWith("/readyz") ? Promise.resolve(Response.json(answer, { status: 503 })) : fetch(input, init);
    const { code, stdout } = await line.run(["status"], { fetch: unready });
    expect(code).toBe(1);
    expect(stdout).toContain("✗  database  does not answer");
  });
});
