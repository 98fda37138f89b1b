import { misuses } from "../../packages/partner/src/misused.ts";
import { refusals } from "../../packages/partner/src/refused.ts";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

function rows(reasons: Readonly<Record<string, readonly [meaning: string, remedy: string]>>): string[][] {
  return Object.entries(reasons).map(([reason, [meaning, remedy]]) => [code(reason), meaning, remedy]);
}

/** Every error of the partner library, from its own tables. */
export function receiverErrorsReference(): GeneratedFile {
  return {
    path: "docs/partner/errors.md",
    text: markdown(
      "What the library's errors mean",
      "Whatever the library throws of itself is a `PaybellError` with `code` and `remedy`: branch on `code`. Two " +
        "codes have a `reason` beside them, which tells the cause exactly. Codes and reasons are never renamed. " +
        "Whoever POSTs sees none of this.",
      table(
        ["code", "Error", "Thrown by"],
        [
          [code("not_authentic"), code("IpnRefused"), "`open()`; a handler logs it"],
          [code("misused"), code("Misused"), "every function that is called or configured wrongly"],
          [
            code("ipn_in_progress"),
            code("IpnInProgress"),
            "`redisStore`: the IPN is in hand elsewhere, and comes again",
          ],
          [
            "what the service answered; `no_answer`, `timeout`, `not_paybell`",
            code("ApiError"),
            "[the client](client.md)",
          ],
          [
            "`invalid_cursor`, `cursor_from_another_history`, `cursor_expired`",
            code("CursorRefused"),
            "[catchUp](catch-up.md)",
          ],
        ],
      ),
      "## not_authentic",
      "`IpnRefused`, thrown by `open()`. Its message, its stack and its JSON are always the same, and every handler " +
        "answers 400 (413 for `too_large`). `reason`, `remedy` and `hint` (what was found, and the remedy) are for " +
        "your log alone.",
      table(["reason", "Meaning", "Remedy"], rows(refusals)),
      "`swapped_keys`, `wrong_cipher`, `wrong_encoding` and `wrong_signing` are found by trying what else would be " +
        "right. That is done for the holder of the webhook secret alone, and for bodies up to 1 MiB.",
      "## misused",
      "`Misused`: a mistake in your own code or configuration, thrown where it is made, mostly at the start. " +
        "The message names the option; it never holds the value of a key.",
      table(["reason", "Meaning", "Remedy"], rows(misuses)),
    ),
  };
}
