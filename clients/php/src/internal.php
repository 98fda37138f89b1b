<?php

/** @internal What open(), sample() and catchUp() are made of. */

declare(strict_types=1);

namespace Paybell;

/** Longer bodies are not tried with other settings: refusing a body must not cost more than sending it. */
const TRIED_BYTES_MAX = 1024 * 1024;

/** A table of the contract, which is generated from Paybell's own code. */
function contract(string $table): array
{
    static $contract = null;
    return ($contract ??= json_decode(file_get_contents(__DIR__ . '/contract.json'), true))[$table];
}

/**
 * Standard Webhooks v1. Comes before anything is decrypted: a sender without the secret gets no further.
 *
 * @param array<string, string> $headers by their names in lower case
 */
function checkSender(Keys $keys, string $body, array $headers, int $now): void
{
    isset($headers['webhook-id'], $headers['webhook-timestamp'], $headers['webhook-signature'])
        || throw new Refused('missing_headers');
    if (!isSigned($keys->all('webhookSecret'), $body, $headers)) {
        $tried = strlen($body) <= TRIED_BYTES_MAX ? $body : '';
        $isPair = preg_match('/^\s*\{\s*"data"\s*:\s*("(?:[^"\\\\]|\\\\\\/)*+")\s*\}\s*$/D', $tried, $pair);
        $sent = $isPair ? stripslashes("{\"data\":$pair[1]}") : '';
        throw new Refused(mistakeOf($body) ?? match (true) {
            $isPair && isSigned($keys->all('webhookSecret'), $sent, $headers) => 'rewritten_body',
            $tried !== '' && isSigned($keys->all('encryptionKey', 'signingKey'), $tried, $headers) => 'swapped_keys',
            default => 'webhook_signature',
        });
    }
    $age = $now - (int) $headers['webhook-timestamp'];
    $finding = 'webhook-timestamp is ' . abs($age) . ' s ' . ($age > 0 ? 'old' : 'ahead') . ' by this clock.';
    abs($age) <= FRESHNESS_SECONDS || throw new Refused('not_fresh', $finding);
}

/** Whether one of the secrets has signed it. */
function isSigned(array $secrets, string $body, array $headers): bool
{
    ['webhook-id' => $id, 'webhook-timestamp' => $timestamp, 'webhook-signature' => $signature] = $headers;
    $macs = array_map(fn(string $secret) => mac($secret, $id, $timestamp, $body), $secrets);
    $isOne = fn(string $entry) => (bool) array_filter($macs, fn(string $mac) => hash_equals($mac, $entry));
    return preg_match('/^[^.\s]{1,256}\.[0-9]{1,12}$/Du', "$id.$timestamp")
        && array_filter(explode(' ', $signature), $isOne);
}

function mac(string $secret, string $id, string $timestamp, string $body): string
{
    return 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $secret, true));
}

/** The mistake that the body itself shows, whoever sent it. */
function mistakeOf(string $body): ?string
{
    $starts = fn(string $text) => str_starts_with(ltrim(substr($body, 0, 64)), $text);
    $found = array_filter(contract('starts'), $starts, ARRAY_FILTER_USE_KEY);
    return $body === '' ? 'empty_body' : array_values($found)[0] ?? null;
}

/** Why a body does not open, found with other settings: only for the holder of the webhook secret. */
function explained(Keys $keys, string $body, string $code): string
{
    $tries = contract('tries')[$code === 'signature' ? 'signature' : 'body'];
    foreach (strlen($body) <= TRIED_BYTES_MAX ? $tries : [] as $try) {
        $versionsOf = fn(array $kinds) => array_map(fn(string $key) => ['', $key], $keys->all(...$kinds));
        $versions = array_map($versionsOf, $try['keys'] ?? []) + $keys->versions;
        try {
            decrypted(new Keys($versions, $try + $keys->agreed), $body);
        } catch (Refused $refused) {
            if ($code === 'signature' || $refused->getCode() !== 'signature') {
                continue;
            }
        }
        return $try['code'];
    }
    return $code;
}

/** @return array{CardIpn|SettlementIpn, object, string} the IPN, the object as it was sent, the id of the key */
function decrypted(Keys $keys, string $body): array
{
    $envelope = (array) parse($body);
    $isEnvelope = array_keys($envelope) === ['data'] && is_string($envelope['data']);
    [$kid, $decrypt] = unsealed($keys, $isEnvelope ? $envelope['data'] : throw new Refused('envelope'));
    $isMeant = fn(array $version) => $kid === null || in_array($version[0], ['', $kid], true);
    $versions = array_filter($keys->versions['encryptionKey'], $isMeant);
    $code = $versions ? 'decryption' : 'unknown_key';
    foreach ($versions as [$id, $key]) {
        $plain = $decrypt($key);
        try { // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
            return $plain === false ? throw new Refused($code) : [...checked($keys, $plain), $id ?: $kid ?? ''];
        } catch (Refused $refused) {
            $code = $refused->getCode();
        }
    }
    throw new Refused($code);
}

