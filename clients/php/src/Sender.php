<?php

declare(strict_types=1);

namespace Paybell;

/** @internal Who sent it, and when: Standard Webhooks v1. */
final class Sender
{
    /**
     * Comes before anything is decrypted: a sender without the secret gets no further.
     *
     * @param array<string, string> $headers by their names in lower case
     */
    public static function check(Keys $keys, string $body, array $headers, int $now): void
    {
        if (!isset($headers['webhook-id'], $headers['webhook-timestamp'], $headers['webhook-signature'])) {
            throw new Refused('missing_headers');
        }
        [$id, $timestamp] = [$headers['webhook-id'], $headers['webhook-timestamp']];
        $isShaped = preg_match('/^[^.\s]{1,256}$/Du', $id) && preg_match('/^[0-9]{1,12}$/D', $timestamp);
        $entries = explode(' ', $headers['webhook-signature']);
        $sign = fn(string $secret, string $text) => self::sign($secret, $id, $timestamp, $text);
        $isOne = fn(string $mac) => (bool) array_filter($entries, fn(string $entry) => hash_equals($mac, $entry));
        $matches = fn(string $text, array $secrets) =>
            $isShaped && array_filter($secrets, fn(string $secret) => $isOne($sign($secret, $text)));
        if (!$matches($body, $keys->all('webhookSecret'))) {
            $isTried = strlen($body) <= TRIED_BYTES_MAX;
            $isPair = preg_match('/^\s*\{\s*"data"\s*:\s*("(?:[^"\\\\]|\\\\\\/)*+")\s*\}\s*$/D', $isTried ? $body : '', $pair);
            throw new Refused(match (true) {
                self::mistakeOf($body) !== null => self::mistakeOf($body),
                $isPair && $matches(stripslashes("{\"data\":$pair[1]}"), $keys->all('webhookSecret')) => 'rewritten_body',
                $isTried && $matches($body, $keys->all('encryptionKey', 'signingKey')) => 'swapped_keys',
                default => 'webhook_signature',
            });
        }
        $age = $now - (int) $timestamp;
        if (abs($age) > FRESHNESS_SECONDS) {
            $isOld = $age > 0 ? 'old' : 'ahead';
            throw new Refused('not_fresh', 'webhook-timestamp is ' . abs($age) . " s $isOld by this clock.");
        }
    }

    public static function sign(string $secret, string $id, string $timestamp, string $body): string
    {
        return 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $secret, true));
    }

    /** The mistake that the body itself shows, whoever sent it. */
    public static function mistakeOf(string $body): ?string
    {
        $starts = fn(string $text) => str_starts_with(ltrim(substr($body, 0, 64)), $text);
        $found = array_filter(contract('starts'), $starts, ARRAY_FILTER_USE_KEY);
        return $body === '' ? 'empty_body' : array_values($found)[0] ?? null;
    }
}
