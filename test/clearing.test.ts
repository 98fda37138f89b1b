import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { reportedSale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { callHttp, eventually, operatorToken, serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

const acquirer = "bank";
const today = new Date().toISOString().slice(0, 10).replaceAll("-", "");
const terminal = { tid: "T0000001", mid: "M00000000000001" };
const header = "TYPE,RRN,STAN,TID,AMOUNT,DATE,REASON";
let partner: TestPartner;

async function put(daysMax: number, name = acquirer): Promise<void> {
  const profile = JSON.parse(
    await readFile(join(import.meta.dirname, "../docs/operator/acquirer-profile.json"), "utf8"),
  ) as Readonly<Record<string, unknown>>;
  const clearing = {
    format: "csv",
    header: true,
    columns: {
      kind: "TYPE",
      refId: "RRN",
      trace: "STAN",
      tid: "TID",
      amount: "AMOUNT",
      date: "DATE",
      reason: "REASON",
    },
    kinds: { S: "sale", R: "refund", F: "fee", C: "chargeback" },
    currency: "VND",
    daysMax,
  };
  const { status, text } = await service.operator("PUT", `/operator/v1/acquirers/${name}`, {
    profile: { ...profile, localTimeZone: "UTC", mac: null, clearing },
    hosts: ["127.0.0.1:9"],
    tls: "off",
  });
  if (status >= 300) throw new Error(text);
}

async function post(lines: readonly string[], of = acquirer) {
  const how = { key: operatorToken, body: [header, ...lines, ""].join("\n"), headers: { "content-type": "text/csv" } };
  return await callHttp(service.baseUrl, "POST", `/operator/v1/clearing-files?acquirer=${of}&name=day.csv`, how);
}

/** Resolves to the file once it is matched. */
async function matched(lines: readonly string[], of?: string): Promise<Readonly<Record<string, unknown>>> {
  const { status, body, text } = await post(lines, of);
  if (status !== 202) throw new Error(text);
  return await eventually("the file to be matched", async () => {
    const file = (await service.operator("GET", `/operator/v1/clearing-files/${String(body["id"])}`)).body;
    return file["state"] === "done" ? file : undefined;
  });
}

interface Exception {
  readonly id: string;
  readonly kind: string;
  readonly transactionId: string | null;
  readonly [shown: string]: unknown;
}

async function exceptions(query = ""): Promise<readonly Exception[]> {
  const { body } = await service.operator("GET", `/operator/v1/clearing-exceptions?acquirer=${acquirer}${query}`);
  return body["items"] as Exception[];
}

interface Sold {
  readonly id: string;
  readonly refId: string;
  readonly traceNo: string;
  readonly notification: { readonly id: string };
}

async function sale(amount: string, token?: string): Promise<Sold> {
  return await ofTheBank(await sell(amount, token));
}

async function sell(amount: string, token = "tok_approve", at = terminal): Promise<Sold> {
  const card = { token, number: "411111******1111", scheme: "VISA", swipeType: "M" };
  const money = { amount, currency: "VND", merchantTransId: randomUUID().slice(0, 8) };
  return await run({ command: "SALE", ...money, ...at, card });
}

async function run(command: object): Promise<Sold> {
  const { status, body, text } = await partner.run({ reqId: randomUUID(), ...command });
  if (status !== 200) throw new Error(text);
  return body as unknown as Sold;
}

/** The terminal's commands go to the simulator: a host of this profile is not running. */
async function ofTheBank(sold: Sold): Promise<Sold> {
  const values = [sold.id, acquirer];
  await queryHomes(service.database, "UPDATE transactions SET acquirer = $2 WHERE id = $1 RETURNING id", values);
  return sold;
}

/** Two Sales of a switch: it voids one, and reverses the other. */
async function reportedUndone(amount: string): Promise<readonly Sold[]> {
  const ids = ["VOID", "REVERSAL"].map(async (command) => {
    const refId = randomUUID().slice(0, 12);
    const sold = reportedSale(partner.id, { amount, refId });
    const [id = ""] = await service.report([sold]);
    await service.report([reportedSale(partner.id, { command, originalExternalId: sold["externalId"] })]);
    return { id, refId, traceNo: "" } as Sold;
  });
  return await Promise.all(ids);
}

const line = (kind: string, { refId, traceNo }: Sold, amount: string, reason = "") =>
  [kind, refId, traceNo, terminal.tid, amount, today, reason].join(",");

beforeAll(async () => {
  partner = await service.register({ refunds: "silent" });
  await put(0);
});

test("a clearing file is matched with the ledger, and each difference is an exception with an event", async () => {
  const [agreed, dearer, forgotten, declined, laterDearer] = [
    await sale("1000"),
    await sale("2000"),
    await sale("3000"),
    await sale("4000", "tok_decline_51"),
    await sale("3500"),
  ];
  const [voided, reversed] = [await sell("5000"), await sell("6000")];
  await run({ command: "VOID", transactionId: voided.id });
  await run({ command: "REVERSAL", transactionId: reversed.id });
  // They are in no file.
  for (const one of [voided, reversed, ...(await reportedUndone("7000"))]) await ofTheBank(one);
  await partner.settled(agreed.notification.id, "accepted");
  const unknown = { refId: "999999999999", traceNo: "999999" } as Sold;
  const lines = [
    line("S", agreed, "1000"),
    line("S", dearer, "2500"),
    line("S", unknown, "5000"),
    line("S", { ...declined, refId: "" }, "4000"),
    line("F", agreed, "10", "interchange"),
    line("C", agreed, "1000", "4837 of 4111111111111111"),
    `F,,,,70,${today},monthly`,
    `F,888888888888,,,20,${today},of no transaction`,
  ];
  const file = await matched(lines);
  expect(file).toMatchObject({ lines: 8, matched: 1, missingHere: 2, missingThere: 2, different: 2, waiting: 0 });
  expect(file).toMatchObject({ fees: 2, chargebacks: 1, name: "day.csv", acquirer });
  expect(file["totals"]).toContainEqual({ kind: "sale", currency: "VND", lines: 4, totalMinor: "12500" });

  const open = await exceptions("&state=open");
  const about = (kind: string, transactionId: string) =>
    open.find((one) => one.kind === kind && one.transactionId === transactionId);
  expect(open).toHaveLength(7);
  expect(about("different", dearer.id)).toMatchObject({
    differences: [{ field: "amount", here: "2000", there: "2500" }],
    partnerId: partner.id,
    notificationId: dearer.notification.id,
  });
  expect(about("different", declined.id)).toMatchObject({
    differences: [{ field: "state", here: "ERROR 51", there: "sale" }],
  });
  expect(about("missing_there", forgotten.id)).toMatchObject({ line: null });
  const missingHere = open.filter(({ kind }) => kind === "missing_here").map((one) => one["line"]);
  expect(missingHere.toSorted((a, b) => Object(a).line - Object(b).line)).toMatchObject([
    { line: 4, refId: "999999999999", minor: "5000" },
    { line: 9, refId: "888888888888", minor: "20" },
  ]);
  const chargeback = about("chargeback", agreed.id);
  expect(chargeback).toMatchObject({ proof: null, line: { reason: "4837 of 411111******1111" } });
  const shown = (await service.operator("GET", `/operator/v1/clearing-exceptions/${chargeback?.id}`)).body;
  expect(shown["proof"]).toMatchObject({ proof: { id: agreed.notification.id, state: "accepted" }, signature: {} });
  const { body: audit } = await service.operator("GET", "/operator/v1/audit?limit=1");
  expect(audit["items"]).toMatchObject([{ action: "inspectClearingException", subject: chargeback?.id }]);

  const events = (await service.operator("GET", "/operator/v1/events?state=clearing_exception")).body["items"];
  expect((events as { detail: { exceptionId: string } }[]).map(({ detail }) => detail.exceptionId).sort()).toEqual(
    open.map(({ id }) => id).sort(),
  );

  const again = await post(lines);
  expect([again.status, again.body["id"]]).toEqual([202, file["id"]]);
  // A day later the bank sends the forgotten ones, of which one differs, and one for the second time.
  const late = [line("S", forgotten, "3000"), line("S", laterDearer, "3600"), line("S", agreed, "1000")];
  const next = await matched(late);
  expect(next).toMatchObject({ lines: 3, matched: 1, different: 2, missingThere: 0 });
  const found = { kind: "missing_there", state: "resolved", reason: `found in the file ${String(next["id"])}` };
  expect(await exceptions(`&transaction=${forgotten.id}`)).toMatchObject([found]);
  expect(await exceptions(`&transaction=${laterDearer.id}`)).toMatchObject([
    { kind: "different", state: "open" },
    found,
  ]);
  const [twice] = await exceptions(`&file=${String(next["id"])}`);
  expect(twice).toMatchObject({ transactionId: agreed.id, differences: [{ field: "line" }] });
});

test("a Sale stands while its Void is in doubt: the bank's line matches it, and one without a line is missing there", async () => {
  const [listed, missing] = [await sell("7100"), await sell("7200")];
  for (const { id } of [listed, missing]) await run({ command: "VOID", transactionId: id });
  const ids = [listed.id, missing.id];
  const inDoubt = "UPDATE transactions SET successor_state = 'in_doubt' WHERE id = ANY ($1) RETURNING id";
  expect(await queryHomes(service.database, inDoubt, [ids])).toHaveLength(2);
  for (const one of [listed, missing]) await ofTheBank(one);
  expect(await matched([line("S", listed, "7100")])).toMatchObject({ matched: 1, different: 0 });
  expect(await exceptions(`&transaction=${missing.id}`)).toMatchObject([{ kind: "missing_there", state: "open" }]);
});

test("a trace number that a switch reports without its zeros, or with more digits, is that of the line", async () => {
  for (const [traceNo, written, refId] of [
    ["417", "000417", ""],
    ["417", "417", "515151515151"],
    ["900000419", "000419", "525252525252"],
  ] as const) {
    const [id = ""] = await service.report([
      reportedSale(partner.id, { amount: "2600", traceNo, refId, tid: terminal.tid }),
    ]);
    const one = await ofTheBank({ id, refId, traceNo: written } as Sold);
    expect(await matched([line("S", one, "2600")]), written).toMatchObject({ matched: 1, different: 0 });
  }
});

test("an exception is worked off once, with a reason that the audit keeps", async () => {
  const sold = await sale("9000");
  await matched([]);
  const [{ id } = { id: "" }] = await exceptions(`&state=open&transaction=${sold.id}`);
  const path = `/operator/v1/clearing-exceptions/${id}/resolve`;
  const refused = await service.operator("POST", path, { reason: "card 4111111111111111" });
  expect(refused).toMatchObject({ status: 400, body: { code: "card_number_in_clear" } });
  const reason = "the bank corrects it tomorrow";
  expect((await service.operator("POST", path, { reason })).body).toMatchObject({ id, state: "resolved", reason });
  expect(await service.operator("POST", path, { reason })).toMatchObject({
    status: 409,
    body: { code: "exception_resolved" },
  });
  expect((await exceptions("&state=open")).map((one) => one.id)).not.toContain(id);
  // Also when its line comes after all.
  await matched([line("S", sold, "9000")]);
  expect(await exceptions(`&transaction=${sold.id}`)).toMatchObject([{ kind: "missing_there", reason }]);
  const { body } = await service.operator("GET", `/operator/v1/audit?subject=${id}`);
  expect(JSON.stringify(body)).toContain(reason);
  const missing = await service.operator("POST", path.replace(id, randomUUID()), { reason });
  expect(missing.status).toBe(404);
});

test("a line is not matched with a transaction of another acquirer", async () => {
  await put(2, "other-bank");
  const sold = await sale("8000");
  expect(await matched([line("S", sold, "8000")])).toMatchObject({ matched: 1 });
  expect(await matched([line("S", sold, "8000")], "other-bank")).toMatchObject({
    matched: 0,
    waiting: 1,
    different: 0,
  });
});

test("until daysMax has passed, a line waits for its transaction, and a transaction for its line", async () => {
  await put(2);
  const before = await exceptions();
  const early = { refId: "888888888888", traceNo: "888888" } as Sold;
  const late = await sale("7000");
  const file = await matched([line("S", early, "6000")]);
  expect(file).toMatchObject({ lines: 1, matched: 0, waiting: 1, missingHere: 0, missingThere: 0 });
  // Its transaction is stored later, such as a report of the switch.
  const facts = `jsonb_set(facts::jsonb, '{fields,refId}', '"888888888888"')::json`;
  const found = await sale("6000");
  await queryHomes(service.database, `UPDATE transactions SET facts = ${facts} WHERE id = $1 RETURNING id`, [found.id]);
  await matched([line("S", late, "7000")]);
  const { body } = await service.operator("GET", `/operator/v1/clearing-files/${String(file["id"])}`);
  expect(body).toMatchObject({ matched: 0, different: 1, waiting: 0 });
  expect((await exceptions()).length).toBe(before.length + 1);
  expect(await exceptions(`&transaction=${found.id}`)).toMatchObject([{ differences: [{ field: "trace" }] }]);
});

test("a transaction that comes days after its lines is matched with one of them, and the others are exceptions", async () => {
  await put(5);
  const madeOn = new Date(Date.now() - 4 * 86_400_000).toISOString().slice(0, 10).replaceAll("-", "");
  const early = (reason = "") => `S,777777777777,,${terminal.tid},6500,${madeOn},${reason}`;
  const file = await matched([early(), early()]);
  const again = await matched([early("presented again")]);
  expect([file, again]).toMatchObject([{ waiting: 2 }, { waiting: 1 }]);
  const given = `jsonb_build_object('refId', '777777777777', 'transDateTime', '${madeOn}120000')`;
  const facts = `jsonb_set(facts::jsonb, '{fields}', facts::jsonb -> 'fields' || ${given})::json`;
  const found = await sale("6500");
  await queryHomes(service.database, `UPDATE transactions SET facts = ${facts} WHERE id = $1 RETURNING id`, [found.id]);
  await matched([line("S", await sale("6600"), "6600")]);
  const shown = async (one: Readonly<Record<string, unknown>>) =>
    (await service.operator("GET", `/operator/v1/clearing-files/${String(one["id"])}`)).body;
  expect(await shown(file)).toMatchObject({ matched: 1, different: 1, waiting: 0 });
  expect(await shown(again)).toMatchObject({ matched: 0, different: 1, waiting: 0 });
  const twice = await exceptions(`&transaction=${found.id}`);
  expect(twice.map(({ kind, differences }) => [kind, differences])).toEqual(
    Array(2).fill(["different", [expect.objectContaining({ field: "line" })]]),
  );
});

test("a line whose transaction did not come in daysMax is an exception with an event", async () => {
  await put(2);
  const file = await matched([line("S", { refId: "666666666666", traceNo: "" } as Sold, "900")]);
  expect(file).toMatchObject({ waiting: 1, missingHere: 0 });
  await queryHomes(service.database, "UPDATE clearing_entries SET due_at = now() WHERE file_id = $1 RETURNING id", [
    file["id"],
  ]);
  await matched([line("S", await sale("901"), "901")]);
  const path = `/operator/v1/clearing-files/${String(file["id"])}`;
  expect((await service.operator("GET", path)).body).toMatchObject({ waiting: 0, missingHere: 1 });
  const [{ id, kind } = { id: "", kind: "" }] = await exceptions(`&file=${String(file["id"])}`);
  expect(kind).toBe("missing_here");
  const events = (await service.operator("GET", "/operator/v1/events?state=clearing_exception")).body["items"];
  expect((events as { detail: { exceptionId: string } }[]).map(({ detail }) => detail.exceptionId)).toContain(id);
});

test("a Refund is a line of its own, matched or missing", async () => {
  await put(0);
  const other = { ...terminal, tid: "T0000002" };
  const sold = await sell("5000", undefined, other);
  await run({ command: "SETTLEMENT", ...other });
  const listed = await run({ command: "REFUND", transactionId: sold.id, amount: "1000" });
  const forgotten = await run({ command: "REFUND", transactionId: sold.id, amount: "2000" });
  for (const one of [sold, listed, forgotten]) await ofTheBank(one);
  const file = await matched([line("S", sold, "5000"), line("R", listed, "1000")]);
  expect(file).toMatchObject({ matched: 2, different: 0 });
  expect(await exceptions(`&transaction=${listed.id}`)).toEqual([]);
  expect(await exceptions(`&transaction=${forgotten.id}`)).toMatchObject([{ kind: "missing_there", line: null }]);
});

test("on a day without business a file has a header alone; an empty file is refused", async () => {
  await put(2);
  expect(await matched([])).toMatchObject({ lines: 0, matched: 0, different: 0, totals: [] });
  const path = `/operator/v1/clearing-files?acquirer=${acquirer}&name=empty.csv`;
  for (const body of ["", "\n\n"]) {
    const how = { key: operatorToken, body, headers: { "content-type": "text/csv" } };
    expect((await callHttp(service.baseUrl, "POST", path, how)).status, JSON.stringify(body)).toBe(400);
  }
});

test("a file is refused with its line also while it is still being sent, and as soon as it is not UTF-8", async () => {
  const path = `/operator/v1/clearing-files?acquirer=${acquirer}`;
  const send = (body: string | Uint8Array) => callHttp(service.baseUrl, "POST", path, { key: operatorToken, body });
  const good = `S,1,1,T,1000,${today},\n`;
  const long = await send(`${header}\nS,1,1,T,12x,${today},\n${good.repeat(200_000)}`);
  expect(long).toMatchObject({ status: 400, body: { errors: [{ field: "line 2, column amount" }] } });
  const latin = await send(Buffer.from(`${header}\n${good}S,1,1,T,1000,${today},M\u00fcller\n${good}`, "latin1"));
  expect(latin).toMatchObject({ status: 400, body: { errors: [{ field: "line 3" }] } });
  expect(await queryHomes(service.database, "SELECT FROM clearing_chunks", [])).toEqual([]);
});

test("a file that is refused does not block its connection: the next request on it is answered", async () => {
  const { host, hostname, port } = new URL(service.baseUrl);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  const good = `S,1,1,T,1000,${today},\n`;
  const [bad, more] = [`${header}\nS,1,1,T,12x,${today},\n${good}`, good.repeat(100_000)];
  const to = `POST /operator/v1/clearing-files?acquirer=${acquirer} HTTP/1.1`;
  const head = [to, `Host: ${host}`, `Authorization: Bearer ${operatorToken}`, "Content-Type: text/csv"];
  socket.write([...head, `Content-Length: ${bad.length + more.length}`, "", bad].join("\r\n"));
  const [refused] = await once(socket, "data");
  expect(String(refused)).toMatch(/^HTTP\/1.1 400 /);
  socket.write(`${more}GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(await textOf(socket)).toMatch(/HTTP\/1.1 200 /);
});

test("the name of a file is kept without a card number, in the audit too", async () => {
  const path = `/operator/v1/clearing-files?acquirer=${acquirer}&name=4111111111111111.csv`;
  const body = `${header}\nS,424242,424242,T,1000,${today},\n`;
  const { status, body: received } = await callHttp(service.baseUrl, "POST", path, { key: operatorToken, body });
  expect(status).toBe(202);
  await eventually("the file to be matched", async () => {
    const { body: file } = await service.operator("GET", `/operator/v1/clearing-files/${String(received["id"])}`);
    expect(file["name"]).toBe("[a card number]");
    return file["state"] === "done" ? true : undefined;
  });
  const { text } = await service.operator("GET", "/operator/v1/audit?limit=5");
  expect(text).toContain("receiveClearingFile");
  expect(text).not.toContain("4111111111111111");
});

test("a file that cannot be read names line and column, and changes nothing", async () => {
  const { body: before } = await service.operator("GET", "/operator/v1/clearing-files");
  const bad = await post([`S,1,1,T,1000,${today},`, `S,2,2,T,12x,${today},`]);
  expect(bad).toMatchObject({
    status: 400,
    body: { code: "clearing_unreadable", errors: [{ field: "line 3, column amount" }] },
  });
  expect(bad.text).not.toContain("12x");
  expect((await service.operator("GET", "/operator/v1/clearing-files")).body).toEqual(before);
  expect(await queryHomes(service.database, "SELECT FROM clearing_chunks", [])).toEqual([]);
  const of = async (name: string) =>
    (
      await callHttp(service.baseUrl, "POST", `/operator/v1/clearing-files?acquirer=${name}`, {
        key: operatorToken,
        body: "x",
      })
    ).body;
  expect(await of("nobody")).toMatchObject({ status: 400, errors: [{ field: "acquirer" }] });
  const problem = { field: "acquirer", message: expect.stringContaining("its profile does not say") };
  expect(await of("default")).toMatchObject({ status: 400, errors: [problem] });
});
