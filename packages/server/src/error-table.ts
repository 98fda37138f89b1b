type Status = 400 | 401 | 403 | 404 | 405 | 408 | 409 | 410 | 412 | 413 | 415 | 416 | 429 | 431 | 500 | 503;

interface ErrorKind {
  readonly status: Status;
  readonly title: string;
  readonly remedy: string;
}

/** The header of the CSRF value, without which a session changes nothing. */
export const csrfHeader = "paybell-csrf";

/**
 * Every error that leaves Paybell, under its HTTP status: what it means, and what the reader can do about it. Callers
 * branch on the code; codes are never renamed. The reference page is generated from this table.
 */
export const errors = {
  ...withStatus(400, {
    // The message as a whole
    invalid_http: [
      "The message is not HTTP",
      "Send an HTTP/1.1 request. If the address begins with https://, send it to the proxy that terminates TLS.",
    ],
    ambiguous_request: [
      "The request can be read in two ways",
      "Write letters, digits, - . _ and ~ of a path as they are, not percent-encoded, and send Host and " +
        "Authorization once.",
    ],
    invalid_json: [
      "The body is not JSON",
      "Send one JSON object, UTF-8, each key once, with Content-Type: application/json.",
    ],
    invalid_request: ["Several fields are wrong", "Correct every field that `errors` names; each has its own code."],
    // One field
    unknown_field: ["A field is unknown", "Leave the field out, or check its spelling against the reference."],
    missing_field: ["A required field is missing", "Send every field that `errors` names."],
    wrong_type: ["A field has the wrong JSON type", "Send the type that the reference names."],
    invalid_value: ["A value is not allowed here", "Send one of the values, or the form, that the reference names."],
    too_long: ["A value is too long", "Shorten it to the length that the reference names."],
    invalid_amount: [
      "The amount is not valid",
      'Send a string such as "150000" or "12.50": above zero, no leading zeros, no sign, at most the decimals of its ' +
        "currency and 12 digits in its smallest unit.",
    ],
    invalid_currency: ["The currency is unknown", "Send an ISO 4217 code in capitals, such as VND or USD."],
    invalid_req_id: ["The reqId is not a UUID v4", "Generate one UUID version 4 for each new transaction."],
    invalid_callback_url: [
      "The callback URL is not usable",
      "Send an absolute https:// URL without user name, password or fragment.",
    ],
    insecure_callback_url: ["The callback URL is not HTTPS", "Use https://. Only the sandbox allows plain http://."],
    address_not_whitelisted: [
      "The callback's address is not on the partner's allowlist",
      "Use a host whose addresses are in the partner's callbackAddresses, or ask the operator to extend the list.",
    ],
    delimiter_in_signed_field: [
      "A signed field holds & or a control character",
      "Remove the character: signed values are joined with & and nothing escapes it.",
    ],
    invalid_text: ["A string contains NUL or half of a surrogate pair", "Send well-formed Unicode text without NUL."],
    card_number_in_clear: [
      "A full card number, or other card data that must never be stored",
      "Never send a full card number, a security code, or an unencrypted PIN or track: mask the number, showing at most " +
        "the first six or eight and the last four digits.",
    ],
    invalid_card_number: [
      "The card number is not masked correctly",
      "Show at most the first six or eight and the last four digits, and * or X for the others.",
    ],
    aid_required: ["The AID is missing", "Send card.aid for a chip or contactless card with paymentType card."],
    scheme_contradicts_aid: [
      "The card scheme contradicts the AID",
      "Send the scheme that the AID belongs to, or leave card.scheme out.",
    ],
    invalid_cursor: [
      "The cursor is not valid",
      "Send the unchanged `next` of an earlier page, or leave `after` out to start at the beginning.",
    ],
    clearing_unreadable: [
      "The clearing file cannot be read",
      "See the line and the column: correct `clearing` in the acquirer's profile, or ask the acquirer for the file.",
    ],
    unknown_test_card: [
      "The simulator does not know this card token",
      "Use one of the documented test cards, such as tok_approve.",
    ],
    unknown_partner: ["No such partner", "Send the id of a registered partner."],
    invalid_signing: [
      "The agreed list of signed fields is not allowed",
      "List known fields only. Include id, transaction_type, status and amount or totalAmount, and not extraData.",
    ],
  }),
  ...withStatus(401, {
    unauthorized: [
      "The key is missing or wrong",
      "Send Authorization: Bearer with the partner's API key, or the operator token for /operator.",
    ],
  }),
  ...withStatus(403, {
    address_not_allowed: [
      "This address is not allowed",
      "Call from an address in the partner's callingAddresses, or ask the operator to extend the list. Operators " +
        "call from PAYBELL_OPERATOR_ADDRESSES.",
    ],
    scope_not_allowed: [
      "This API key does not allow this",
      "Call with a key that has the scope, or make one: GET /v1/self lists your keys with their scopes.",
    ],
    role_not_allowed: [
      "Your role does not allow this",
      "Use the token of an operator whose role allows it, or ask an admin for one.",
    ],
    oidc_sign_in_required: [
      "Operators sign in to the console by OpenID here",
      "Sign in with your organisation. Tokens of operators still call the operator API.",
    ],
    second_admin_required: [
      "This needs a second admin",
      "Propose it: send the same request to its path with /propose, or run the command with --propose. Another admin " +
        "then confirms it.",
    ],
    csrf: [
      "The request has no valid CSRF value",
      `Send the session's csrf value as the header ${csrfHeader}. In the console, reload the page.`,
    ],
    host_not_allowed: [
      "The sandbox answers local callers only",
      "Call it as localhost, 127.0.0.1 or [::1] with its port.",
    ],
    partner_disabled: ["The partner is disabled", "Ask the operator of this service."],
  }),
  ...withStatus(404, {
    not_found: ["Not found", "Check the id and the path."],
  }),
  ...withStatus(405, {
    method_not_allowed: [
      "This path does not support this method",
      "Use one of the methods that the header Allow names.",
    ],
  }),
  ...withStatus(408, {
    request_timeout: ["The request did not arrive in time", "Send the whole request within 30 seconds."],
  }),
  ...withStatus(409, {
    too_many_api_keys: [
      "The partner has too many API keys",
      "Revoke one that is no longer used: GET /v1/self says when each was last used.",
    ],
    last_managing_key: [
      "The partner would be locked out",
      "Make another key with the scope manage first, which is valid as long, or ask the operator to revoke this one.",
    ],
    req_id_reused: [
      "This reqId belongs to another request",
      "Repeat a request with exactly the same body, or generate a new reqId.",
    ],
    terminal_mid_mismatch: [
      "The terminal belongs to another merchant",
      "Send the mid that this tid is registered with, or ask the operator to change the terminal.",
    ],
    terminal_taken: [
      "The terminal belongs to another partner",
      "Check tid and mid. A terminal of the acquirer belongs to one partner: two would settle each other's batch.",
    ],
    too_many_terminals: [
      "The partner uses too many terminals that are not registered",
      "Ask the operator to register your terminals: registered ones have no limit.",
    ],
    partner_in_use: [
      "The partner cannot be deleted now",
      "Settle its batches, disable the partner, wait until no command or notification of it is in flight, then " +
        "archive it again.",
    ],
    terminal_busy: [
      "The terminal's merchant and acquirer cannot change now",
      "First settle its batch, and complete or void its PreAuths: they belong to the current ones.",
    ],
    acquirer_in_use: [
      "The acquirer is in use",
      "First give its terminals another acquirer, wait until its Reversals are answered, and decide on parked ones.",
    ],
    other_acquirer: [
      "The terminal belongs to another acquirer than the original",
      "Name a terminal (tid) of the original's acquirer, or ask the operator which one that is.",
    ],
    terminal_not_registered: [
      "The terminal is not registered",
      "Ask the operator to register the terminal: this partner uses registered terminals only.",
    ],
    batch_currency: [
      "The open batch has another currency",
      "Settle the terminal's open batch first, or use another terminal.",
    ],
    owned_by_switch: [
      "The transaction was reported by a switch",
      "Void, complete or reverse it in the system that processed it.",
    ],
    not_voidable: [
      "This kind of transaction cannot be voided",
      "Send the id of a Sale, a PreAuth or a PreAuth-Complete. To void a completed PreAuth, void its PreAuth-Complete.",
    ],
    not_completable: ["Only a PreAuth can be completed", "Send the id of a PreAuth."],
    not_reversible: [
      "This kind of transaction cannot be reversed",
      "Send the id or reqId of a Sale, a PreAuth or a PreAuth-Complete.",
    ],
    in_flight: [
      "The transaction, or a command that refers to it, has no outcome yet",
      "Wait for that outcome (its IPN, or GET /v1/transactions/:id), then repeat the command if it still applies.",
    ],
    in_doubt: [
      "The transaction is locked until a Reversal has ended",
      "Wait until the acquirer has answered the Reversal, then repeat the command. The operator must resolve a " +
        "parked one.",
    ],
    not_successful: [
      "The transaction was not successful",
      "Nothing was charged: there is nothing to void, complete or reverse.",
    ],
    already_voided: [
      "The transaction is already voided",
      "Nothing is left to do; to charge again, send a new Sale or PreAuth.",
    ],
    already_completed: [
      "The PreAuth is already completed",
      "Void its PreAuth-Complete; to charge again, send a new Sale or PreAuth.",
    ],
    already_reversed: [
      "The transaction is already reversed",
      "Nothing is left to do; to charge again, send a new Sale or PreAuth.",
    ],
    reversed_before_arrival: [
      "A Reversal of this reqId came before the command",
      "Nothing was charged. To charge anyway, send the command with a new reqId.",
    ],
    batch_settled: [
      "The transaction's batch is settled",
      "Send a REFUND, if the operator has allowed Refunds for you. A settled transaction itself is final.",
    ],
    refunds_off: ["Refunds are off", "Ask the operator to allow them in your settings."],
    not_refundable: ["The transaction cannot be refunded", "Send the id of a Sale or a PreAuth-Complete."],
    not_settled: ["The batch is not settled yet", "Void the transaction instead."],
    amount_above_refundable: [
      "The amount exceeds what is left to refund",
      "Refund at most its amount minus its other Refunds.",
    ],
    preauth_expired: ["The PreAuth is too old", "Void it to release its hold, and send a new Sale or PreAuth."],
    amount_above_authorised: [
      "The amount exceeds the authorised amount",
      "Complete at most the amount of the PreAuth, and charge the rest with a Sale.",
    ],
    settlement_in_doubt: [
      "It is in doubt what the acquirer has settled",
      "Ask the operator, who resolves it with the acquirer, and send no Settlement for this terminal until then. The " +
        "acquirer accepted a settlement after it was aborted, and the batch has changed since. Sales go on meanwhile.",
    ],
    settlement_not_in_doubt: [
      "The settlement is not in doubt",
      "Only a settlement with the event settlement_late, whose detail.batch is in_doubt, is resolved, and once.",
    ],
    settlement_in_progress: [
      "The terminal's batch is being settled",
      "Repeat the same request after Retry-After seconds: nothing was accepted.",
    ],
    content_changed: [
      "The stored notification is not as it was committed",
      "Tell the operator: somebody changed it in the database. A backup has it as it was.",
    ],
    no_callback_url: [
      "There is no callback URL to notify",
      "Send callBackUrl with the command, or register one for the partner.",
    ],
    callback_url_fixed: [
      "Only the operator changes the callback URL",
      "Ask the operator for the change, or to allow it by the setting callBackUrlChange.",
    ],
    callback_url_not_confirmed: [
      "The new callback URL did not accept a test IPN",
      "Make it answer the test IPN with 2xx, then repeat the request. Deliveries go to the previous URL until then.",
    ],
    exception_resolved: [
      "The exception is resolved already",
      "Read it again: its reason says why, and the audit who resolved it.",
    ],
    reversal_not_parked: [
      "The Reversal is not parked",
      "Wait for its answer: a Reversal under way is sent again without a retry, and only a parked one can be resolved.",
    ],
    settlement_ended: ["The settlement has ended", "Nothing is left to abort: its transaction has the result."],
    report_conflict: [
      "This externalId was reported with other content",
      "Report each transaction under its own externalId, and a repetition with exactly the same content. If " +
        "a Sale and its Void share a number, set the partner's reports.identity to externalId+command.",
    ],
    cursor_from_another_history: [
      "The cursor belongs to another database",
      "The service was restored, or failed over to a standby: start again without `after`, and deduplicate by id.",
    ],
  }),
  ...withStatus(410, {
    cursor_expired: [
      "The cursor is older than the kept history",
      "Start again without `after`, and reconcile the gap with your settlement reports.",
    ],
  }),
  ...withStatus(412, {
    precondition_failed: [
      "The file is not the one that the condition names",
      "Request the file without If-Match and If-Unmodified-Since.",
    ],
  }),
  ...withStatus(413, {
    body_too_large: [
      "The body is too large",
      "A command has at most 64 KiB with at most 4 KiB of extraData; a report at most 1,000 items and 8 MiB.",
    ],
  }),
  ...withStatus(415, {
    unsupported_media_type: ["The content type is not JSON", "Send Content-Type: application/json."],
  }),
  ...withStatus(416, {
    range_not_satisfiable: [
      "The range is beyond the end of the file",
      "Request a range within the length that Content-Range names, or the file without Range.",
    ],
  }),
  ...withStatus(429, {
    too_many_requests: ["Too many requests", "Wait as long as Retry-After says."],
  }),
  ...withStatus(431, {
    headers_too_large: ["The headers are too large", "Send at most 16 KiB of headers."],
  }),
  ...withStatus(500, {
    internal: [
      "An internal error occurred",
      "Repeat the request with the same reqId. If the error persists, quote `instance` to the operator.",
    ],
  }),
  ...withStatus(503, {
    acquirer_signed_off: [
      "The terminal's acquirer has signed off",
      "Nothing was accepted. Use a terminal of another acquirer, or repeat the command after `Retry-After`.",
    ],
    acquirer_unreachable: [
      "The terminal's acquirer cannot be reached",
      "Nothing was accepted. Use a terminal of another acquirer, or repeat the command after `Retry-After`.",
    ],
    no_acquirer: [
      "This service has no acquirer for the terminal",
      "Nothing was accepted. The service accepts commands once the operator has set PAYBELL_ACQUIRER, or registered " +
        "the terminal with an acquirer.",
    ],
    unavailable: [
      "The request cannot be stored durably now",
      "Nothing was accepted. Repeat the same request after Retry-After seconds.",
    ],
  }),
};

export type ErrorCode = keyof typeof errors;

function withStatus<Code extends string>(
  status: Status,
  texts: Record<Code, readonly [title: string, remedy: string]>,
) {
  const codes = Object.keys(texts) as Code[];
  const kinds = codes.map((code): [Code, ErrorKind] => {
    const [title, remedy] = texts[code];
    return [code, { status, title, remedy }];
  });
  return Object.fromEntries(kinds) as Record<Code, ErrorKind>;
}
