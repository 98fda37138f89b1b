import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { type CardIpn, defaultSigning, type NotifiedCommand, type SettlementIpn } from "@paybell/contract";
import type { ReceivedIpn } from "@paybell/partner";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestProblems } from "../commands/requests/check.ts";
import { cardFields, requestFields, type SaleRequest } from "../commands/requests/request.ts";
import type { Transaction } from "../ledger/store.ts";
import {
  bannerLines,
  drainingLines,
  failedAttemptLines,
  failedLines,
  ipnLines,
  refusedLines,
  reversalLines,
  stoppedLines,
} from "./output.ts";
import { columnsOf, outputStyleOf } from "./output-text.ts";

const plain = { colours: false, columns: 80 };
const delivery = {
  notificationId: "019a2b3c-4d5e-7f60-8182-93a4b5c6d7e8",
  command: undefined,
  originalTransactionId: undefined,
  headers: { command: undefined, originalTransactionId: undefined },
  fields: "specification",
  attempt: 1,
  outOfOrder: false,
  keyId: "",
} as const;

const card: CardIpn = {
  aid: "A0000000031010",
  amount: "150000",
  appName: "",
  approveCode: "831000",
  batchNo: "000001",
  billId: "",
  cardHolder: "",
  cardNumber: "411111******1111",
  cardScheme: "VISA",
  currency: "VND",
  deviceId: "",
  expDate: "",
  extraData: "",
  id: "019a2b3c-0000-7f60-8182-93a4b5c6d7e8",
  invoiceNo: "000001",
  isoResponseCode: "00",
  merchantAddress: "12 Nguyễn Huệ, Quận 1, Thành phố Hồ Chí Minh",
  merchantId: "",
  merchantName: "Quán Cà Phê Phố",
  merchantTransId: "order-1",
  mid: "M00000001",
  paymentType: "card",
  refId: "432198765432",
  reqId: "0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a90",
  status: "SUCCESS",
  swipeType: "C",
  tc: "",
  tid: "T0000001",
  traceNo: "000001",
  transDateTime: "20260102030405",
  transaction_type: "SALE",
  signature: "5c98f302ea70e206c00071cbff097f9edd072ae8495dae2b1e2bfb7fcbb0a1b2",
};

const settlement: SettlementIpn = {
  batchNo: "000001",
  callbackUrl: "",
  deviceId: "",
  extraData: "",
  id: "019a2b3c-0000-7f60-8182-93a4b5c6d7e9",
  merchantTransId: "",
  mid: "M00000001",
  quantity: "6",
  reqId: "0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a91",
  saleQuantity: "7",
  saleTotalAmount: "1050000",
  settlementList: Array.from({ length: 6 }, (_, at) => ({ reqId: `req-${at}`, refNo: `43219876543${at}` })),
  signature: "5c98f302ea70e206c00071cbff097f9edd072ae8495dae2b1e2bfb7fcbb0a1b2",
  status: "SUCCESS",
  tid: "T0000001",
  totalAmount: "1200000",
  transaction_time: "20260102030405",
  transaction_type: "SETTLE",
  voidQuantity: "1",
  voidTotalAmount: "150000",
};

const headersOf = (command: NotifiedCommand) => ({ headers: { ...delivery.headers, command } });
const sale: ReceivedIpn = { ...delivery, ...headersOf("SALE"), kind: "card", ipn: card };
const shown = (received: ReceivedIpn, style = plain) =>
  ipnLines({ received, cipher: "aes-256-gcm", afterCommandMs: 12.4 }, style);
const text = (lines: readonly string[]) => lines.join("\n");

