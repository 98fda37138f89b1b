import { once } from "node:events";
import { constants } from "node:fs";
import { access, open } from "node:fs/promises";
import { connect as connectTcp, type Socket } from "node:net";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { connect as connectTls } from "node:tls";
import { fileURLToPath } from "node:url";
import { within } from "../clock.ts";
import { callingContext } from "../delivery/transport/tls.ts";
import { asciiJson, syslogLine } from "../operators/audit.ts";
import type { FeedEntry, FeedTarget } from "./stream.ts";

/** @param url file:///…, syslog://host:port or syslogs://host:port */
export function feedTarget(url: string): FeedTarget {
  return url.startsWith("file:") ? fileTarget(fileURLToPath(url)) : syslogTarget(new URL(url));
}

const lineFeed = 0x0a;

/** JSON lines, appended. The file is opened for each page, so that one that was moved away is made anew. */
function fileTarget(path: string): FeedTarget {
  return {
    name: path,
    receivedAfterMs: 0,
    // Made by another user, such as root, it could not be written by the service.
    async open() {
      const appended = open(path, constants.O_WRONLY | constants.O_APPEND);
      await appended.then(
        (file) => file.close(),
        (error: NodeJS.ErrnoException) => {
          if (error.code !== "ENOENT") throw error;
          return access(dirname(path), constants.W_OK);
        },
      );
    },
    async write(entries) {
      if (entries.length === 0) return;
      const file = await open(path, "a+", 0o600);
      try {
        const { size } = await file.stat();
        const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
        // The end of a disk or a crash has cut a line off.
        const start = bytesRead > 0 && buffer[0] !== lineFeed ? "\n" : "";
        await file.appendFile(start + entries.map(({ content }) => `${asciiJson(content)}\n`).join(""));
        await file.datasync();
      } finally {
        await file.close();
      }
    },
    end: async () => true,
  };
}

const tcpPort = 514;
const tlsPort = 6514;
const timeoutMs = 10_000;
/** Linux reports a connection without answers after 924 s (tcp_retries2). Nothing says earlier what was received. */
const receivedAfterMs = 960_000;

/** RFC 5424 over TCP, or TLS (RFC 5425): each message with its length before it. */
function syslogTarget({ protocol, hostname: host, port }: URL): FeedTarget {
  const isTls = protocol === "syslogs:";
  const standardPort = isTls ? tlsPort : tcpPort;
  const address = { host: host.replace(/^\[|\]$/g, ""), port: port === "" ? standardPort : Number(port) };
  let socket: Socket | undefined;
  let failure: Error | undefined;
  const connected = async () => {
    if (socket !== undefined) return socket;
    socket = isTls
      ? connectTls({ ...address, servername: address.host, secureContext: callingContext() })
      : connectTcp(address);
    socket.on("error", (error) => {
      failure ??= error;
    });
    socket.on("close", () => {
      failure ??= new Error("the collector ended the connection");
    });
    // Nothing that it sends is part of the protocol.
    socket.resume();
    await once(socket, isTls ? "secureConnect" : "connect", { signal: AbortSignal.timeout(timeoutMs) });
    return socket;
  };
  return {
    name: `${protocol}//${host}:${address.port}`,
    receivedAfterMs,
    async open() {
      await connected();
    },
    async write(entries) {
      const messages = entries.map(syslogMessage).map((text) => `${text.length} ${text}`);
      if (messages.length > 0) await written(await connected(), messages.join(""));
      if (failure !== undefined) throw failure;
    },
    async end() {
      if (socket === undefined) return true;
      const ending = socket;
      if (failure !== undefined || ending.destroyed) {
        ending.destroy();
        return false;
      }
      // It closes its side after it has read the end of ours.
      ending.end();
      const closed = once(ending, "close").catch(() => undefined);
      await within(timeoutMs, closed);
      const isReceived = ending.readableEnded && ending.writableFinished;
      ending.destroy();
      return isReceived;
    },
  };
}

function written(socket: Socket, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new Error(`the collector reads nothing for ${timeoutMs / 1_000} s`)),
    );
    socket.write(text, (error) => {
      socket.setTimeout(0);
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Facilities of RFC 5424: log audit, and local use 0. */
const facilities = { audit: 13, event: 16 };
const severities = { warning: 4, notice: 5 };

function syslogMessage({ at, name, isAudit, isAlert, content }: FeedEntry): string {
  const facility = isAudit ? facilities.audit : facilities.event;
  const priority = facility * 8 + (isAlert ? severities.warning : severities.notice);
  return syslogLine({ at, name, priority, host: hostname() }, asciiJson(content));
}
