import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";
import { expect, inject, onTestFinished, test } from "vitest";
import { makeAuthority } from "../delivery/transport/transport.fixture.ts";
import { inspectDatabase } from "../store/schema/inspection.ts";
import { databaseRemedy, isUnverifiedRemote } from "./database.ts";

/** A server of PostgreSQL's protocol that answers a request for TLS, and says no more. */
async function tlsServer(certificate: { readonly cert: string; readonly key: string } | undefined) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(certificate === undefined ? "N" : "S");
      if (certificate === undefined) return;
      const secureContext = createSecureContext({ cert: certificate.cert, key: certificate.key });
      new TLSSocket(socket, { isServer: true, secureContext }).on("error", () => undefined);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function remedyFor(databaseUrl: string): Promise<string> {
  const failure = await inspectDatabase(databaseUrl).catch((error: Error) => error);
  if (!(failure instanceof Error)) throw new Error("it could be reached");
  return databaseRemedy(failure);
}

const withUser = (user: string) => inject("databaseServiceUrl").replace(/\/\/[^@]+@/, `//${user}@`);
const [, role = ""] = /\/\/([^:]+):/.exec(inject("databaseServiceUrl")) ?? [];

test("a wrong password, a missing one, and a missing database each have their own next step", async () => {
  expect(await remedyFor(withUser(`${role}:wrong`))).toMatch(/^Correct the password in PGPASSWORD/);
  expect(await remedyFor(withUser(role))).toBe("Set the role's password in PGPASSWORD, or in DATABASE_URL.");
  const nowhere = inject("databaseServiceUrl").replace(/^(postgres:\/\/[^/]*\/)[^?]*/, "$1nowhere");
  expect(await remedyFor(nowhere)).toMatch(/^Create the database/);
});

test("each failure of TLS has its own next step", async () => {
  const authority = await makeAuthority("An authority");
  const port = await tlsServer(await authority.issue("db.internal"));
  const url = (more: string, at = port) => `postgres://paybell:p@127.0.0.1:${at}/paybell?sslmode=verify-full${more}`;
  expect(await remedyFor(url(""))).toMatch(/^Add sslrootcert=<file> to DATABASE_URL/);
  expect(await remedyFor(url("&sslrootcert=/nowhere/ca.pem"))).toMatch(/^Correct the file that sslrootcert/);
  expect(await remedyFor(url("", await tlsServer(undefined)))).toMatch(/^Turn on TLS in the server's postgresql.conf/);
  const other = Object.assign(new Error("…"), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  expect(databaseRemedy(other)).toMatch(/^Name the server in DATABASE_URL as its certificate does/);
});

test("any other failure leads to the address and the network", async () => {
  expect(await remedyFor("postgres://paybell@127.0.0.1:9/paybell")).toBe(
    "Check DATABASE_URL, the server, and the network to it.",
  );
});

test.each([
  "postgres://paybell@db.internal/paybell",
  "postgres://paybell:secret@10.0.0.5:5432/paybell",
  "postgresql://paybell@db.internal/paybell?sslmode=require",
  "postgres://paybell@db.internal/paybell?sslmode=disable",
  "postgres://paybell@/paybell?host=db.internal",
  "postgres://paybell@127.0.0.1.example/paybell",
])("a remote database without verified TLS is known as such: %s", (url) => {
  expect(isUnverifiedRemote(url)).toBe(true);
});

test.each([
  "postgres://paybell@db.internal/paybell?sslmode=verify-full",
  "postgres://paybell@localhost/paybell",
  "postgres://paybell@127.0.0.1:5433/paybell",
  "postgres://paybell@[::1]/paybell",
  "postgres://paybell@/paybell?host=/run/postgresql",
  "postgresql:///paybell?host=/run/postgresql",
])("any other needs no warning: %s", (url) => {
  expect(isUnverifiedRemote(url)).toBe(false);
});
