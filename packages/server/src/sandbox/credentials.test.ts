import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmod, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, request } from "node:https";
import { type AddressInfo, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { loopbackCertificate } from "./credentials.ts";

let home = "";
beforeEach(async () => {
  home = temporaryFolder();
});

const dayMs = 86_400_000;
const at = (nowMs: number) => ({ nowMs: () => nowMs, monotonicMs: () => 0 });
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === "::1"));

describe("the sandbox receiver's certificate", () => {
  it("is accepted by a client that trusts it, under every loopback name, and by no other client", async () => {
    const { key, cert, ca } = await loopbackCertificate(home);
    const server = createServer({ key, cert }, (_request, response) => response.end("hello"));
    await once(server.listen(0, hasIpv6 ? "::" : "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    try {
      for (const host of ["127.0.0.1", "localhost", ...(hasIpv6 ? ["::1"] : [])]) {
        const asked = request({ host, port, ca, agent: false, family: isIPv6(host) ? 6 : 4 }).end();
        const [response] = await once(asked, "response");
        expect(response.statusCode).toBe(200);
        response.resume();
        await once(response, "end");
      }
      const stranger = request({ host: "127.0.0.1", port, agent: false }).end();
      await expect(once(stranger, "response")).rejects.toThrow(/self.signed/);
    } finally {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    }
  });

  it("can vouch for no other certificate", async () => {
    const { cert } = await loopbackCertificate(home);
    expect(new X509Certificate(cert).ca).toBe(false);
  });

  it("is kept between starts, readable by its owner alone", async () => {
    const first = await loopbackCertificate(home);
    expect((await stat(join(home, "receiver.pem"))).mode & 0o777).toBe(0o600);
    await chmod(join(home, "receiver.pem"), 0o644);
    expect(await loopbackCertificate(home)).toEqual(first);
    expect((await stat(join(home, "receiver.pem"))).mode & 0o777).toBe(0o600);
    expect(await readdir(home)).toEqual(["receiver.pem"]);
  });

  it("is made anew when less than 30 days are left, or the clock stands before it", async () => {
    const nowMs = Date.now();
    const first = await loopbackCertificate(home, at(nowMs));
    expect(await loopbackCertificate(home, at(nowMs + 334 * dayMs))).toEqual(first);
    const second = await loopbackCertificate(home, at(nowMs + 336 * dayMs));
    expect(second.cert).not.toBe(first.cert);
    expect((await loopbackCertificate(home, at(nowMs))).cert).not.toBe(second.cert);
  });

  it("is made anew when the file is no certificate, is cut, or holds another's key", async () => {
    const path = join(home, "receiver.pem");
    const first = await loopbackCertificate(home);
    const text = await readFile(path, "utf8");
    await rm(path);
    const other = await loopbackCertificate(home);
    for (const broken of ["", "nonsense", text.slice(0, -200), other.key + first.cert]) {
      await writeFile(path, broken);
      const made = await loopbackCertificate(home);
      expect(made.cert).not.toBe(first.cert);
      expect(new X509Certificate(made.cert).subject).toContain("Paybell");
    }
  });

  it("makes the home folder, and says why when it cannot", async () => {
    await loopbackCertificate(join(home, "new", "folder"));
    await writeFile(join(home, "file"), "");
    await expect(loopbackCertificate(join(home, "file"))).rejects.toThrow(/EEXIST|ENOTDIR/);
  });
});
