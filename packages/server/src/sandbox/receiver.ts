import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { headerNames } from "@paybell/contract";
import {
  IpnRefused,
  type ReceivedIpn,
  type Receiver,
  type ReceiverOptions,
  type RefusedReason,
  receiver,
} from "@paybell/partner";
import { nodeHandler } from "@paybell/partner/node";
import { type ArrivedDelivery, type ReceiverMode, SandboxReceiverControl } from "../http/receiver-control.ts";
import { loopbackCertificate } from "./credentials.ts";

export interface ReceiverStart {
  /** The sandbox's home folder, which has the certificate. */
  readonly home: string;
  readonly keys: ReceiverOptions;
  /** Default: any free one. Pass the port of the last start, because pending notifications have that URL. */
  readonly port?: number;
  /** Determines the response at /ipn, and records deliveries. Default: everything authentic is accepted. */
  readonly desk?: SandboxReceiverControl;
  /** Called with an authentic IPN before it is answered 204; if it throws, the response is 500. */
  readonly onIpn: (received: ReceivedIpn, path: string) => void;
  readonly onRefused: (refused: RefusedDelivery) => void;
  /** Called for a delivery to /ipn/flaky or /ipn/down that was answered 503. */
  readonly onFailed?: (failed: FailedDelivery) => void;
}

export interface RefusedDelivery {
  /** `error`: a fault of the receiver, not of the sender. */
  readonly reason: RefusedReason | "error";
  readonly hint: string;
  readonly path: string;
}

export interface FailedDelivery {
  readonly status: 503;
  readonly notificationId: string;
  readonly attempt: string;
  readonly path: string;
}

export interface SandboxReceiver {
  /** Its URL for IPNs: https://127.0.0.1:<port>/ipn. */
  readonly url: string;
  /** The certificate that the service must trust to call it, in PEM. */
  readonly ca: string;
  /** Changes the keys from the next delivery on: after a rotation, or with another cipher. */
  changeKeys(keys: ReceiverOptions): void;
  /** Closes open connections: stop the service first. */
  close(): Promise<void>;
}

/** Failures that /ipn/flaky answers before it accepts a notification. */
const flakyFailures = 2;
/** Notifications that /ipn/flaky counts; the oldest is forgotten first, and then fails again. */
const flakyCountsMax = 1_000;

/**
 * The sandbox partner's HTTPS server on 127.0.0.1: /ipn accepts everything authentic, /ipn/flaky only after two
 * failures per notification, /ipn/down always answers 503.
 */
export async function startReceiver(start: ReceiverStart): Promise<SandboxReceiver> {
  let current = receiver(start.keys);
  const desk = start.desk ?? new SandboxReceiverControl();
  const failures = new Map<string, number>();

  function accept(request: IncomingMessage, response: ServerResponse, path: string): void {
    let [body, ipn]: [string, ArrivedDelivery["ipn"]] = ["", null];
    // Keys may change while the server runs; each delivery is opened with the current ones.
    const partner: Receiver = {
      open: (rawBody, headers) => {
        body = rawBody.toString();
        const received = current.open(rawBody, headers);
        ipn = { ...received.ipn };
        return received;
      },
    };
    response.once("finish", () => desk.add({ ...namesOf(request), status: response.statusCode, body, ipn }));
    nodeHandler(partner, (received) => start.onIpn(received, path), {
      log: (message, error) => start.onRefused({ ...describe(message, error), path }),
    })(request, response);
  }

  function fail(request: IncomingMessage, response: ServerResponse, path: string): void {
    const { notificationId, attempt } = namesOf(request);
    // Answered once the body was received completely, as a service behind a server would; a half-read body would cost
    // the sender its connection.
    request.on("end", () => {
      answer(response, 503, "down_on_purpose");
      start.onFailed?.({ status: 503, notificationId, attempt, path });
    });
    request.resume();
  }

  /** The sandbox's page requested it: the receiver fails on purpose. */
  async function misbehave(request: IncomingMessage, response: ServerResponse, mode: ReceiverMode): Promise<void> {
    const body = await text(request);
    const status = mode === "fail" ? 503 : mode === "reject" ? 401 : null;
    desk.add({ ...namesOf(request), status, body, ipn: null });
    if (mode === "refuse") request.socket.destroy();
    if (status !== null) answer(response, status, status === 401 ? "wrong_signature_on_purpose" : "down_on_purpose");
  }

  function ipn(request: IncomingMessage, response: ServerResponse, path: string): void {
    if (desk.mode === "accept") accept(request, response, path);
    // Nobody waits for an aborted request.
    else misbehave(request, response, desk.mode).catch(() => undefined);
  }

  function flaky(request: IncomingMessage, response: ServerResponse, path: string): void {
    const serve = failsOnceMore(String(request.headers[headerNames.id] ?? "")) ? fail : accept;
    serve(request, response, path);
  }

  function failsOnceMore(notificationId: string): boolean {
    const failed = failures.get(notificationId) ?? 0;
    failures.delete(notificationId);
    if (failed >= flakyFailures) return false;
    failures.set(notificationId, failed + 1);
    const [oldest] = failures.keys();
    if (failures.size > flakyCountsMax && oldest !== undefined) failures.delete(oldest);
    return true;
  }

  const paths = new Map([
    ["/ipn", ipn],
    ["/ipn/flaky", flaky],
    ["/ipn/down", fail],
  ]);

  const { key, cert, ca } = await loopbackCertificate(start.home);
  const server = createServer({ key, cert }, (request, response) => {
    const [path = ""] = (request.url ?? "").split("?", 1);
    const serve = paths.get(path);
    if (serve !== undefined) {
      serve(request, response, path);
      return;
    }
    request.resume();
    answer(response, 404, "not_found");
  });
  server.listen(start.port ?? 0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`,
    ca,
    changeKeys(keys) {
      current = receiver(keys);
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function namesOf({ headers }: IncomingMessage): Pick<ArrivedDelivery, "notificationId" | "attempt"> {
  return { notificationId: String(headers[headerNames.id] ?? ""), attempt: String(headers[headerNames.attempt] ?? "") };
}

function describe(message: string, error: unknown): Pick<RefusedDelivery, "reason" | "hint"> {
  if (error instanceof IpnRefused) return { reason: error.reason, hint: error.hint };
  return { reason: "error", hint: error instanceof Error ? `${message} ${error.message}` : message };
}

function answer(response: ServerResponse, status: 401 | 404 | 503, error: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error }));
}