/** @return array{CardIpn|SettlementIpn, object} */
function checked(Keys $keys, string $plain): array
{
    $read = parse($plain);
    $wire = is_object($read) ? (array) $read : throw new Refused($read);
    // What JSON has outside of its strings. Section 2: all scalars are strings, those of unknown fields as well.
    preg_match('/"(?:[^"\\\\]++|\\\\.)*+"(*SKIP)(*FAIL)|[^][{}:,\s]/s', $plain) && throw new Refused('wrong_type');
    $settles = isset($wire['saleQuantity'])
        || ($wire['transaction_type'] ?? '') === 'SETTLE' && isset($wire['settlementList']);
    $kind = $settles ? 'settlement' : 'card';
    // With the whole IPN signed, one without the added fields has the same signed string.
    $isSent = fn(string $setting) => !array_diff_key(array_flip(contract('tables')[$kind][$setting]['added']), $wire);
    foreach (array_filter($keys->agreed['fields'], $isSent) as $setting) {
        $ipn = byTableNames($read, contract('tables')[$kind][$setting]['fields']);
        $matches = fn(string $one) => hash_equals($one, strtolower($ipn['signature']));
        if (array_filter($keys->signatures($kind, $setting, $wire, $ipn), $matches)) {
            $scheme = ['cardScheme' => strtoupper($ipn['cardScheme'] ?? '')];
            return [$settles ? new SettlementIpn(...$ipn) : new CardIpn(...$scheme + $ipn), $read];
        }
    }
    throw new Refused('signature');
}

function byTableNames(mixed $wire, array $fields): array
{
    $wire = is_object($wire) ? (array) $wire : throw new Refused('wrong_type');
    $entry = fn(mixed $entry) => new SettlementEntry(...byTableNames($entry, contract('entry')));
    foreach ($fields as $names) {
        $found = array_values(array_intersect_key($wire, array_flip($names)));
        count($found) <= 1 || throw new Refused('two_names');
        $isList = $names[0] === 'settlementList';
        $value = $found[0] ?? ($isList ? [] : '');
        gettype($value) === ($isList ? 'array' : 'string') || throw new Refused('wrong_type');
        $ipn[$names[0]] = $isList ? array_map($entry, $value) : $value;
    }
    return $ipn;
}

/**
 * One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels.
 *
 * @return object|string the object, or the code of what is wrong
 */
function parse(string $raw): object|string
{
    $value = json_decode($raw, depth: 65); // PHP counts the scalars as a level.
    // json_decode keeps the last of two equal keys. Each string with a colon after it is a key.
    $keysOf = fn(string $text) => preg_match_all('/"(?:[^"\\\\]++|\\\\.)*+"(?:\s*+:|(*SKIP)(*FAIL))/s', $text);
    return match (true) {
        !preg_match('//u', $raw) => 'not_text',
        !is_object($value) => 'not_json',
        $keysOf($raw) !== $keysOf(json_encode($value, JSON_PARTIAL_OUTPUT_ON_ERROR)) => 'duplicate_key',
        default => $value,
    };
}

/** RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space, no needless escapes. */
function canonical(object $ipn): string
{
    return json_encode(sorted($ipn), JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS | JSON_UNESCAPED_SLASHES);
}

function sorted(array|object $value): array|object
{
    $items = array_map(fn(mixed $item) => is_string($item) ? $item : sorted($item), (array) $value);
    $utf16 = fn(int|string $name) => iconv('UTF-8', 'UTF-16BE', (string) $name);
    is_object($value) && uksort($items, fn($one, $other) => strcmp($utf16($one), $utf16($other)));
    return is_object($value) ? (object) $items : $items;
}

/** @return array{?string, \Closure(string): (string|false)} the kid of a JWE, and what decrypts `data` with a key */
function unsealed(Keys $keys, string $data): array
{
    $cipher = strtr($keys->agreed['cipher'], ['jwe' => 'aes-256-gcm']);
    [$ivBytes, $tagBytes] = [openssl_cipher_iv_length($cipher), $cipher === 'aes-256-gcm' ? 16 : 0];
    [$header, $parts, $encoding] = ['', [$data], $keys->agreed['encoding']];
    if ($keys->agreed['cipher'] === 'jwe') {
        // An IV of 12 bytes, and a tag of 16: PHP itself would accept one of four.
        preg_match('/^([^.]*+)\.\.([^.]{16})\.([^.]*+)\.([^.]{22})$/D', $data, $parts) || throw new Refused('encoding');
        [$header, $parts, $encoding] = [$parts[1], array_slice($parts, 2), 'base64url'];
    }
    $raw = implode(array_map(fn(string $part) => decode($part, $encoding), $parts));
    $isWhole = strlen($raw) >= 28 && ($tagBytes > 0 || strlen($raw) % 16 === 0);
    $end = $isWhole ? strlen($raw) - $tagBytes : throw new Refused('encoding');
    [$iv, $sealed, $tag] = [substr($raw, 0, $ivBytes), substr($raw, $ivBytes, $end - $ivBytes), substr($raw, $end)];
    $decrypt = fn(string $key) => openssl_decrypt($sealed, $cipher, $key, OPENSSL_RAW_DATA, $iv, $tag, $header);
    return [$keys->agreed['cipher'] === 'jwe' ? kidOf($header) : null, $decrypt];
}

