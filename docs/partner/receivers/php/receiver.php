<?php

/**
 * Receives Paybell's notifications (IPNs): verifies the sender, decrypts, stores each IPN once, answers.
 *
 *   PAYBELL_AGREEMENT=agreement.json php -S 127.0.0.1:8080 receiver.php  # or PHP-FPM; stores in the folder inbox
 *   php vectors.php ../../vectors.json                                   # runs the test vectors
 *
 * agreement.json holds keys: outside of the document root.
 */

declare(strict_types=1);

const FRESHNESS_SECONDS = 300;
const BODY_BYTES_MAX = 16 * 1024 * 1024;
const JSON_AS_IT_IS = JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS | JSON_UNESCAPED_SLASHES;

// The tables of the specification, section 2. After a slash: a second name of the field.
const CARD = 'aid amount appName approveCode/approve_code batchNo billId cardHolder cardNumber cardScheme currency '
    . 'deviceId/device_id expDate extraData id invoiceNo isoResponseCode merchantAddress merchantId merchantName '
    . 'merchantTransId mid paymentType/payment_type refId reqId status swipeType tc tid traceNo transDateTime '
    . 'transaction_type signature';
const SETTLEMENT = 'batchNo callbackUrl deviceId/deviceID extraData id merchantTransId mid quantity reqId saleQuantity '
    . 'saleTotalAmount status tid totalAmount transaction_time transaction_type voidQuantity voidTotalAmount '
    . 'settlementList signature';
const ENTRY = 'reqId/reqID refNo';
const SIGNED = [
    'card' => 'aid amount approveCode isoResponseCode merchantTransId isoResponseCode cardScheme tid mid traceNo '
        . 'batchNo',
    'settlement' => 'batchNo quantity saleQuantity saleTotalAmount voidQuantity voidTotalAmount totalAmount tid mid',
];

/** A message that is not authentic or not as agreed. The message is for your log, never for the sender. */
final class Refused extends Exception
{
}

function ensure(bool $isSo, string $otherwise): void
{
    if (!$isSo) {
        throw new Refused($otherwise);
    }
}

/**
 * The IPN by the tables' names, or Refused.
 *
 * @param object $agreed what was agreed with the operator, as agreement.json has it; several keys are a rotation
 * @param string $body the bytes as they came
 * @param array<string, string> $headers by their names in lower case
 * @return array<string, mixed>
 */
function verify(object $agreed, string $body, array $headers, int $now): array
{
    check_headers($agreed, $body, $headers, $now);
    $envelope = parse($body);
    ensure(array_keys((array) $envelope) === ['data'] && is_string($envelope->data), 'the body is not {data}');
    [$named, $iv, $sealed, $tag, $authenticated] = take_apart($agreed, $envelope->data);
    $refused = new Refused('no key has this kid');
    foreach ($agreed->encryptionKeys as $one) {
        if ($named !== null && $one->id !== '' && $one->id !== $named) {
            continue;
        }
        $key = key_bytes($one->key);
        $cipher = $agreed->cipher === 'aes-256-cbc' ? 'aes-256-cbc' : 'aes-256-gcm';
        try { // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
            $plain = openssl_decrypt($sealed, $cipher, $key, OPENSSL_RAW_DATA, $iv, $tag, $authenticated);
            ensure($plain !== false, 'decryption failed');
            return check_content($agreed, $plain);
        } catch (Refused $why) {
            $refused = $why;
        }
    }
    throw $refused;
}

/** Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends. */
function check_headers(object $agreed, string $body, array $headers, int $now): void
{
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    $isShaped = preg_match('/^[^.\s]{1,256}$/D', $id) && preg_match('/^[0-9]{1,12}$/D', $timestamp);
    ensure((bool) $isShaped, 'webhook-id or webhook-timestamp is missing or malformed');
    $isRight = false;
    foreach ($agreed->webhookSecrets as $secret) {
        $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", key_bytes($secret), true));
        foreach (explode(' ', $headers['webhook-signature'] ?? '') as $entry) {
            $isRight = hash_equals($expected, $entry) || $isRight;
        }
    }
    ensure($isRight, 'webhook-signature does not match the body');
    ensure(abs($now - (int) $timestamp) <= FRESHNESS_SECONDS, 'webhook-timestamp is too far from this clock');
}

