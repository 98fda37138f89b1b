import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { newId } from "../ids.ts";
import { loopbackCertificate } from "../sandbox/credentials.ts";
import { mailTarget } from "./mail.ts";
import { groupOf, linesOf } from "./message.ts";

interface Mail {
  readonly to: readonly string[];
  readonly from: string;
  readonly text: string;
}

async function mailServer(options: SMTPServerOptions = {}): Promise<{ url: string; mails: Mail[] }> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    closeTimeout: 10,
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const from = envelope.mailFrom === false ? "" : envelope.mailFrom.address;
        mails.push({ from, to: envelope.rcptTo.map(({ address }) => address), text: Buffer.concat(chunks).toString() });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => undefined);
  const listening = server.listen(0, "127.0.0.1");
  await once(listening, "listening");
  onTestFinished(() => new Promise((resolve) => server.close(resolve)));
  return { url: `127.0.0.1:${(listening.address() as AddressInfo).port}`, mails };
}

const group = groupOf(
  ["tls", "dns"].map((reason, at) => ({
    id: newId<"event">(),
    groupId: newId(),
    kind: "parked" as const,
    partnerId: newId<"partner">(),
    subjectId: newId(),
    detail: { reason },
    atMs: 1_800_000_000_000 + at,
    tries: 1,
    acceptedBy: [],
  })),
);

test("an alert of a refused report does not have the report", () => {
  const detail = { problems: ["amount"], item: { merchantTransId: "order-17" } };
  const { first } = groupOf([{ ...group.first, kind: "report_refused", detail }]);
  expect(first.detail).toEqual({ problems: ["amount"], item: "(an operator sees it by the event's id)" });
});

test("a large group is told by its ten oldest, and how many more there are", () => {
  const alerts = Array.from({ length: 150 }, (_, nth) => ({
    ...group.first,
    atMs: 1_800_000_000_000 - nth,
    detail: { nth },
  }));
  const many = groupOf(alerts);
  expect([many.count, many.others.length, many.lastAtMs]).toEqual([150, 100, 1_800_000_000_000]);
  const lines = linesOf(many);
  expect(lines).toHaveLength(11);
  expect(lines[0]).toContain('{"nth":149}');
  expect(lines.at(-1)).toBe("… and 140 more: GET /operator/v1/events?state=parked");
});

test.each([
  ["smtp://mail.example", "mail.example", 587],
  ["smtps://mail.example", "mail.example", 465],
  ["smtp://[::1]:25", "::1", 25],
])("%s is connected to %s at port %i", async (url, host, port) => {
  const connected: unknown[] = [];
  const connect = async (...to: unknown[]) => {
    connected.push(...to);
    throw new Error("not here");
  };
  const target = mailTarget({
    url,
    from: "a@b.example",
    to: "c@d.example",
    consoleUrl: null,
    timeoutMs: 600_000,
    connect,
  });
  onTestFinished(() => target.close());
  expect(await target.send(group, AbortSignal.timeout(600_000))).toBe("not here");
  expect(connected).toEqual([host, port]);
});

function send(url: string, signal = AbortSignal.timeout(600_000)) {
  const target = mailTarget({
    url,
    from: "paybell@shop.example",
    to: "ops@a.example",
    consoleUrl: "https://ops.example/",
    timeoutMs: 600_000,
  });
  onTestFinished(() => target.close());
  return target.send(group, signal);
}

test("is sent with the count in its subject and a line for each alert", async () => {
  const { url, mails } = await mailServer();
  expect(await send(`smtp://${url}`)).toBeUndefined();
  expect(mails).toMatchObject([{ from: "paybell@shop.example", to: ["ops@a.example"] }]);
  // Reassembled as a mail program does: folded headers, and lines broken in transit.
  const text = (mails[0]?.text ?? "").replaceAll(/\r\n /g, " ").replaceAll("=\r\n", "");
  expect(text).toMatch(/^Subject: \[Paybell\] Notifications were parked: their schedule is over \(2 times\)\r$/m);
  expect(text).toContain('{"reason":"tls"}');
  expect(text).toContain('{"reason":"dns"}');
  expect(text).toContain("What to do: https://ops.example/docs/operator/runbook#parked");
  expect(text).toContain(`<${group.first.id}@paybell>`);
});

test("is reported as not accepted if the server refuses the sender, or cannot be reached", async () => {
  const refusing = await mailServer({ onMailFrom: (_, __, done) => done(new Error("not from you")) });
  expect(await send(`smtp://${refusing.url}`)).toContain("not from you");
  expect(await send("smtp://127.0.0.1:9")).toContain("ECONNREFUSED");
});

test("sends no password without TLS", async () => {
  const passwords: unknown[] = [];
  const { url, mails } = await mailServer({
    allowInsecureAuth: true,
    onAuth: ({ password }, _, done) => {
      passwords.push(password);
      done(null, { user: "paybell" });
    },
  });
  expect(await send(`smtp://paybell:secret@${url}`)).toMatch(/TLS/i);
  expect([passwords, mails]).toEqual([[], []]);
});

test("signs in by TLS with the user and the password that its URL has, decoded", async () => {
  const { key, cert } = await loopbackCertificate(temporaryFolder());
  const known = getCACertificates("default");
  setDefaultCACertificates([...known, cert]);
  onTestFinished(() => setDefaultCACertificates(known));
  const signedIn: unknown[] = [];
  const { url, mails } = await mailServer({
    ...{ secure: true, key, cert, authOptional: false },
    onAuth: ({ username, password }, _, done) => {
      signedIn.push([username, password]);
      done(null, { user: "paybell" });
    },
  });
  expect(await send(`smtps://ops%40shop.example:p%40ss%3A1@${url}`)).toBeUndefined();
  expect([signedIn, mails.length]).toEqual([[["ops@shop.example", "p@ss:1"]], 1]);
});

test("is aborted when the service stops", async () => {
  const { url } = await mailServer({ onData: () => undefined });
  expect(await send(`smtp://${url}`, AbortSignal.timeout(200))).toBe("it was broken off");
  expect(await send(`smtp://${url}`, AbortSignal.abort())).toBe("it was broken off");
});