function kidOf(string $header): string
{
    $fields = (array) parse(decode($header, 'base64url', 'jwe_header'));
    $isUnknown = array_key_exists('zip', $fields) || array_key_exists('crit', $fields);
    $isUsual = ($fields['alg'] ?? '') === 'dir' && ($fields['enc'] ?? '') === 'A256GCM' && !$isUnknown;
    return $isUsual && is_string($fields['kid'] ?? null) ? $fields['kid'] : throw new Refused('jwe_header');
}

/** Encrypts with the first version of the key. */
function sealed(Keys $keys, string $plain): string
{
    [[$id, $key]] = $keys->versions['encryptionKey'];
    $cipher = strtr($keys->agreed['cipher'], ['jwe' => 'aes-256-gcm']);
    $fields = json_encode(['alg' => 'dir', 'enc' => 'A256GCM', 'kid' => $id]);
    $header = $keys->agreed['cipher'] === 'jwe' ? encode($fields, 'base64url') : '';
    $iv = random_bytes(openssl_cipher_iv_length($cipher));
    $sealed = openssl_encrypt($plain, $cipher, $key, OPENSSL_RAW_DATA, $iv, $tag, $header);
    $parts = array_map(fn(string $part) => encode($part, 'base64url'), [$iv, $sealed, (string) $tag]);
    return $header ? "$header.." . implode('.', $parts) : encode($iv . $sealed . $tag, $keys->agreed['encoding']);
}

/** The bytes, if the text is exactly what an encoder writes: base64_decode lets white space and stray bits pass. */
function decode(string $text, string $encoding, string $otherwise = 'encoding'): string
{
    $isHex = $encoding === 'hex';
    $raw = (string) ($isHex ? @hex2bin($text) : base64_decode(strtr($text, '-_', '+/')));
    return encode($raw, $encoding) === ($isHex ? strtolower($text) : $text) ? $raw : throw new Refused($otherwise);
}

function encode(string $raw, string $encoding): string
{
    return match ($encoding) {
        'hex' => bin2hex($raw),
        'base64url' => rtrim(strtr(base64_encode($raw), '+/', '-_'), '='),
        default => base64_encode($raw),
    };
}

/** A UUID v4. */
function newId(): string
{
    $random = array_map(fn(int $digits) => random_int(0, 16 ** $digits - 1), [8, 4, 3, 3, 12]);
    return vsprintf('%08x-%04x-4%03x-a%03x-%012x', $random);
}

/**
 * One call of the pull API.
 *
 * @return array{items: list<array{data: string, headers: array<string, string>}>, next: string}
 */
function page(Keys $keys, string $path, float $timeout): array
{
    ['baseUrl' => $url, 'apiKey' => $apiKey] = $keys->agreed;
    preg_match('~^(https://|http://(localhost|127\.[0-9.]+|\[::1\])(:\d+)?(/|$))~D', $url)
        || throw new PaybellError('wrong_option', 'baseUrl is not https://; http:// is for localhost alone.');
    // A redirection would be sent the API key.
    $how = ['header' => "Authorization: Bearer $apiKey", 'follow_location' => 0, 'ignore_errors' => true];
    $context = stream_context_create(['http' => [...$how, 'timeout' => $timeout]]);
    $stream = @fopen(rtrim($url, '/') . $path, 'r', false, $context) ?: throw new PaybellError('no_answer');
    $read = json_decode(stream_get_contents($stream), true);
    ['timed_out' => $isLate, 'wrapper_data' => [$status]] = stream_get_meta_data($stream);
    $isLate && throw new PaybellError('no_answer');
    $isPage = substr($status, 9, 3) === '200' && isset($read['items'], $read['next']);
    $code = is_string($read['code'] ?? null) ? $read['code'] : 'not_paybell';
    $finding = $read['detail'] ?? "$status, without an answer of Paybell's.";
    return $isPage ? $read : throw new PaybellError($code, $finding, $read['remedy'] ?? '');
}
