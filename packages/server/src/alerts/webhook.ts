import type { KeyObject } from "node:crypto";
import { headerNames, webhookSignature } from "@paybell/contract";
import type { Clock } from "../clock.ts";
import type { ConnectRules } from "../delivery/transport/connect.ts";
import { HttpTarget } from "./http.ts";
import type { Alert } from "./store.ts";
import type { AlertChannel } from "./target.ts";
import { runbookOf } from "./text.ts";

/** A URL of the operator, signed like the headers of an IPN: Standard Webhooks v1. */
export function webhookTarget(
  url: string,
  key: KeyObject,
  clock: Pick<Clock, "nowMs">,
  rules: ConnectRules,
  consoleUrl: string | null = null,
): AlertChannel {
  const http = new HttpTarget(url, rules);
  return {
    name: "webhook",
    send(group, signal) {
      const { first, count, lastAtMs, others } = group;
      const { id, kind } = first;
      const body = JSON.stringify({
        id,
        kind,
        ...aboutOf(first),
        count,
        lastAt: isoTime(lastAtMs),
        others: others.map(aboutOf),
        runbook_url: runbookOf(group, consoleUrl),
      });
      const timestampS = Math.floor(clock.nowMs() / 1_000);
      const headers = {
        [headerNames.id]: id,
        [headerNames.timestamp]: String(timestampS),
        [headerNames.signature]: webhookSignature(id, timestampS, body, key),
      };
      return http.post(body, headers, signal);
    },
    close: () => http.close(),
  };
}

function aboutOf({ partnerId, subjectId, atMs, detail }: Alert) {
  return { partnerId, subjectId, at: isoTime(atMs), detail };
}

function isoTime(atMs: number): string {
  return new Date(atMs).toISOString();
}
