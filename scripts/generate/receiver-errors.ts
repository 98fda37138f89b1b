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
      "Errors of the partner library",
      "Every error that the library throws is a `PaybellError` with `code` and `remedy`: branch on `code`. Two " +
        "codes also have a `reason`, which names the exact cause. Codes and reasons are never renamed. " +
        "The sender of a request sees none of this.",
      table(
        ["code", "Error", "Thrown by"],
        [
          [code("not_authentic"), code("IpnRefused"), "`open()`; a handler logs it"],
          [code("misused"), code("Misused"), "every function that is called or configured wrongly"],
          [
            code("ipn_in_progress"),
            code("IpnInProgress"),
            "`deduplicate` with `redisStore`, while another process handles the IPN or another one of its chain. A " +
              "handler answers 500, and the IPN comes again",
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
        "answers 400 (413 for `too_large`). `reason`, `remedy` and `hint` (the finding and the remedy) are for your " +
        "log only.",
      table(["reason", "Meaning", "Remedy"], rows(refusals)),
      "The library finds `swapped_keys`, `wrong_cipher`, `wrong_encoding` and `wrong_signing` by trying other " +
        "settings. It tries them only for a sender that holds the webhook secret, and for bodies up to 1 MiB.",
      "## misused",
      "`Misused`: a mistake in your own code or configuration, thrown where it is made, usually at the start. " +
        'The message names the option, then gives the meaning and the remedy, as in "encryptionKey is missing. Is ' +
        'the environment variable set in this process?" It never contains the value of a key.',
      table(["reason", "Meaning", "Remedy"], rows(misuses)),
    ),
  };
}
