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
            $isExtended = $setting === 'extended';
            // With the whole IPN signed, one without these fields has the same signed string.
            if ($isExtended && array_diff_key(array_flip(Contract::table($kind)['extended']), $wire)) {
                continue;
            }
            $ipn = self::byTableNames($wire, $kind, $isExtended);
            $text = self::signedText($keys->signing, $kind, $wire, $ipn, $isExtended);
            $matches = fn(string $key) => hash_equals(hash_hmac('sha256', $text, $key), strtolower($ipn['signature']));
            if (array_filter($keys->all('signingKey'), $matches)) {
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

    /** Section 5.1. The extended fields follow the agreed list, unless it names them. */
    public static function signedText(array $signing, string $kind, array $wire, array $ipn, bool $isExtended): string
    {
        if ($signing['mode'] === 'whole') {
            return self::canonical((object) array_diff_key($wire, ['signature' => '']));
        }
        ['signed' => $usual, 'extended' => $added] = Contract::table($kind);
        $names = $signing[$kind] ?? $usual;
        // A list for both kinds of IPN may name them: they are no part of the other kind.
        $names = $isExtended ? [...$names, ...array_diff($added, $names)] : array_diff($names, $added);
        return implode('&', array_map(fn(string $name) => "$name=" . ($ipn[$name] ?? ''), $names));
    }

    private static function byTableNames(array $wire, string $table, bool $isExtended = false): array
    {
        ['fields' => $fields, 'extended' => $added] = Contract::table($table);
        $ipn = [];
        foreach ([...$fields, ...array_map(fn(string $name) => [$name, ''], $isExtended ? $added : [])] as $field) {
            [$name, $alias] = $field;
            if ($alias !== '' && isset($wire[$name], $wire[$alias])) {
                throw new Refused('two_names');
            }
            $isList = $name === 'settlementList';
            $value = $wire[$name] ?? $wire[$alias === '' ? $name : $alias] ?? ($isList ? [] : '');
            if ($isList ? !is_array($value) : !is_string($value)) {
                throw new Refused('wrong_type');
            }
            $ipn[$name] = $isList ? array_map(self::entry(...), $value) : $value;
        }
        return $ipn;
    }

    private static function entry(mixed $entry): array
    {
        return is_object($entry) ? self::byTableNames((array) $entry, 'entry') : throw new Refused('wrong_type');
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
