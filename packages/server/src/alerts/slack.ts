import type { ConnectRules } from "../delivery/transport/connect.ts";
import { HttpTarget } from "./http.ts";
import type { AlertChannel } from "./target.ts";
import { linesOf, runbookOf, titleOf } from "./text.ts";

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
