/**
 * Every error that leaves Paybell: its HTTP status, what it means, and what the reader can do about it. Callers
 * branch on `code`; codes are never renamed. The reference page is generated from this table.
 */
interface ErrorKind {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 410 | 412 | 413 | 415 | 416 | 429 | 431 | 500 | 503;
  readonly title: string;
  readonly remedy: string;
}

/** The header of the CSRF value, without which a session changes nothing. */
export const csrfHeader = "paybell-csrf";

export const errors = {
  // 400: the message as a whole
  invalid_http: {
    status: 400,
    title: "The message is not HTTP",
    remedy: "Send an HTTP/1.1 request. If the address begins with https://, send it to the proxy that terminates TLS.",
  },
  ambiguous_request: {
    status: 400,
    title: "The request can be read in two ways",
    remedy:
      "Write letters, digits, - . _ and ~ of a path as they are, not percent-encoded, and send Host and " +
      "Authorization once.",
  },
  invalid_json: {
    status: 400,
    title: "The body is not JSON",
    remedy: "Send one JSON object, UTF-8, each key once, with Content-Type: application/json.",
  },
  invalid_request: {
    status: 400,
    title: "Several fields are wrong",
    remedy: "Correct every field that `errors` names; each has its own code.",
  },
  // 400: one field
  unknown_field: {
    status: 400,
    title: "A field is unknown",
    remedy: "Leave the field out, or check its spelling against the reference.",
  },
  missing_field: { status: 400, title: "A required field is missing", remedy: "Send every field that `errors` names." },
  wrong_type: {
    status: 400,
    title: "A field has the wrong JSON type",
    remedy: "Send the type that the reference names.",
  },
  invalid_value: {
    status: 400,
    title: "A value is not allowed here",
    remedy: "Send one of the values, or the form, that the reference names.",
  },
  too_long: { status: 400, title: "A value is too long", remedy: "Shorten it to the length that the reference names." },
  invalid_amount: {
    status: 400,
    title: "The amount is not valid",
    remedy:
      'Send a string such as "150000" or "12.50": above zero, no leading zeros, no sign, at most the decimals of its ' +
      "currency and 12 digits in its smallest unit.",
  },
  invalid_currency: {
    status: 400,
    title: "The currency is unknown",
    remedy: "Send an ISO 4217 code in capitals, such as VND or USD.",
  },
  invalid_req_id: {
    status: 400,
    title: "The reqId is not a UUID v4",
    remedy: "Generate one UUID version 4 for each new transaction.",
  },
  invalid_callback_url: {
    status: 400,
    title: "The callback URL is not usable",
    remedy: "Send an absolute https:// URL without user name, password or fragment.",
  },
  insecure_callback_url: {
    status: 400,
    title: "The callback URL is not HTTPS",
    remedy: "Use https://. Only the sandbox allows plain http://.",
  },
  address_not_whitelisted: {
    status: 400,
    title: "The callback's address is not on the partner's allowlist",
    remedy:
      "Use a host whose addresses are in the partner's callbackAddresses, or ask the operator to extend the list.",
  },
  delimiter_in_signed_field: {
    status: 400,
    title: "A signed field holds & or a control character",
    remedy: "Remove the character: signed values are joined with & and nothing escapes it.",
  },
  invalid_text: {
    status: 400,
    title: "A string contains NUL or half of a surrogate pair",
    remedy: "Send well-formed Unicode text without NUL.",
  },
  card_number_in_clear: {
    status: 400,
    title: "A full card number, or other card data that must never be stored",
    remedy:
      "Never send a full card number, a security code, or an unencrypted PIN or track: mask the number, showing at most " +
      "the first six or eight and the last four digits.",
  },
  invalid_card_number: {
    status: 400,
    title: "The card number is not masked correctly",
    remedy: "Show at most the first six or eight and the last four digits, and * or X for the others.",
  },
  aid_required: {
    status: 400,
    title: "The AID is missing",
    remedy: "Send card.aid for a chip or contactless card with paymentType card.",
  },
  scheme_contradicts_aid: {
    status: 400,
    title: "The card scheme contradicts the AID",
    remedy: "Send the scheme that the AID belongs to, or leave card.scheme out.",
  },
  invalid_cursor: {
    status: 400,
    title: "The cursor is not valid",
    remedy: "Send the unchanged `next` of an earlier page, or leave `after` out to start at the beginning.",
  },
  clearing_unreadable: {
    status: 400,
    title: "The clearing file cannot be read",
    remedy:
      "See the line and the column: correct `clearing` in the acquirer's profile, or ask the acquirer for the file.",
  },
  unknown_test_card: {
    status: 400,
    title: "The simulator does not know this card token",
    remedy: "Use one of the documented test cards, such as tok_approve.",
  },
  unknown_partner: { status: 400, title: "No such partner", remedy: "Send the id of a registered partner." },
  invalid_signing: {
    status: 400,
    title: "The agreed list of signed fields is not allowed",
    remedy:
      "List known fields only. Include id, transaction_type, status and amount or totalAmount, and not extraData.",
  },
  // 401, 403
  unauthorized: {
    status: 401,
    title: "The key is missing or wrong",
    remedy: "Send Authorization: Bearer with the partner's API key, or the operator token for /operator.",
  },
  address_not_allowed: {
    status: 403,
    title: "This address is not allowed",
    remedy:
      "Call from an address in the partner's callingAddresses, or ask the operator to extend the list. Operators " +
      "call from PAYBELL_OPERATOR_ADDRESSES.",
  },
  scope_not_allowed: {
    status: 403,
    title: "This API key does not allow this",
    remedy: "Call with a key that has the scope, or make one: GET /v1/self lists your keys with their scopes.",
  },
  too_many_api_keys: {
    status: 409,
    title: "The partner has too many API keys",
    remedy: "Revoke one that is no longer used: GET /v1/self says when each was last used.",
  },
  last_managing_key: {
    status: 409,
    title: "The partner would be locked out",
    remedy:
      "Make another key with the scope manage first, which is valid as long, or ask the operator to revoke this one.",
  },
  role_not_allowed: {
    status: 403,
    title: "Your role does not allow this",
    remedy: "Use the token of an operator whose role allows it, or ask an admin for one.",
  },
  oidc_sign_in_required: {
    status: 403,
    title: "Operators sign in to the console by OpenID here",
    remedy: "Sign in with your organisation. Tokens of operators still call the operator API.",
  },
  second_admin_required: {
    status: 403,
    title: "This needs a second admin",
    remedy:
      "Propose it: send the same request to its path with /propose, or run the command with --propose. Another admin " +
      "then confirms it.",
  },
  csrf: {
    status: 403,
    title: "The request has no valid CSRF value",
    remedy: `Send the session's csrf value as the header ${csrfHeader}. In the console, reload the page.`,
  },
  host_not_allowed: {
    status: 403,
    title: "The sandbox answers local callers only",
    remedy: "Call it as localhost, 127.0.0.1 or [::1] with its port.",
  },
  partner_disabled: {
    status: 403,
    title: "The partner is disabled",
    remedy: "Ask the operator of this service.",
  },
  // 404
  not_found: { status: 404, title: "Not found", remedy: "Check the id and the path." },
  // 405, 408
  method_not_allowed: {
    status: 405,
    title: "This path does not support this method",
    remedy: "Use one of the methods that the header Allow names.",
  },
  request_timeout: {
    status: 408,
    title: "The request did not arrive in time",
    remedy: "Send the whole request within 30 seconds.",
  },
  // 409
  req_id_reused: {
    status: 409,
    title: "This reqId belongs to another request",
    remedy: "Repeat a request with exactly the same body, or generate a new reqId.",
  },
  terminal_mid_mismatch: {
    status: 409,
    title: "The terminal belongs to another merchant",
    remedy: "Send the mid that this tid is registered with, or ask the operator to change the terminal.",
  },
  terminal_taken: {
    status: 409,
    title: "The terminal belongs to another partner",
    remedy:
      "Check tid and mid. A terminal of the acquirer belongs to one partner: two would settle each other's batch.",
  },
  too_many_terminals: {
    status: 409,
    title: "The partner uses too many terminals that are not registered",
    remedy: "Ask the operator to register your terminals: registered ones have no limit.",
  },
  partner_in_use: {
    status: 409,
    title: "The partner cannot be deleted now",
    remedy:
      "Settle its batches, disable the partner, wait until no command or notification of it is in flight, then " +
      "archive it again.",
  },
  terminal_busy: {
    status: 409,
    title: "The terminal's merchant and acquirer cannot change now",
    remedy: "First settle its batch, and complete or void its PreAuths: they belong to the current ones.",
  },
  acquirer_in_use: {
    status: 409,
    title: "The acquirer is in use",
    remedy: "First give its terminals another acquirer, and wait until its Reversals are answered.",
  },
  other_acquirer: {
    status: 409,
    title: "The terminal belongs to another acquirer than the original",
    remedy: "Name a terminal (tid) of the original's acquirer, or ask the operator which one that is.",
  },
  terminal_not_registered: {
    status: 409,
    title: "The terminal is not registered",
    remedy: "Ask the operator to register the terminal: this partner uses registered terminals only.",
  },
  batch_currency: {
    status: 409,
    title: "The open batch has another currency",
    remedy: "Settle the terminal's open batch first, or use another terminal.",
  },
  owned_by_switch: {
    status: 409,
    title: "The transaction was reported by a switch",
    remedy: "Void, complete or reverse it in the system that processed it.",
  },
  not_voidable: {
    status: 409,
    title: "This kind of transaction cannot be voided",
    remedy:
      "Send the id of a Sale, a PreAuth or a PreAuth-Complete. To void a completed PreAuth, void its PreAuth-Complete.",
  },
  not_completable: { status: 409, title: "Only a PreAuth can be completed", remedy: "Send the id of a PreAuth." },
  not_reversible: {
    status: 409,
    title: "This kind of transaction cannot be reversed",
    remedy: "Send the id or reqId of a Sale, a PreAuth or a PreAuth-Complete.",
  },
  in_flight: {
    status: 409,
    title: "The transaction, or a command that refers to it, has no outcome yet",
    remedy:
      "Wait for that outcome (its IPN, or GET /v1/transactions/:id), then repeat the command if it still applies.",
  },
  in_doubt: {
    status: 409,
    title: "The transaction is locked until a Reversal has ended",
    remedy:
      "Wait until the acquirer has answered the Reversal, then repeat the command. The operator must resolve a " +
      "parked one.",
  },
  not_successful: {
    status: 409,
    title: "The transaction was not successful",
    remedy: "Nothing was charged: there is nothing to void, complete or reverse.",
  },
  already_voided: {
    status: 409,
    title: "The transaction is already voided",
    remedy: "Nothing is left to do; to charge again, send a new Sale or PreAuth.",
  },
  already_completed: {
    status: 409,
    title: "The PreAuth is already completed",
    remedy: "Void its PreAuth-Complete; to charge again, send a new Sale or PreAuth.",
  },
  already_reversed: {
    status: 409,
    title: "The transaction is already reversed",
    remedy: "Nothing is left to do; to charge again, send a new Sale or PreAuth.",
  },
  reversed_before_arrival: {
    status: 409,
    title: "A Reversal of this reqId came before the command",
    remedy: "Nothing was charged. To charge anyway, send the command with a new reqId.",
  },
  batch_settled: {
    status: 409,
    title: "The transaction's batch is settled",
    remedy: "Send a REFUND, if the operator has allowed Refunds for you. A settled transaction itself is final.",
  },
  refunds_off: { status: 409, title: "Refunds are off", remedy: "Ask the operator to allow them in your settings." },
  not_refundable: {
    status: 409,
    title: "The transaction cannot be refunded",
    remedy: "Send the id of a Sale or a PreAuth-Complete.",
  },
  not_settled: { status: 409, title: "The batch is not settled yet", remedy: "Void the transaction instead." },
  amount_above_refundable: {
    status: 409,
    title: "The amount exceeds what is left to refund",
    remedy: "Refund at most its amount minus its other Refunds.",
  },
  preauth_expired: {
    status: 409,
    title: "The PreAuth is too old",
    remedy: "Void it to release its hold, and send a new Sale or PreAuth.",
  },
  amount_above_authorised: {
    status: 409,
    title: "The amount exceeds the authorised amount",
    remedy: "Complete at most the amount of the PreAuth, and charge the rest with a Sale.",
  },
  settlement_in_doubt: {
    status: 409,
    title: "It is in doubt what the acquirer has settled",
    remedy:
      "Ask the operator, who resolves it with the acquirer, and send no Settlement for this terminal until then. The " +
      "acquirer accepted a settlement after it was aborted, and the batch has changed since. Sales go on meanwhile.",
  },
  settlement_not_in_doubt: {
    status: 409,
    title: "The settlement is not in doubt",
    remedy: "Only a settlement with the event settlement_late, whose detail.batch is in_doubt, is resolved, and once.",
  },
  settlement_in_progress: {
    status: 409,
    title: "The terminal's batch is being settled",
    remedy: "Repeat the same request after Retry-After seconds: nothing was accepted.",
  },
  content_changed: {
    status: 409,
    title: "The stored notification is not as it was committed",
    remedy: "Tell the operator: somebody changed it in the database. A backup has it as it was.",
  },
  no_callback_url: {
    status: 409,
    title: "There is no callback URL to notify",
    remedy: "Send callBackUrl with the command, or register one for the partner.",
  },
  callback_url_fixed: {
    status: 409,
    title: "Only the operator changes the callback URL",
    remedy: "Ask the operator for the change, or to allow it by the setting callBackUrlChange.",
  },
  callback_url_not_confirmed: {
    status: 409,
    title: "The new callback URL did not accept a test IPN",
    remedy:
      "Make it answer the test IPN with 2xx, then repeat the request. Deliveries go to the previous URL until then.",
  },
  exception_resolved: {
    status: 409,
    title: "The exception is resolved already",
    remedy: "Read it again: its reason says why, and the audit who resolved it.",
  },
  reversal_not_parked: {
    status: 409,
    title: "The Reversal is not parked",
    remedy:
      "Wait for its answer: a Reversal under way is sent again without a retry, and only a parked one can be resolved.",
  },
  settlement_ended: {
    status: 409,
    title: "The settlement has ended",
    remedy: "Nothing is left to abort: its transaction has the result.",
  },
  report_conflict: {
    status: 409,
    title: "This externalId was reported with other content",
    remedy:
      "Report each transaction under its own externalId, and a repetition with exactly the same content. If " +
      "a Sale and its Void share a number, set the partner's reports.identity to externalId+command.",
  },
  cursor_from_another_history: {
    status: 409,
    title: "The cursor belongs to another database",
    remedy:
      "The service was restored, or failed over to a standby: start again without `after`, and deduplicate by id.",
  },
  // 410
  cursor_expired: {
    status: 410,
    title: "The cursor is older than the kept history",
    remedy: "Start again without `after`, and reconcile the gap with your settlement reports.",
  },
  // 412, 413, 415, 416
  precondition_failed: {
    status: 412,
    title: "The file is not the one that the condition names",
    remedy: "Request the file without If-Match and If-Unmodified-Since.",
  },
  body_too_large: {
    status: 413,
    title: "The body is too large",
    remedy: "A command has at most 64 KiB with at most 4 KiB of extraData; a report at most 1,000 items and 8 MiB.",
  },
  unsupported_media_type: {
    status: 415,
    title: "The content type is not JSON",
    remedy: "Send Content-Type: application/json.",
  },
  range_not_satisfiable: {
    status: 416,
    title: "The range is beyond the end of the file",
    remedy: "Request a range within the length that Content-Range names, or the file without Range.",
  },
  // 429, 431, 500, 503
  too_many_requests: { status: 429, title: "Too many requests", remedy: "Wait as long as Retry-After says." },
  headers_too_large: {
    status: 431,
    title: "The headers are too large",
    remedy: "Send at most 16 KiB of headers.",
  },
  internal: {
    status: 500,
    title: "An internal error occurred",
    remedy: "Repeat the request with the same reqId. If the error persists, quote `instance` to the operator.",
  },
  acquirer_signed_off: {
    status: 503,
    title: "The terminal's acquirer has signed off",
    remedy: "Nothing was accepted. Use a terminal of another acquirer, or repeat the command after `Retry-After`.",
  },
  acquirer_unreachable: {
    status: 503,
    title: "The terminal's acquirer cannot be reached",
    remedy: "Nothing was accepted. Use a terminal of another acquirer, or repeat the command after `Retry-After`.",
  },
  no_acquirer: {
    status: 503,
    title: "This service has no acquirer for the terminal",
    remedy:
      "Nothing was accepted. The service accepts commands once the operator has set PAYBELL_ACQUIRER, or registered " +
      "the terminal with an acquirer.",
  },
  unavailable: {
    status: 503,
    title: "The request cannot be stored durably now",
    remedy: "Nothing was accepted. Repeat the same request after Retry-After seconds.",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errors;
