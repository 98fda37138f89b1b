<?php

declare(strict_types=1);

namespace Paybell;

const FRESHNESS_SECONDS = 300;
const BODY_BYTES_MAX = 16 * 1024 * 1024;
/** Longer bodies are not tried with other settings: refusing a body must not cost more than sending it. */
const TRIED_BYTES_MAX = 1024 * 1024;

/** Keys that everybody knows: for tests only. */
const SAMPLE_KEYS = [
    'encryptionKey' => 'AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=',
    'signingKey' => 'AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=',
    'webhookSecret' => 'whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=',
];

/**
 * Opens a POST: verifies who sent it and when, decrypts it, verifies its own signature.
 *
 * @param string $body the bytes as received, before any JSON parser
 * @param iterable<string, string|string[]> $headers as getallheaders() or PSR-7 gives them
 * @param Keys|KeyFile|array<string, mixed> $keys
 * @throws Refused for anything else than an authentic, fresh IPN
 */
function open(
    string $body,
    iterable $headers,
    #[\SensitiveParameter] Keys|KeyFile|array $keys,
    ?int $now = null,
): Received {
    $keys = Keys::from($keys);
    if (strlen($body) > BODY_BYTES_MAX) {
        throw new Refused('too_large');
    }
    $got = [];
    foreach ($headers as $name => $value) {
        $got[strtolower((string) $name)][] = implode(', ', (array) $value);
    }
    $got = array_map(fn(array $values) => implode(', ', $values), $got);
    Sender::check($keys, $body, $got, $now ?? time());
    $named = $got['paybell-key'] ?? '';
    try {
        [$ipn, $wire, $keyId] = Envelope::open($keys, $body);
        return new Received($ipn, $wire, $got['webhook-id'], $keyId ?: $named, $got);
    } catch (Refused $refused) {
        $code = Sender::mistakeOf($body) ?? (strlen($body) > TRIED_BYTES_MAX
            ? $refused->getCode()
            : Envelope::explain($keys, $body, $refused->getCode()));
        $version = json_encode(substr($named, 0, 64), JSON_INVALID_UTF8_SUBSTITUTE);
        $finding = "No encryptionKey decrypts it; the message names the version $version.";
        throw new Refused($code, $code === 'decryption' && $named !== '' ? $finding : '');
    }
}

/**
 * An IPN as Paybell would POST it, signed and encrypted with the first version of each key: for tests of your callback.
 *
 * @param string $kind sale, decline, void, preauth, preauth_complete, cancel, refund or settlement
 * @param Keys|KeyFile|array<string, mixed> $keys
 * @param array<string, mixed> $fields replace those of the IPN
 * @return array{string, array<string, string>, array<string, mixed>} body, headers, IPN
 */