/** The id of the key where the message names it, the IV, the ciphertext, its tag, the additional authenticated data. */
function take_apart(object $agreed, string $data): array
{
    if ($agreed->cipher !== 'jwe') {
        $raw = decode($data, $agreed->encoding);
        ensure(strlen($raw) >= 28, 'data is too short');
        return $agreed->cipher === 'aes-256-cbc'
            ? [null, substr($raw, 0, 16), substr($raw, 16), null, '']
            : [null, substr($raw, 0, 12), substr($raw, 12, -16), substr($raw, -16), ''];
    }
    $parts = explode('.', $data);
    ensure(count($parts) === 5 && $parts[1] === '', 'the JWE does not have the five parts of dir');
    [$header, $iv, $sealed, $tag] = array_map(fn (int $at) => decode($parts[$at], 'base64url'), [0, 2, 3, 4]);
    $fields = (array) parse($header);
    $isUsual = ($fields['alg'] ?? '') === 'dir' && ($fields['enc'] ?? '') === 'A256GCM' && isset($fields['kid']);
    ensure($isUsual && !isset($fields['zip']) && !isset($fields['crit']), 'the JWE is not as agreed');
    // PHP itself would accept a tag of four bytes.
    ensure(strlen($iv) === 12 && strlen($tag) === 16, 'the JWE has another IV or tag');
    return [$fields['kid'], $iv, $sealed, $tag, $parts[0]];
}

function check_content(object $agreed, string $plain): array
{
    $wire = (array) parse($plain);
    $settles = isset($wire['saleQuantity'])
        || ($wire['transaction_type'] ?? '') === 'SETTLE' && isset($wire['settlementList']);
    $ipn = by_table_names($wire, $settles ? SETTLEMENT : CARD);
    if ($agreed->signing->mode === 'whole') {
        $text = canonical((object) array_diff_key($wire, ['signature' => '']));
    } else {
        $kind = $settles ? 'settlement' : 'card';
        $names = $agreed->signing->$kind ?? explode(' ', SIGNED[$kind]);
        $text = implode('&', array_map(fn (string $name) => "$name={$ipn[$name]}", $names));
    }
    $isRight = false;
    foreach ($agreed->signingKeys as $key) {
        $expected = hash_hmac('sha256', $text, key_bytes($key));
        $isRight = hash_equals($expected, strtolower($ipn['signature'])) || $isRight;
    }
    ensure($isRight, 'signature does not match the signed string');
    return $settles ? $ipn : ['cardScheme' => strtoupper($ipn['cardScheme'])] + $ipn;
}

function by_table_names(array $wire, string $table): array
{
    $ipn = [];
    foreach (explode(' ', $table) as $field) {
        $names = explode('/', $field);
        $found = array_values(array_intersect_key($wire, array_flip($names)));
        ensure(count($found) <= 1, "$names[0] appears under two names");
        $isList = $names[0] === 'settlementList';
        $value = $found[0] ?? ($isList ? [] : '');
        ensure($isList ? is_array($value) : is_string($value), "$names[0] has another type");
        $ipn[$names[0]] = !$isList ? $value : array_map(function (mixed $entry): array {
            ensure(is_object($entry), 'settlementList is not a list of objects');
            return by_table_names((array) $entry, ENTRY);
        }, $value);
    }
    return $ipn;
}

/** One JSON object in UTF-8 whose scalars are strings, without duplicate keys: json_decode keeps the last one. */
function parse(string $raw): object
{
    $value = json_decode($raw, depth: 65); // Refuses a key that begins with NUL, too: there is none.
    ensure(is_object($value), 'not a JSON object');
    // Each string with a colon after it is a key; the others are passed over as a whole.
    $keys = preg_match_all('/"(?:[^"\\\\]++|\\\\.)*+"(?:\s*+:|(*SKIP)(*FAIL))/s', $raw);
    ensure($keys === count_keys($value), 'a key appears twice');
    return $value;
}

