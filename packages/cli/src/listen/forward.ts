import { unreachableText } from "../api.ts";
import type { World } from "../world.ts";

/** What became of one POST. `detail` says why there is no status, or what was answered beside a bad one. */
export interface Forwarded {
  readonly status: number | null;
  readonly accepted: boolean;
  readonly durationMs: number;
  readonly detail: string;
}

/** As the service's own: one deadline for the whole attempt. */
const forwardTimeoutMs = 15_000;
const shownCharactersMax = 200;

/** POSTs a sealed body with its headers, unchanged. Redirects are not followed, as the service follows none. */
export async function forward(
  { fetch, signal, nowMs }: Pick<World, "fetch" | "signal" | "nowMs">,
  target: URL,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Forwarded> {
  const startedMs = nowMs();
  const deadline = AbortSignal.timeout(forwardTimeoutMs);
  try {
    const response = await fetch(target, {
      method: "POST",
      body,
      headers,
      redirect: "manual",
      signal: AbortSignal.any([signal, deadline]),
    });
    const durationMs = nowMs() - startedMs;
    const { status } = response;
    const accepted = status >= 200 && status <= 299;
    if (accepted) {
      await response.body?.cancel();
      return { status, accepted, durationMs, detail: "" };
    }
    const detail = status >= 300 && status <= 399 ? redirect(response) : (await response.text()).trim();
    return { status, accepted, durationMs, detail: detail.slice(0, shownCharactersMax) };
  } catch (error) {
    if (signal.aborted) throw error;
    const detail = deadline.aborted ? `no answer within ${forwardTimeoutMs / 1000} s` : whyNot(error);
    return { status: null, accepted: false, durationMs: nowMs() - startedMs, detail };
  }
}

function redirect({ headers }: Response): string {
  return `redirects to ${headers.get("location") ?? "somewhere"}: redirects are not followed`;
}

const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/;

function whyNot(error: unknown): string {
  const { cause = error } = Object(error) as { cause?: unknown };
  const { code, message, errors = [] } = Object(cause) as { code?: string; message?: string; errors?: Error[] };
  const [first] = errors as (Error & { code?: string })[];
  const why = code ?? first?.code ?? message ?? String(error);
  if (why === "ECONNREFUSED") return "connection refused: is your server running on that port?";
  if (certificateCodes.test(why)) return `${why}: name your certificate authority in NODE_EXTRA_CA_CERTS`;
  return unreachableText(why);
}
