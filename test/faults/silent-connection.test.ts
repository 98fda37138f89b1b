import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reportedSale, sale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { eventually, startTestService, type TestPartner, type WholeService } from "../support/service.ts";

/** The call whose connection falls silent before the answer: a part of its statement, and a value of it. */
interface Fault {
  readonly statement: string;
  readonly marker: string;
}

/** Parts that no other statement has. */
const statements = {
  report: "WITH result AS",
  init: "'command', command, 'INIT'",
  result: "FROM done WHERE id IS NOT NULL",
} as const;

const faults: Fault[] = [];
let silenced = 0;
let database: TestDatabase;
let proxy: Server;
let service: WholeService;
let partner: TestPartner;

/** The protocol's message Parse: its length, the name of the statement, and its text. */
const parse = /P.{4}([\w-]{1,63})\0([^\0]*)\0/gs;

/** PostgreSQL over TCP. Its answer to the faulty call, and everything later on that connection, is dropped. */
function startProxy(socket: string): Server {
  return createServer((client) => {
    const server = connect(socket);
    let isSilent = false;
    // A connection sends the text of a statement once, and later only its name.
    const texts = new Map<string, string>();
    client.on("data", (sent) => {
      for (const [, name = "", text = ""] of sent.toString("latin1").matchAll(parse)) texts.set(name, text);
      const runs = (part: string) => [...texts].some(([name, text]) => text.includes(part) && sent.includes(name));
      const at = faults.findIndex(({ statement, marker }) => sent.includes(marker) && runs(statement));
      if (at !== -1) {
        faults.splice(at, 1);
        silenced += 1;
        isSilent = true;
      }
      server.write(sent);
    });
    server.on("data", (answered) => {
      if (!isSilent) client.write(answered);
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on("close", () => other.destroy());
      one.on("error", () => undefined);
    }
  });
}

beforeAll(async () => {
  database = await createDatabase();
  const at = new URL(database.serviceUrl.replace("@/", "@local/"));
  const { searchParams } = at;
  proxy = startProxy(`${searchParams.get("host")}/.s.PGSQL.${searchParams.get("port") ?? "5432"}`);
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const serviceUrl = `postgres://${at.username}:${at.password}@127.0.0.1:${port}${at.pathname}`;
  service = await startTestService({ database: { ...database, serviceUrl } });
  partner = await service.register();
});
afterAll(async () => {
  await service.stop();
  proxy.close();
  await database.drop();
});

describe.concurrent("a connection that falls silent", () => {
  test("loses no report: it is refused as unavailable, and a duplicate when it is repeated", async () => {
    const externalId = "silent-report-1";
    faults.push({ statement: statements.report, marker: externalId });
    const completion = reportedSale(partner.id, { externalId });
    const report = () => service.operator("POST", "/operator/v1/completions", { completions: [completion] });
    expect(await report()).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect((await report()).body).toMatchObject({ results: [{ externalId, result: "duplicate" }] });
  });

  test("loses no INIT: the command is refused as unavailable, and processed when it is repeated", async () => {
    const command = sale({ merchantTransId: "silent-init-1", tid: "T0000001" });
    faults.push({ statement: statements.init, marker: "silent-init-1" });
    const refused = await partner.call("POST", "/v1/commands", { json: command });
    expect(refused).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect(await partner.run(command)).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
  });

  test("loses no result: the Sale is answered late", async () => {
    // It must not share a batch with the lost INIT.
    const isInitLost = async () => (faults.some(({ statement }) => statement === statements.init) ? undefined : true);
    await eventually("the INIT beside it to be lost", isInitLost);
    faults.push({ statement: statements.result, marker: "silent-result-1" });
    const answered = await partner.run(sale({ merchantTransId: "silent-result-1", tid: "T0000002" }));
    expect(answered).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
  });
});

test("and of each of them one IPN came", async () => {
  expect(silenced).toBe(3);
  const came = await partner.server.next(3);
  expect(new Set(came.map(({ received }) => received?.ipn.id)).size).toBe(3);
});
