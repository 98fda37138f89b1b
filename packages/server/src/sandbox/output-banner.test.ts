import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { defaultSigning } from "@paybell/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestProblems } from "../commands/check.ts";
import { cardFields, requestFields, type SaleRequest } from "../commands/request.ts";
import { bannerLines } from "./output-banner.ts";

const run = promisify(execFile);

/** The request of the pasted command. */
interface Sent {
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: SaleRequest;
}

describe("the Sale that the banner offers", () => {
  const sent: Sent[] = [];
  let folder = "";
  let server: Server;
  let baseUrl = "";

  beforeAll(async () => {
    // A name that a shell would take apart, were it not quoted.
    folder = await mkdtemp(join(tmpdir(), "it's $HOME "));
    await mkdir(join(folder, ".paybell"));
    await writeFile(join(folder, ".paybell", "sandbox.json"), JSON.stringify({ apiKey: "pb_secret" }));
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as SaleRequest;
      const { authorization, "content-type": contentType } = request.headers;
      sent.push({ url: request.url, authorization, contentType, body });
      response.end("{}");
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    await rm(folder, { recursive: true, force: true });
  });

  async function paste(workingDirectory: string, shellDirectory: string): Promise<Sent> {
    const facts = { baseUrl, receiverUrl: "", workingDirectory, readyAfterMs: 0 };
    const lines = bannerLines(
      { ...facts, credentialsPath: join(folder, ".paybell", "sandbox.json") },
      { colours: true, columns: 56 },
    );
    const from = lines.findIndex((line) => line.startsWith("curl "));
    const command = lines.slice(from, lines.indexOf("", from)).join("\n");
    const path = `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`;
    const { stdout } = await run("sh", ["-c", command], { cwd: shellDirectory, env: { PATH: path } });
    expect(stdout).toBe("{}\n");
    const last = sent.at(-1);
    if (last === undefined) throw new Error("Nothing was sent.");
    return last;
  }

  it("works when it is pasted in the folder, with a new reqId each time", async () => {
    const first = await paste(folder, folder);
    const second = await paste(folder, folder);
    expect(first).toMatchObject({
      url: "/v1/commands",
      authorization: "Bearer pb_secret",
      contentType: "application/json",
    });
    expect(second.body).toEqual({ ...first.body, reqId: expect.not.stringMatching(first.body.reqId) });
  });

  it("works with credentials deeper than this folder, and from anywhere with others", async () => {
    expect((await paste(tmpdir(), tmpdir())).authorization).toBe("Bearer pb_secret");
    expect((await paste(join(folder, "elsewhere"), "/")).authorization).toBe("Bearer pb_secret");
  });

  it("is a command without fault", async () => {
    const { body } = await paste(folder, folder);
    const { command, reqId, ...fields } = body;
    const known = (table: readonly { readonly name: string }[]) => table.map(({ name }) => name);
    const missing = requestFields.SALE.filter((field) => field.required && !(field.name in fields));
    expect([command, missing]).toEqual(["SALE", []]);
    expect(known(requestFields.SALE)).toEqual(expect.arrayContaining(Object.keys(fields)));
    expect(known(cardFields)).toEqual(expect.arrayContaining(Object.keys(fields.card)));
    expect(reqId).toMatch(/^[0-9a-f-]{36}$/);
    const context = { signing: defaultSigning, sandbox: true, registeredDeviceIds: new Set<string>() };
    expect(requestProblems(body, context)).toEqual([]);
  });
});