function count_keys(mixed $value): int
{
    if (is_string($value)) {
        return 0;
    }
    ensure(is_array($value) || is_object($value), 'a value is not a string');
    $items = (array) $value;
    return array_sum(array_map('count_keys', $items)) + (is_object($value) ? count($items) : 0);
}

/** RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space, no needless escapes. */
function canonical(mixed $value): string
{
    if (is_string($value)) {
        return json_encode($value, JSON_AS_IT_IS | JSON_THROW_ON_ERROR);
    }
    if (is_array($value) && array_is_list($value)) {
        return '[' . implode(',', array_map('canonical', $value)) . ']';
    }
    $pairs = [];
    foreach ((array) $value as $name => $item) {
        $pairs[iconv('UTF-8', 'UTF-16BE', "$name")] = canonical("$name") . ':' . canonical($item);
    }
    ksort($pairs, SORT_STRING);
    return '{' . implode(',', $pairs) . '}';
}

/** The bytes, if the text is exactly what the encoding writes: base64_decode lets white space and stray bits pass. */
function decode(string $text, string $encoding): string
{
    if ($encoding === 'hex') {
        ensure(strlen($text) % 2 === 0 && ($text === '' || ctype_xdigit($text)), 'not hexadecimal');
        return hex2bin($text);
    }
    $raw = (string) base64_decode($encoding === 'base64' ? $text : strtr($text, '-_', '+/'));
    $again = base64_encode($raw);
    ensure($text === ($encoding === 'base64' ? $again : rtrim(strtr($again, '+/', '-_'), '=')), "not $encoding");
    return $raw;
}

function key_bytes(string $text): string
{
    $raw = (string) base64_decode(str_replace('whsec_', '', $text), true);
    return strlen($raw) === 32 ? $raw : throw new LogicException('a key is the base64 of 32 bytes');
}

/** Returns whether it was new. A table with a unique key on the id, written with your own work, is better. */
function store_once(string $inbox, array $ipn): bool
{
    if (!preg_match('/^[0-9A-Za-z-]{1,64}$/D', $ipn['id'])) {
        throw new RuntimeException('the id is no file name');
    }
    $path = "$inbox/{$ipn['id']}.json";
    $temporary = tempnam($inbox, '.new');
    try {
        $file = fopen($temporary, 'w');
        if (!fwrite($file, json_encode($ipn, JSON_AS_IT_IS | JSON_THROW_ON_ERROR)) || !fsync($file)) {
            throw new RuntimeException('the IPN cannot be written');
        }
        $isNew = @link($temporary, $path); // Of two at once, one fails.
        return $isNew || file_exists($path) ? $isNew : throw new RuntimeException('the IPN cannot be linked');
    } finally {
        unlink($temporary);
    }
}

/** Answers one request: the status. */
function receive(object $agreed, string $inbox): int
{
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        header('Allow: POST');
        return 405;
    }
    $body = file_get_contents('php://input', length: BODY_BYTES_MAX + 1);
    if (strlen($body) > BODY_BYTES_MAX) {
        return 413;
    }
    $headers = [];
    foreach (['webhook-id', 'webhook-timestamp', 'webhook-signature'] as $name) {
        $headers[$name] = $_SERVER['HTTP_' . strtoupper(strtr($name, '-', '_'))] ?? '';
    }
    try {
        $ipn = verify($agreed, $body, $headers, time());
        $isNew = store_once($inbox, $ipn);
        error_log("{$ipn['transaction_type']} {$ipn['id']}, new: " . ($isNew ? 'yes' : 'no'));
        return 204;
    } catch (Refused $why) {
        error_log("refused: {$why->getMessage()}");
        return 400;
    } catch (Throwable $error) { // Answered 500, so that the IPN comes again.
        error_log("not stored: {$error->getMessage()}");
        return 500;
    }
}

if (PHP_SAPI !== 'cli') {
    ini_set('display_errors', 'stderr');
    $inbox = getenv('PAYBELL_INBOX') ?: 'inbox';
    is_dir($inbox) || mkdir($inbox, 0700);
    $agreed = json_decode(file_get_contents(getenv('PAYBELL_AGREEMENT') ?: 'agreement.json'));
    http_response_code(receive($agreed, $inbox));
}