describe("an IPN in the terminal", () => {
  it("shows what happened, how it was protected, and every field", () => {
    expect(text(shown(sale))).toBe(
      `
[IPN]  SALE  SUCCESS 00 (Approved)  150000 VND  VISA 411111******1111
  signature ✓ · sealed aes-256-gcm · attempt 1 · 12 ms after the command
  notification 019a2b3c-4d5e-7f60-8182-93a4b5c6d7e8

  id                019a2b3c-0000-7f60-8182-93a4b5c6d7e8
  merchantAddress   12 Nguyễn Huệ, Quận 1, Thành phố Hồ Chí Minh
  reqId             0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a90
  signature         5c98f302ea70e206c00071cbff097f9edd072ae8495dae2b1e2bfb7fcbb…
  aid               A0000000031010        merchantTransId   order-1
  amount            150000                mid               M00000001
  approveCode       831000                paymentType       card
  batchNo           000001                refId             432198765432
  cardNumber        411111******1111      status            SUCCESS
  cardScheme        VISA                  swipeType         C
  currency          VND                   tid               T0000001
  invoiceNo         000001                traceNo           000001
  isoResponseCode   00                    transDateTime     20260102030405
  merchantName      Quán Cà Phê Phố       transaction_type  SALE
  empty  appName, billId, cardHolder, deviceId, expDate, extraData, merchantId,
         tc
`.trimStart(),
    );
  });

  it("says what a code means when the command was declined", () => {
    const ipn = { ...card, status: "ERROR", isoResponseCode: "51" };
    const [title] = shown({ ...sale, ...headersOf("PREAUTH"), ipn }, { ...plain, columns: 120 });
    expect(title).toBe("[IPN]  PREAUTH  ERROR 51 (Not sufficient funds)  150000 VND  VISA 411111******1111");
  });

  it("says so when it came out of order, and nothing of headers that were not there", () => {
    expect(text(shown({ ...sale, outOfOrder: true }))).toContain("out of order");
    const bare = ipnLines(
      {
        received: { ...sale, notificationId: undefined, attempt: undefined, headers: delivery.headers },
        cipher: "jwe",
      },
      plain,
    );
    expect(bare[0]).toContain("[IPN]  SALE");
    expect(bare[1]).toBe("  signature ✓ · sealed jwe");
    expect(bare[2]).toBe("");
  });

  it("shows a settlement's totals and the first of its transactions", () => {
    expect(text(shown({ ...delivery, kind: "settlement", command: "SETTLEMENT", ipn: settlement }))).toBe(
      `
[IPN]  SETTLEMENT  SUCCESS
  sales  7  1050000
  voids  1   150000
  batch  6  1200000
  signature ✓ · sealed aes-256-gcm · attempt 1 · 12 ms after the command
  notification 019a2b3c-4d5e-7f60-8182-93a4b5c6d7e8

  id                019a2b3c-0000-7f60-8182-93a4b5c6d7e9
  reqId             0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a91
  signature         5c98f302ea70e206c00071cbff097f9edd072ae8495dae2b1e2bfb7fcbb…
  batchNo           000001                tid               T0000001
  mid               M00000001             totalAmount       1200000
  quantity          6                     transaction_time  20260102030405
  saleQuantity      7                     transaction_type  SETTLE
  saleTotalAmount   1050000               voidQuantity      1
  status            SUCCESS               voidTotalAmount   150000
  empty  callbackUrl, deviceId, extraData, merchantTransId

  settlementList: 6 transactions
    refNo         reqId
    432198765430  req-0
    432198765431  req-1
    432198765432  req-2
    432198765433  req-3
    432198765434  req-4
    and 1 more
`.trimStart(),
    );
  });

  it("shows an empty settlement", () => {
    const ipn = { ...settlement, settlementList: [] };
    const lines = shown({ ...delivery, kind: "settlement", command: "SETTLEMENT", ipn });
    expect(lines.slice(-3)).toEqual(["", "  settlementList: 0 transactions", ""]);
  });

  it("keeps within the terminal's columns, and cuts no id", () => {
    const long = { ...card, extraData: "x".repeat(4_096), merchantName: "漢字".repeat(100) };
    for (let columns = 56; columns <= 120; columns += 1) {
      const style = { colours: false, columns };
      for (const ipn of [card, long]) {
        const lines = shown({ ...sale, ipn }, style);
        for (const line of lines) expect(columnsOf(line)).toBeLessThanOrEqual(columns);
        for (const id of [card.id, card.reqId, delivery.notificationId]) expect(text(lines)).toContain(id);
      }
    }
  });

  it("lets no value steer the terminal", () => {
    const evil = "\u001b]0;owned\u0007\u001b[2J\r\n\u202e\u0000";
    const ipn = {
      ...card,
      merchantName: evil,
      status: evil,
      amount: evil,
      isoResponseCode: evil,
      transaction_type: evil,
    };
    const lines = shown({ ...sale, ipn, headers: delivery.headers, notificationId: evil });
    const totals = { ...settlement, saleQuantity: evil, settlementList: [{ reqId: evil, refNo: evil }] };
    const more = shown({ ...delivery, kind: "settlement", command: undefined, ipn: totals });
    for (const line of [...lines, ...more]) expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(text(lines)).toContain("\\u{1b}]0;owned");
  });

  it("has the same text with colours as without", () => {
    const coloured = shown(sale, { colours: true, columns: 80 });
    const bare = coloured.map(stripVTControlCharacters);
    expect(coloured[0]).toContain("\u001b[30m\u001b[42m IPN \u001b[49m\u001b[39m");
    expect(bare.map((line) => line.replace(/^ IPN /, "[IPN]"))).toEqual(shown(sale));
  });
});

