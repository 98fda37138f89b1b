<?php

declare(strict_types=1);

namespace Paybell;

/** @internal The body `{"data": …}`: encrypted and encoded as agreed. */
final class Envelope
{
    /** @return array{CardIpn|SettlementIpn, object, string} the IPN, the object as it was sent, the id of the key */
    public static function open(Keys $keys, string $body): array
    {
        try {
            $envelope = (array) Content::parse($body);
        } catch (Refused) {
            $envelope = [];
        }
        if (array_keys($envelope) !== ['data'] || !is_string($envelope['data'])) {
            throw new Refused('envelope');
        }
        [$kid, $iv, $sealed, $tag, $authenticated] = self::takeApart($keys, $envelope['data']);
        $cipher = $keys->cipher === 'aes-256-cbc' ? 'aes-256-cbc' : 'aes-256-gcm';
        $code = 'unknown_key';
        foreach ($keys->versions['encryptionKey'] as [$id, $key]) {
            if ($kid !== null && $id !== '' && $id !== $kid) {
                continue;
            }
            $plain = openssl_decrypt($sealed, $cipher, $key, OPENSSL_RAW_DATA, $iv, $tag, $authenticated);
            try { // A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
                $found = $plain === false ? throw new Refused('decryption') : Content::check($keys, $plain);
                return [...$found, $id ?: $kid ?? ''];
            } catch (Refused $refused) {
                $isWorse = $refused->getCode() === 'decryption' && $code !== 'unknown_key';
                $code = $isWorse ? $code : $refused->getCode();
            }
        }
        throw new Refused($code);
    }

    /** The kid, if the message names one, the IV, the ciphertext, its tag, the additional authenticated data. */
    private static function takeApart(Keys $keys, string $data): array
    {
        if ($keys->cipher !== 'jwe') {
            $raw = self::decode($data, $keys->encoding);
            $isCbc = $keys->cipher === 'aes-256-cbc';
            if (strlen($raw) < ($isCbc ? 32 : 28) || $isCbc && strlen($raw) % 16 !== 0) {
                throw new Refused('encoding');
            }
            return $isCbc
                ? [null, substr($raw, 0, 16), substr($raw, 16), null, '']
                : [null, substr($raw, 0, 12), substr($raw, 12, -16), substr($raw, -16), ''];
        }
        $parts = explode('.', $data);
        if (count($parts) !== 5 || $parts[1] !== '') {
            throw new Refused('encoding');
        }
        [$iv, $sealed, $tag] = array_map(fn(string $part) => self::decode($part, 'base64url'), array_slice($parts, 2));
        if (strlen($iv) !== 12 || strlen($tag) !== 16) { // PHP itself would accept a tag of four bytes.
            throw new Refused('encoding');
        }
        try {
            $header = (array) Content::parse(self::decode($parts[0], 'base64url'));
        } catch (Refused) {
            $header = [];
        }
        ['alg' => $alg, 'enc' => $enc, 'kid' => $kid] = $header + ['alg' => '', 'enc' => '', 'kid' => null];
        $isUsual = $alg === 'dir' && $enc === 'A256GCM' && is_string($kid);
        if (!$isUsual || array_key_exists('zip', $header) || array_key_exists('crit', $header)) {
            throw new Refused('jwe_header');
        }
        return [$kid, $iv, $sealed, $tag, $parts[0]];
    }

    /** Encrypts with the first version of the key. */
    public static function seal(Keys $keys, string $plain): string
    {
        [[$id, $key]] = $keys->versions['encryptionKey'];
        [$isCbc, $isJwe] = [$keys->cipher === 'aes-256-cbc', $keys->cipher === 'jwe'];
        $header = json_encode(['alg' => 'dir', 'enc' => 'A256GCM', 'kid' => $id]);
        $header = $isJwe ? self::encode($header, 'base64url') : '';
        [$iv, $tag, $cipher] = [random_bytes($isCbc ? 16 : 12), '', $isCbc ? 'aes-256-cbc' : 'aes-256-gcm'];
        $sealed = $isCbc
            ? openssl_encrypt($plain, $cipher, $key, OPENSSL_RAW_DATA, $iv)
            : openssl_encrypt($plain, $cipher, $key, OPENSSL_RAW_DATA, $iv, $tag, $header);
        return $isJwe
            ? "$header.." . implode('.', array_map(fn($part) => self::encode($part, 'base64url'), [$iv, $sealed, $tag]))
            : self::encode($iv . $sealed . $tag, $keys->encoding);
    }

    /** The bytes, if the text is exactly what an encoder writes: base64_decode lets white space and stray bits pass. */
    private static function decode(string $text, string $encoding): string
    {
        $isHex = $encoding === 'hex';
        $raw = $isHex ? @hex2bin($text) : base64_decode(strtr($text, '-_', '+/'));
        return self::encode((string) $raw, $encoding) === ($isHex ? strtolower($text) : $text)
            ? $raw
            : throw new Refused('encoding');
    }

    private static function encode(string $raw, string $encoding): string
    {
        return match ($encoding) {
            'hex' => bin2hex($raw),
            'base64url' => rtrim(strtr(base64_encode($raw), '+/', '-_'), '='),
            default => base64_encode($raw),
        };
    }

    /** Why a body does not open, found with other settings: only for the holder of the webhook secret. */
    public static function explain(Keys $keys, string $body, string $code): string
    {
        foreach (contract('tries')[$code === 'signature' ? 'signature' : 'body'] as $try) {
            $swapped = array_map(fn(array $kinds) => array_map(fn(string $key) => ['', $key], $keys->all(...$kinds)), $try['keys'] ?? []);
            $change = ['versions' => $swapped + $keys->versions] + array_diff_key($try, ['code' => '', 'keys' => '']);
            try {
                self::open($keys->with(...$change), $body);
                return $try['code'];
            } catch (Refused $refused) {
                if ($code !== 'signature' && $refused->getCode() === 'signature') {
                    return $try['code'];
                }
            }
        }
        return $code;
    }
}