function sample(
    string $kind = 'sale',
    #[\SensitiveParameter] Keys|KeyFile|array $keys = SAMPLE_KEYS,
    array $fields = [],
): array {
    $samples = contract('samples');
    $what = $samples[$kind]
        ?? throw new PaybellError('wrong_option', "There is no sample $kind, but " . implode(', ', array_keys($samples)) . '.');
    [$keys, $table] = [Keys::from($keys), $kind === 'settlement' ? $kind : 'card'];
    $setting = min($keys->fields); // "extended" if it is one of them
    $names = array_column(contract('tables')[$table][$setting]['fields'], 0);
    $ipn = array_intersect_key(['id' => newId(), 'reqId' => newId()] + $what['ipn'], array_flip($names));
    if ($unknown = array_key_first(array_diff_key($fields, $ipn))) {
        throw new PaybellError('wrong_option', "A $kind has no field $unknown.");
    }
    $ipn = $fields + $ipn;
    $wire = (array) json_decode(json_encode($ipn, JSON_THROW_ON_ERROR));
    [$ipn['signature']] = Content::signatures($keys, $table, $setting, $wire, $ipn);
    $plain = json_encode($ipn, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
    $body = json_encode(['data' => Envelope::seal($keys, $plain)], JSON_UNESCAPED_SLASHES);
    [$id, $timestamp] = [newId(), (string) time()];
    $headers = $what['headers'] + [
        'webhook-id' => $id,
        'webhook-timestamp' => $timestamp,
        'webhook-signature' => Sender::sign($keys->all('webhookSecret')[0], $id, $timestamp, $body),
    ];
    return [$body, $headers, $ipn];
}

/** @internal A UUID v4. */
function newId(): string
{
    $hex = str_split(bin2hex(random_bytes(16)), 4);
    $hex[3] = '4' . substr($hex[3], 1);
    $hex[4] = dechex(hexdec($hex[4][0]) & 3 | 8) . substr($hex[4], 1);
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', $hex);
}

/**
 * Fetches everything after a cursor (null: from the oldest; "now": from this moment). Gives page after page, each by the
 * cursor to store once it is processed. It ends when nothing is left, with $waitSeconds (1 to 30) when nothing arrived
 * for that long. The file of the keys names `baseUrl` and `apiKey`.
 *
 * @param Keys|KeyFile|array<string, mixed> $keys
 * @return \Generator<string, list<Received>>
 * @throws PaybellError with the service's code, or Refused: then its page was not given
 */
function catchUp(
    ?string $cursor,
    #[\SensitiveParameter] Keys|KeyFile|array $keys,
    int $pageMax = 100,
    ?int $waitSeconds = null,
    float $timeout = 60,
): \Generator {
    do {
        $setup = Keys::from($keys);
        $query = http_build_query(['limit' => $pageMax, 'after' => $cursor, 'wait' => $waitSeconds]);
        ['items' => $items, 'next' => $cursor] = page($setup, "/v1/notifications?$query", $timeout);
        $bodyOf = fn(array $item) => json_encode(['data' => $item['data']], JSON_UNESCAPED_SLASHES);
        $items = array_map(fn(array $item) => open($bodyOf($item), $item['headers'], $setup), $items);
        yield $cursor => $items;
    } while ($items !== []);
}

/**
 * @internal One call of the pull API.
 * @return array{items: list<array{data: string, headers: array<string, string>}>, next: string}
 */
function page(Keys $keys, string $path, float $timeout): array
{
    if (!preg_match('~^(https://|http://(localhost|127\.[0-9.]+|\[::1\])(:\d+)?(/|$))~D', $keys->baseUrl)) {
        throw new PaybellError('wrong_option', 'baseUrl is not https://; http:// is for localhost alone.');
    }
    // A redirection would be sent the API key.
    $how = ['header' => "Authorization: Bearer $keys->apiKey", 'follow_location' => 0, 'ignore_errors' => true];
    $context = stream_context_create(['http' => [...$how, 'timeout' => $timeout]]);
    $stream = @fopen(rtrim($keys->baseUrl, '/') . $path, 'r', false, $context);
    $answer = $stream === false ? '' : stream_get_contents($stream);
    if ($stream === false || stream_get_meta_data($stream)['timed_out']) {
        throw new PaybellError('no_answer');
    }
    $read = json_decode($answer, true);
    $status = (int) substr(stream_get_meta_data($stream)['wrapper_data'][0], 9, 3);
    if ($status === 200 && isset($read['items'], $read['next'])) {
        return $read;
    }
    if (is_string($code = $read['code'] ?? null)) {
        throw new PaybellError($code, $read['detail'] ?? '', $read['remedy'] ?? '');
    }
    throw new PaybellError('not_paybell', "HTTP $status without an answer of Paybell's.");
}

/** @internal A table of the contract, which is generated from Paybell's own code. */
function contract(string $table): array
{
    static $contract;
    $contract ??= json_decode(file_get_contents(__DIR__ . '/contract.json'), true);
    return $contract[$table];
}