describe("a failure", () => {
  it("shows why an IPN was refused and what to style at", () => {
    const hint = "It opened, but its signature is not that of the signed string: compare signingKey with yours.";
    expect(text(refusedLines({ reason: "signature", hint, path: "/ipn" }, plain))).toBe(
      `
[REFUSED]  signature  /ipn
  It opened, but its signature is not that of the signed string: compare
  signingKey with yours.
`.trimStart(),
    );
  });

  it("shows a delivery failed on purpose", () => {
    const failed = { status: 503, notificationId: "n-1\u001b", attempt: "2", path: "/ipn/flaky" } as const;
    expect(text(failedLines(failed, plain))).toBe(
      `
[FAILED]  503 on purpose  /ipn/flaky
  notification n-1\\u{1b} · attempt 2
`.trimStart(),
    );
  });

  it("shows a failed attempt and when the next one is, or that it was the last", () => {
    const failed = {
      notificationId: "n-1",
      attemptNo: 2,
      url: "https://127.0.0.1:7421/ipn/down",
      httpStatus: 503,
      reason: "server_error",
      nextAfterMs: 31_000,
    };
    const last = { ...failed, attemptNo: 14, httpStatus: null, reason: "timeout", nextAfterMs: null };
    expect(text([...failedAttemptLines(failed, plain), ...failedAttemptLines(last, plain)])).toBe(
      `
[FAILED]  503 server_error  again in 31 s
  https://127.0.0.1:7421/ipn/down · notification n-1 · attempt 2

[PARKED]  timeout  kept, and replayable
  https://127.0.0.1:7421/ipn/down · notification n-1 · attempt 14
`.trimStart(),
    );
  });
});

