import type { FieldProblem } from "../errors.ts";
import { broken } from "./rules.ts";

const absolutePattern = /^https?:\/\//i;
/** The URL parser drops or rewrites these silently: what was sent would not be what is called. */
const rewrittenPattern = /[\s\\]/;
const loopbackHost = /^(?:(?:.+\.)?localhost\.?|127\..*|0\.0\.0\.0|\[::1?\]|\[::ffff:(?:7f..:.*|0:0)\])$/;

/**
 * Whether a callBackUrl can be called at all: section 4.1. Which addresses it may lead to is the partner's list, and
 * judged when it is called. `sandbox` alone allows http:// and this machine.
 */
export function callBackUrlProblem(text: string, sandbox: boolean): FieldProblem | undefined {
  const url = rewrittenPattern.test(text) || !absolutePattern.test(text) ? null : URL.parse(text);
  if (url === null) return broken("callBackUrl", "invalid_callback_url", "is no absolute https:// URL");
  if (url.protocol !== "https:" && !sandbox) return broken("callBackUrl", "insecure_callback_url", "is not https://");
  if (url.username !== "" || url.password !== "")
    return broken("callBackUrl", "invalid_callback_url", "holds a user or a password");
  if (text.includes("#")) return broken("callBackUrl", "invalid_callback_url", "holds a fragment");
  if (loopbackHost.test(url.hostname) && !sandbox)
    return broken("callBackUrl", "invalid_callback_url", "leads to this machine");
  return undefined;
}
