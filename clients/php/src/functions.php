<?php

declare(strict_types=1);

namespace Paybell;

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
    strlen($body) <= BODY_BYTES_MAX || throw new Refused('too_large');
    $got = array_map(fn(mixed $value) => implode(', ', (array) $value), array_change_key_case([...$headers]));
    checkSender($keys, $body, $got, $now ?? time());
    $named = $got['paybell-key'] ?? '';
    try {
        [$ipn, $wire, $keyId] = decrypted($keys, $body);
        return new Received($ipn, $wire, $got['webhook-id'], $keyId ?: $named, $got);
    } catch (Refused $refused) {
        $code = mistakeOf($body) ?? explained($keys, $body, $refused->getCode());
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
function sample(string $kind = 'sale', Keys|KeyFile|array $keys = SAMPLE_KEYS, array $fields = []): array
{
    $samples = contract('samples');
    isset($samples[$kind])
        || throw new PaybellError('wrong_option', 'The samples are ' . implode(', ', array_keys($samples)) . '.');
    [$keys, $table] = [Keys::from($keys), $kind === 'settlement' ? $kind : 'card'];
    $setting = $keys->agreed['fields'][0];
    $names = array_column(contract('tables')[$table][$setting]['fields'], 0);
    $own = ['id' => newId(), 'reqId' => newId()];
    $ipn = array_intersect_key($own + $samples[$kind]['ipn'], array_flip($names));
    $unknown = implode(', ', array_keys(array_diff_key($fields, $ipn)));
    $unknown === '' || throw new PaybellError('wrong_option', "A $kind has no field $unknown.");
    $ipn = $fields + $ipn;
    $wire = (array) json_decode(json_encode($ipn, JSON_THROW_ON_ERROR));
    [$ipn['signature']] = $keys->signatures($table, $setting, $wire, $ipn);
    $plain = json_encode($ipn, JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
    $body = json_encode(['data' => sealed($keys, $plain)], JSON_UNESCAPED_SLASHES);
    [$id, $timestamp] = [newId(), (string) time()];
    $mac = mac($keys->all('webhookSecret')[0], $id, $timestamp, $body);
    $posted = ['webhook-id' => $id, 'webhook-timestamp' => $timestamp, 'webhook-signature' => $mac];
    return [$body, $samples[$kind]['headers'] + $posted, $ipn];
}

/**
 * Fetches everything after a cursor (null: from the oldest; "now": from this moment). Gives page after page, each by
 * the cursor to store once it is processed. It ends when nothing is left, with $waitSeconds (1 to 30) when nothing
 * arrived for that long. The file of the keys names `baseUrl` and `apiKey`.
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
