import { type NoResponse, post, postDefaults, type ResponseReceived } from "@paybell/partner/certify";
import type { CommandContext } from "../context.ts";

/** The result of one POST. `detail` says why there is no status, or what was answered with a bad one. */
export interface Forwarded {
  readonly status: number | null;
  readonly accepted: boolean;
  readonly durationMs: number;
  readonly detail: string;
}

const shownCharactersMax = 200;

/**
 * POSTs a sealed body with its headers as the service does: unchanged, with none beside them that a client of the web
 * would add, and redirects are not followed.
 */
export async function forward(
  { signal }: Pick<CommandContext, "signal">,
  target: URL,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Forwarded> {
  const came = await post(target, { method: "POST", headers, body }, { ...postDefaults, signal });
  if ("failure" in came) return { status: null, accepted: false, durationMs: came.ms, detail: whyNot(came) };
  const { status, ms: durationMs } = came;
  const accepted = status >= 200 && status <= 299;
  return { status, accepted, durationMs, detail: accepted ? "" : answerOf(came).slice(0, shownCharactersMax) };
}

function answerOf({ status, headers, body }: ResponseReceived): string {
  if (status < 300 || status > 399) return body.toString("utf8").trim();
  return `redirects to ${headers.location ?? "somewhere"}: redirects are not followed`;
}

function whyNot({ failure, detail }: NoResponse): string {
  if (detail.includes("ECONNREFUSED")) return "connection refused: is your server running on that port?";
  if (failure !== "tls") return detail;
  return `${detail}: name your certificate authority in NODE_EXTRA_CA_CERTS`;
}
