import type { Socket } from "node:net";
import { createTransport } from "nodemailer";
import { type AlertChannel, problemOf } from "./target.ts";
import { linesOf, runbookOf, titleOf } from "./text.ts";

export interface MailOptions {
  /** smtp://user:password@host:587, or smtps://… */
  readonly url: string;
  readonly from: string;
  readonly to: readonly string[];
  /** The operators' address of the service; null: unknown. */
  readonly consoleUrl: string | null;
  /** Timeout of each step of the connection. */
  readonly timeoutMs: number;
  /** Connects through a proxy. Absent: directly. */
  readonly connect?: (hostname: string, port: number) => Promise<{ readonly socket: Socket }>;
}

/** Sends mail by SMTP: encrypted if the server offers it, and always if a password is sent. */
export function mailTarget({ url, from, to, consoleUrl, timeoutMs, connect }: MailOptions): AlertChannel {
  const server = new URL(url);
  const host = server.hostname.replace(/^\[|\]$/g, "");
  const port = server.port === "" ? (server.protocol === "smtps:" ? 465 : 587) : Number(server.port);
  const transport = createTransport({
    ...{ host, port },
    ...(connect && {
      getSocket: (_: object, callback: (error: Error | null, socket: { connection: Socket } | false) => void) => {
        connect(host, port).then(
          ({ socket }) => callback(null, { connection: socket }),
          (failure: Error) => callback(failure, false),
        );
      },
    }),
    secure: server.protocol === "smtps:",
    requireTLS: server.protocol === "smtp:" && server.username !== "",
    ...(server.username !== "" && {
      auth: { user: decodeURIComponent(server.username), pass: decodeURIComponent(server.password) },
    }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  });
  return {
    name: "mail",
    async send(group, signal) {
      const message = {
        from,
        to: [...to],
        subject: `[Paybell] ${titleOf(group)}`,
        text: [...linesOf(group), "", `What to do: ${runbookOf(group, consoleUrl)}`, ""].join("\n"),
        // The same for each try, so that duplicate mails can be recognized.
        messageId: `<${group.first.id}@paybell>`,
      };
      const stopped = new Promise<string>((resolve) => {
        signal.addEventListener("abort", () => resolve("it was broken off"), { once: true });
      });
      const sent = transport.sendMail(message).then(() => undefined, problemOf);
      return await Promise.race([sent, stopped]);
    },
    async close() {
      transport.close();
    },
  };
}
