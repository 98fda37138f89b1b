<?php

declare(strict_types=1);

namespace Paybell;

/** @internal The decrypted JSON: strict reading, the tables' names, the IPN's own signature. */
final class Content
{
    private const LEVELS_MAX = 64;
    private const AS_IT_IS = JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS | JSON_UNESCAPED_SLASHES;

    /** @return array{CardIpn|SettlementIpn, object} the IPN, and the object as it was sent */
    public static function check(Keys $keys, string $plain): array
    {
        $read = self::parse($plain);
        $wire = (array) $read;
        $settles = isset($wire['saleQuantity'])
            || ($wire['transaction_type'] ?? '') === 'SETTLE' && isset($wire['settlementList']);
        $kind = $settles ? 'settlement' : 'card';
        self::textsOnly($read);
        $settings = $keys->fields;
        sort($settings); // "extended" first: it says more of the same IPN.
        foreach ($settings as $setting) {
            ['fields' => $fields, 'added' => $added] = contract('tables')[$kind][$setting];
            // With the whole IPN signed, one without these fields has the same signed string.
            if (array_diff_key(array_flip($added), $wire)) {
                continue;
            }
            $ipn = self::byTableNames($wire, $fields);
            $matches = fn(string $one) => hash_equals($one, strtolower($ipn['signature']));
            if (array_filter(self::signatures($keys, $kind, $setting, $wire, $ipn), $matches)) {
                return [$settles ? self::settlement($ipn) : self::card($ipn), $read];
            }
        }
        throw new Refused('signature');
    }

    private static function card(array $ipn): CardIpn
    {
        return new CardIpn(...['cardScheme' => strtoupper($ipn['cardScheme'])] + $ipn);
    }

    private static function settlement(array $ipn): SettlementIpn
    {
        $list = array_map(fn(array $entry) => new SettlementEntry(...$entry), $ipn['settlementList']);
        return new SettlementIpn(...['settlementList' => $list] + $ipn);
    }

    /**
     * Section 5.1, by each signing key. The extended fields follow the agreed list, unless it names them. If the
     * receiver accepts IPNs without them too, a list that names them skips them there.
     *
     * @return list<string>
     */
    public static function signatures(Keys $keys, string $kind, string $setting, array $wire, array $ipn): array
    {
        ['signed' => $usual, 'added' => $added] = contract('tables')[$kind][$setting];
        $names = $keys->signing[$kind] ?? $usual;
        $names = [...array_intersect($names, array_keys($ipn)), ...array_diff($added, $names)];
        $text = $keys->signing['mode'] === 'whole'
            ? self::canonical((object) array_diff_key($wire, ['signature' => '']))
            : implode('&', array_map(fn(string $name) => "$name=$ipn[$name]", $names));
        return array_map(fn(string $key) => hash_hmac('sha256', $text, $key), $keys->all('signingKey'));
    }

    private static function byTableNames(array $wire, array $fields): array
    {
        $ipn = [];
        foreach ($fields as $names) {
            $found = array_values(array_intersect_key($wire, array_flip($names)));
            if (count($found) > 1) {
                throw new Refused('two_names');
            }
            $isList = $names[0] === 'settlementList';
            $value = $found[0] ?? ($isList ? [] : '');
            if ($isList ? !is_array($value) : !is_string($value)) {
                throw new Refused('wrong_type');
            }
            $ipn[$names[0]] = $isList ? array_map(self::entry(...), $value) : $value;
        }
        return $ipn;
    }

    private static function entry(mixed $entry): array
    {
        return is_object($entry) ? self::byTableNames((array) $entry, contract('entry')) : throw new Refused('wrong_type');
    }

    /** Section 2: all scalars are strings. This applies to unknown fields as well. */
    private static function textsOnly(mixed $value): void
    {
        if (is_array($value) || is_object($value)) {
            array_map(self::textsOnly(...), (array) $value);
        } elseif (!is_string($value)) {
            throw new Refused('wrong_type');
        }
    }

    /** One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels. */
    public static function parse(string $raw): object
    {
        if (!preg_match('//u', $raw)) {
            throw new Refused('not_text');
        }
        $value = json_decode($raw, depth: self::LEVELS_MAX + 1); // PHP counts the scalars as a level.
        if (!is_object($value)) {
            throw new Refused('not_json');
        }
        // json_decode keeps the last of two equal keys. Each string with a colon after it is a key.
        $keys = preg_match_all('/"(?:[^"\\\\]++|\\\\.)*+"(?:\s*+:|(*SKIP)(*FAIL))/s', $raw);
        return $keys === self::countKeys($value) ? $value : throw new Refused('duplicate_key');
    }

    private static function countKeys(mixed $value): int
    {
        if (!is_array($value) && !is_object($value)) {
            return 0;
        }
        $items = (array) $value;
        return array_sum(array_map(self::countKeys(...), $items)) + (is_object($value) ? count($items) : 0);
    }

    /** RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space, no needless escapes. */
    private static function canonical(mixed $value): string
    {
        if (is_string($value)) {
            return json_encode($value, self::AS_IT_IS | JSON_THROW_ON_ERROR);
        }
        if (is_array($value)) {
            return '[' . implode(',', array_map(self::canonical(...), $value)) . ']';
        }
        $pairs = [];
        foreach ((array) $value as $name => $item) {
            $name = (string) $name;
            $pairs[iconv('UTF-8', 'UTF-16BE', $name)] = self::canonical($name) . ':' . self::canonical($item);
        }
        ksort($pairs, SORT_STRING);
        return '{' . implode(',', $pairs) . '}';
    }
}