describe("the start and the stop", () => {
  it("shows where everything is, a Sale to paste, and how to stop", () => {
    const facts = {
      baseUrl: "http://localhost:7420",
      receiverUrl: "https://127.0.0.1:7421/ipn",
      credentialsPath: "/home/me/paybell/.paybell/sandbox.json",
      workingDirectory: "/home/me/paybell",
      readyAfterMs: 1_432,
    };
    expect(text(bannerLines(facts, plain))).toBe(`
  Paybell sandbox  ready in 1.4 s

  Service      http://localhost:7420
  Console      http://localhost:7420/console
  Docs         http://localhost:7420/docs
  Receiver     https://127.0.0.1:7421/ipn  the sandbox partner: its IPNs go here
  Credentials  .paybell/sandbox.json       its keys, and the operator's token

  To make a Sale, paste this into another terminal in this folder:

curl -sS http://localhost:7420/v1/commands -w '\\n' \\
  --oauth2-bearer "$(node -p 'require("./.paybell/sandbox.json").apiKey')" \\
  -H 'Content-Type: application/json' \\
  -d '{"command": "SALE", "reqId": "'$(node -p 'crypto.randomUUID()')'",
       "amount": "150000", "currency": "VND", "merchantTransId": "order-1",
       "tid": "T0000001", "mid": "M00000001",
       "card": {"token": "tok_approve", "number": "411111******1111",
                "swipeType": "C", "aid": "A0000000031010"}}'

  Its IPN appears here. Ctrl-C stops.
`);
  });

  it("says what it waits for at Ctrl-C, and what is left", () => {
    expect(text(drainingLines({ inFlight: 3, atMostMs: 15_000 }, plain))).toBe(
      "\n  3 in flight, waiting at most 15 s; press Ctrl-C again to stop at once",
    );
    expect(text(drainingLines({ inFlight: 0, atMostMs: 15_000 }, plain))).toBe("\n  Stopping.");
    expect(stoppedLines({ pending: 0 }, plain)).toEqual(["  Stopped. No notification is waiting."]);
    expect(stoppedLines({ pending: 1 }, plain)).toEqual(["  Stopped. 1 notification kept for the next start."]);
    expect(stoppedLines({ pending: 12_345 }, plain)).toEqual([
      "  Stopped. 12,345 notifications kept for the next start.",
    ]);
  });
});

describe("the style", () => {
  it("has colours at a terminal only, and none where NO_COLOR or a dumb terminal asks for none", () => {
    const terminal = { isTTY: true, columns: 100 };
    expect(outputStyleOf(terminal, {})).toEqual({ colours: true, columns: 100 });
    expect(outputStyleOf(terminal, { NO_COLOR: "" })).toEqual({ colours: true, columns: 100 });
    expect(outputStyleOf(terminal, { NO_COLOR: "1" }).colours).toBe(false);
    expect(outputStyleOf(terminal, { TERM: "dumb" }).colours).toBe(false);
    expect(outputStyleOf({}, {})).toEqual({ colours: false, columns: 80 });
  });

  it("is neither too narrow for an id nor too wide to read", () => {
    expect(outputStyleOf({ isTTY: true, columns: 20 }, {}).columns).toBe(56);
    expect(outputStyleOf({ isTTY: true, columns: 300 }, {}).columns).toBe(120);
  });
});

describe("a Reversal in the terminal", () => {
  const reversed = {
    id: "019a2b3c-0000-7f60-8182-93a4b5c6d7e8",
    command: "SALE",
    facts: { kind: "card", command: "SALE", fields: { ...card } },
  } as unknown as Transaction;

  it("says of what, how it was answered, and what that leaves", () => {
    expect(text(reversalLines(reversed, { state: "DONE", responseCode: "00" }, plain))).toBe(
      `
[REVERSED]  SALE  150000 VND  answered 00 (Approved)
  Nothing is charged: it is in no total and no list.
  transaction 019a2b3c-0000-7f60-8182-93a4b5c6d7e8 · traceNo 000001
  reqId 0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a90
`.trimStart(),
    );
    const [, unknown] = reversalLines(reversed, { state: "DONE", responseCode: "25" }, plain);
    expect(unknown).toBe("  The acquirer never saw it: nothing is charged.");
  });

  it("says that it is parked where the acquirer refused it", () => {
    const [title, then] = reversalLines(reversed, { state: "PARKED", responseCode: "12" }, plain);
    expect(title).toBe("[PARKED]  Reversal of SALE  150000 VND  answered 12 (Invalid transaction)");
    expect(then).toMatch(/stays locked/);
  });
});

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
