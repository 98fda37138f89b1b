import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";
import { expect, onTestFinished, test } from "vitest";
import { oidcClientId, oidcClientSecret, startOidcProvider } from "../../../../test/support/oidc-provider.ts";
import { readConfig } from "../config/config.ts";
import { connectProxy } from "../delivery/transport/connect-proxy.fixture.ts";
import { OidcSignIn } from "../operators/oidc.ts";
import { egressProxyFindings } from "../programs/check.ts";
import { newMasterKeyText } from "../programs/master-key.ts";
import { egressFetch } from "./egress.ts";
import { testAlerts } from "./observation/alerts.ts";

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** No host is excepted. */
function throughProxy(port: number, env: NodeJS.ProcessEnv = {}) {
  return readConfig({
    PAYBELL_EGRESS_PROXY: `http://127.0.0.1:${port}`,
    PAYBELL_EGRESS_PROXY_EXCEPT: "none.test",
    ...env,
  });
}

test("a host of the settings is fetched through the proxy, by its name, unless it is excepted", async () => {
  const [proxy, port] = [await connectProxy(), await listening(createServer((_, response) => response.end("here")))];
  const fetchBy = egressFetch(throughProxy(proxy.port));
  expect(await (await fetchBy(`http://idp.test:${port}/`)).text()).toBe("here");
  const direct = egressFetch(throughProxy(proxy.port, { PAYBELL_EGRESS_PROXY_EXCEPT: "127.0.0.1" }));
  expect(await (await direct(`http://127.0.0.1:${port}/`)).text()).toBe("here");
  expect(proxy.asked).toEqual([`idp.test:${port}`]);
});

test("the key service is asked through the proxy", async () => {
  const vault = createServer((_, response) => response.end('{"data":{"ciphertext":"vault:v1:AAAA"}}'));
  const [proxy, port] = [await connectProxy(), await listening(vault)];
  const folder = await mkdtemp(join(tmpdir(), "paybell-egress-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "token"), "hvs.token");
  const settings = {
    PAYBELL_KMS: "vault",
    PAYBELL_KMS_URL: `http://127.0.0.1:${port}`,
    PAYBELL_KMS_TOKEN_FILE: join(folder, "token"),
  };
  expect(await newMasterKeyText(throughProxy(proxy.port, settings))).toBe("vault:v1:AAAA");
  expect(proxy.asked).toEqual([`127.0.0.1:${port}`]);
});

test("the OpenID provider is asked through the proxy", async () => {
  const proxy = await connectProxy();
  const provider = await startOidcProvider("http://127.0.0.1/console/sign-in/callback");
  onTestFinished(() => provider.close());
  const config = throughProxy(proxy.port, {
    PAYBELL_OIDC_ISSUER: provider.issuer,
    PAYBELL_OIDC_CLIENT_ID: oidcClientId,
    PAYBELL_OIDC_CLIENT_SECRET: oidcClientSecret,
    PAYBELL_CONSOLE_URL: "http://127.0.0.1",
  });
  const begun = await OidcSignIn.of(config, egressFetch(config))?.begin();
  expect(begun?.url).toContain(provider.issuer);
  expect(proxy.asked).toContain(new URL(provider.issuer).host);
});

test("alerts go through the proxy, mails too", async () => {
  const bodies: string[] = [];
  const hook = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => bodies.push(chunk.toString())).on("end", () => response.end());
  });
  const mails: string[] = [];
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    closeTimeout: 10,
    onData(stream, _, done) {
      stream.on("data", (chunk: Buffer) => mails.push(chunk.toString())).on("end", () => done());
    },
  });
  await once(smtp.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => new Promise((resolve) => smtp.close(() => resolve())));
  const mailPort = (smtp.server.address() as AddressInfo).port;
  const [proxy, port] = [await connectProxy(), await listening(hook)];
  const tested = await testAlerts(
    throughProxy(proxy.port, {
      PAYBELL_ALERT_URL: `http://127.0.0.1:${port}/`,
      PAYBELL_ALERT_ADDRESSES: "127.0.0.1",
      PAYBELL_ALERT_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
      PAYBELL_ALERT_MAIL_URL: `smtp://mail.test:${mailPort}`,
      PAYBELL_ALERT_MAIL_FROM: "paybell@ours.example",
      PAYBELL_ALERT_MAIL_TO: "ada@ours.example",
    }),
  );
  expect(tested).toEqual([
    { target: "webhook", ok: true, problem: "" },
    { target: "mail to ada@ours.example", ok: true, problem: "" },
  ]);
  expect(bodies.join("")).toContain("alert_test");
  expect(mails.join("")).toContain("A test: alerts arrive here");
  expect(proxy.asked.toSorted()).toEqual([`127.0.0.1:${port}`, `mail.test:${mailPort}`].toSorted());
});

test("the check asks the proxy, and names who looks names up", async () => {
  const proxy = await connectProxy({ credentials: "paybell:right" });
  const url = (password: string) => ({ PAYBELL_EGRESS_PROXY: `http://paybell:${password}@127.0.0.1:${proxy.port}` });
  proxy.answers.set("paybell-check.invalid:443", 503);
  const find = async (env: NodeJS.ProcessEnv) => (await egressProxyFindings(throughProxy(proxy.port, env)))[0];
  expect(await find(url("right"))).toMatchObject({ level: "ok", what: "egress proxy" });
  expect(await find(url("wr0ng"))).toMatchObject({ level: "error", detail: `127.0.0.1:${proxy.port} answers 407` });
  expect(await find({ ...url("right"), PAYBELL_EGRESS_PROXY_RESOLVES: "1" })).toMatchObject({
    level: "warning",
    detail: `127.0.0.1:${proxy.port} looks names up: callbackAddresses cannot be checked`,
    remedy: expect.stringContaining("refuse private, loopback and link-local addresses"),
  });
  await proxy.stop();
  expect(await find(url("right"))).toMatchObject({ level: "error", detail: expect.stringContaining("ECONNREFUSED") });
  expect(await egressProxyFindings(readConfig({}))).toEqual([]);
});

test("a proxy that says nothing ends the check", async () => {
  const sockets: Socket[] = [];
  const silent = createTcpServer((socket) => sockets.push(socket.on("error", () => undefined)));
  await once(silent.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const [found] = await egressProxyFindings(throughProxy(port), 200);
  expect(found).toMatchObject({ level: "error", remedy: "Check PAYBELL_EGRESS_PROXY." });
});

test("a proxy's URL that cannot be read is refused without showing it", () => {
  const read = () => readConfig({ PAYBELL_EGRESS_PROXY: "http://paybell:100%@proxy.test:3128" });
  expect(read).toThrow(/PAYBELL_EGRESS_PROXY must be .* percent-encoded, found something else/);
});
