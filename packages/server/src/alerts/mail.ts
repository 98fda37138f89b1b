import type { Socket } from "node:net";
import { createTransport, type Transporter } from "nodemailer";
import { type AlertChannel, linesOf, problemOf, runbookOf, titleOf } from "./message.ts";

export interface MailServer {
  /** smtp://user:password@host:587, or smtps://… */
  readonly url: string;
  readonly from: string;
  /** Timeout of each step of the connection. */
  readonly timeoutMs: number;
  /** Connects through a proxy. Absent: directly. */
  readonly connect?: (hostname: string, port: number) => Promise<{ readonly socket: Socket }>;
}

export interface MailOptions extends MailServer {
  readonly to: string;
  /** The operators' address of the service; null: unknown. */
  readonly consoleUrl: string | null;
}

export interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  /** The same for each try, so that duplicate mails can be recognized. */
  readonly messageId: string;
}

/** Sends mail by SMTP: encrypted if the server offers it, and always if a password is sent. */
export class Mailer {
  readonly #from: string;
  readonly #transport: Transporter;

  constructor({ from, ...server }: MailServer) {
    this.#from = from;
    this.#transport = transportTo(server);
  }

  /** Never rejects. @returns why it was not accepted; undefined if it was */
  async send({ to, ...mail }: Mail, signal: AbortSignal): Promise<string | undefined> {
    const brokenOff = "it was broken off";
    // No event comes any more.
    if (signal.aborted) return brokenOff;
    const stopped = new Promise<string>((resolve) => {
      signal.addEventListener("abort", () => resolve(brokenOff), { once: true });
    });
    const sent = this.#transport.sendMail({ from: this.#from, to: [...to], ...mail }).then(() => undefined, problemOf);
    return await Promise.race([sent, stopped]);
  }

  close(): void {
    this.#transport.close();
  }
}

/** One address, as a channel: a server that accepts a mail for some addresses does not fail it for the others. */
export function mailTarget({ to, consoleUrl, ...server }: MailOptions): AlertChannel {
  const mailer = new Mailer(server);
  return {
    name: `mail to ${to}`,
    send: (group, signal) =>
      mailer.send(
        {
          to: [to],
          subject: `[Paybell] ${titleOf(group)}`,
          text: [...linesOf(group), "", `What to do: ${runbookOf(group, consoleUrl)}`, ""].join("\n"),
          messageId: `<${group.first.id}@paybell>`,
        },
        signal,
      ),
    async close() {
      mailer.close();
    },
  };
}

function transportTo({ url, timeoutMs, connect }: Omit<MailServer, "from">): Transporter {
  const server = new URL(url);
  const host = server.hostname.replace(/^\[|\]$/g, "");
  const port = server.port === "" ? (server.protocol === "smtps:" ? 465 : 587) : Number(server.port);
  return createTransport({
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
}
