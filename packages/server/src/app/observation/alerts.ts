import { randomUUID } from "node:crypto";
import { webhookKey } from "@paybell/contract";
import type { MailServer } from "../../alerts/mail.ts";
import { type AlertChannel, groupOf } from "../../alerts/message.ts";
import { type Clock, systemClock } from "../../clock.ts";
import type { Config } from "../../config/config.ts";
import { AddressGuard, createResolver } from "../../delivery/transport/addresses.ts";
import { type ConnectRules, connect } from "../../delivery/transport/connect.ts";
import type { EgressProxy } from "../../delivery/transport/egress-proxy.ts";
import { callingContext } from "../../delivery/transport/tls.ts";
import { newId } from "../../ids.ts";
import { AddressBlocks } from "../../partners/settings/address-blocks.ts";
import { type EgressConfig, egressProxyOf } from "../egress.ts";

type AlertConfig = Pick<
  Config,
  | "alertUrl"
  | "alertSecret"
  | "alertAddresses"
  | "alertSlackUrl"
  | "alertMailUrl"
  | "alertMailFrom"
  | "alertMailTo"
  | "consoleUrl"
>;

const timeoutMs = 10_000;

export function isAlerting({ alertUrl, alertSlackUrl, alertMailUrl }: AlertConfig): boolean {
  return alertUrl !== null || alertSlackUrl !== null || alertMailUrl !== null;
}

/** Opens the alert channels. The modules are loaded only when needed: they take 13 MB of memory. */
export async function openAlertTargets(
  config: AlertConfig,
  clock: Pick<Clock, "nowMs">,
  proxy: EgressProxy | undefined,
): Promise<readonly AlertChannel[]> {
  const { alertUrl, alertSecret, alertSlackUrl, alertMailTo, consoleUrl } = config;
  const targets: AlertChannel[] = [];
  if (alertUrl !== null && alertSecret !== null) {
    const { webhookTarget } = await import("../../alerts/http.ts");
    targets.push(webhookTarget(alertUrl, webhookKey(alertSecret), clock, rulesOf(config, proxy), consoleUrl));
  }
  if (alertSlackUrl !== null) {
    const { slackTarget } = await import("../../alerts/http.ts");
    targets.push(slackTarget(alertSlackUrl, rulesOf(config, proxy), consoleUrl));
  }
  const mailServer = mailServerOf(config, proxy);
  if (mailServer !== undefined) {
    const { mailTarget } = await import("../../alerts/mail.ts");
    targets.push(...alertMailTo.map((to) => mailTarget({ ...mailServer, to, consoleUrl })));
  }
  return targets;
}

/** The mail server of the settings; undefined: none is set. */
export function mailServerOf(config: AlertConfig, proxy: EgressProxy | undefined): MailServer | undefined {
  const { alertMailUrl: url, alertMailFrom: from } = config;
  if (url === null || from === null) return undefined;
  const { guard: _, ...rules } = rulesOf(config, proxy);
  const through = (hostname: string, port: number) =>
    connect({ hostname, port, secure: false }, rules, { session: undefined }).connected;
  const isDirect = proxy?.isFor(new URL(url).hostname) !== true;
  return { url, from, timeoutMs, ...(!isDirect && { connect: through }) };
}

const loopback = new AddressBlocks(["127.0.0.0/8", "::1/128"]);
const connectTimeoutMs = 5_000;

/** A private address, or a loopback address, is only called if the setting lists a block inside that range. */
function rulesOf({ alertAddresses }: AlertConfig, proxy: EgressProxy | undefined): ConnectRules {
  const loopbackAllowed = alertAddresses.some((block) => loopback.contains(block.replace(/\/.*/, "")));
  return {
    guard: new AddressGuard(alertAddresses, { loopbackAllowed }),
    resolve: createResolver(),
    proxy,
    secureContext: callingContext(),
    connectTimeoutMs,
  };
}

export interface AlertTested {
  readonly target: string;
  readonly ok: boolean;
  /** Empty if it was accepted. */
  readonly problem: string;
}

/** `paybell alerts test`: sends one alert to each channel, without recording it. */
export async function testAlerts(config: AlertConfig & EgressConfig): Promise<readonly AlertTested[]> {
  const targets = await openAlertTargets(config, systemClock, egressProxyOf(config));
  const detail = { detail: "Sent by paybell alerts test: nothing is wrong." };
  const about = { kind: "alert_test", partnerId: null, subjectId: null, detail, atMs: Date.now(), tries: 1 } as const;
  const group = groupOf([{ ...about, id: newId<"event">(), groupId: randomUUID(), acceptedBy: [] }]);
  const tested = await Promise.all(
    targets.map(async (target) => {
      const problem = await target.send(group, AbortSignal.timeout(timeoutMs));
      return { target: target.name, ok: problem === undefined, problem: problem ?? "" };
    }),
  );
  for (const target of targets) await target.close();
  return tested;
}
