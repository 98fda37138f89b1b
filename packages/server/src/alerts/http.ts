import type { KeyObject } from "node:crypto";
import { headerNames, webhookSignature } from "@paybell/contract";
import { Agent } from "undici";
import type { Clock } from "../clock.ts";
import { type ConnectRules, connectorOf } from "../delivery/transport/connect.ts";
import { type AlertChannel, linesOf, problemOf, runbookOf, titleOf } from "./message.ts";
import type { Alert } from "./store.ts";

const answerBytesMax = 64 * 1_024;

/** POSTs to one URL, by the same address guard as callbacks; redirects are not followed. */
class HttpTarget {
  readonly #url: URL;
  readonly #agent: Agent;

  /** @param rules the addresses that it may connect to */
  constructor(url: string, rules: ConnectRules) {
    this.#url = new URL(url);
    this.#agent = new Agent({ connections: 5, connect: connectorOf(rules) });
  }

  /** @returns why it was not accepted; undefined for a 2xx */
  async post(
    body: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { origin, pathname, search } = this.#url;
    try {
      const answer = await this.#agent.request({
        origin,
        path: pathname + search,
        method: "POST",
        signal,
        headers: { "content-type": "application/json", ...headers },
        body,
      });
      await answer.body.dump({ limit: answerBytesMax, signal }).catch(() => undefined);
      return answer.statusCode >= 200 && answer.statusCode < 300 ? undefined : `status ${answer.statusCode}`;
    } catch (error) {
      return problemOf(error);
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

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

/** An incoming webhook of Slack; Mattermost, Rocket.Chat and others accept the same. Its URL is secret. */
export function slackTarget(url: string, rules: ConnectRules, consoleUrl: string | null = null): AlertChannel {
  const http = new HttpTarget(url, rules);
  return {
    name: "slack",
    send(group, signal) {
      const lines = [...linesOf(group), runbookOf(group, consoleUrl)].map(escaped);
      const text = `*Paybell: ${escaped(titleOf(group))}*\n${lines.join("\n")}`;
      return http.post(JSON.stringify({ text }), {}, signal);
    },
    close: () => http.close(),
  };
}

/** Escapes the three characters that begin markup. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
