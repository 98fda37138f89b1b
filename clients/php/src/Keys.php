<?php

declare(strict_types=1);

namespace Paybell;

/** The keys and the agreement of a registration. The versions of a key are those of a rotation: each is accepted. */
final class Keys
{
    /**
     * @internal Keys::of() checks what it reads.
     * @param array<string, list<array{string, string}>> $versions by kind: each has an id and 32 bytes
     * @param array<string, mixed> $agreed cipher, encoding, signing, baseUrl, apiKey, fields: several while it changes
     */
    public function __construct(public readonly array $versions, public readonly array $agreed)
    {
    }

    /** @param array<string, mixed> ...$written the content of one file or several: their versions are put together */
    public static function of(#[\SensitiveParameter] array ...$written): self
    {
        $written = array_map(self::modern(...), $written);
        [$versions, $owners] = [[], []];
        foreach (array_keys(contract('keys')) as $kind) {
            // Without a version, the one that is checked has no key.
            foreach (array_merge(...array_filter(array_column($written, $kind))) ?: [[]] as $one) {
                $versions[$kind][] = [(string) ($one['id'] ?? ''), self::bytes($kind, $one['key'] ?? '', $owners)];
            }
        }
        $agreed = array_intersect_key(array_merge(contract('defaults'), ...$written), contract('defaults'));
        $agreed['fields'] = (array) $agreed['fields'];
        $chosen = ['signing' => $agreed['signing']['mode'] ?? ''] + $agreed;
        foreach (contract('settings') as $name => $allowed) {
            $given = $name === 'fields' ? $chosen[$name] : [$chosen[$name]];
            $isRight = $given && !array_filter($given, fn(mixed $one) => !in_array($one, $allowed, true));
            $isRight || throw new PaybellError('wrong_option', "$name must be one of " . implode(', ', $allowed) . '.');
        }
        // The setting that says more of an IPN is the first.
        $agreed['fields'] = array_values(array_intersect(contract('settings')['fields'], $agreed['fields']));
        return new self($versions, $agreed);
    }

    /** @internal */
    public static function from(#[\SensitiveParameter] self|KeyFile|array $source): self
    {
        return is_array($source) ? self::of($source) : ($source instanceof KeyFile ? $source->current() : $source);
    }

    /** @internal @return list<string> the bytes of the keys of these kinds */
    public function all(string ...$kinds): array
    {
        return array_merge(...array_map(fn(string $kind) => array_column($this->versions[$kind], 1), $kinds));
    }

    /**
     * Section 5.1, by each signing key. The extended fields follow the agreed list, unless it names them. If the
     * receiver accepts IPNs without them too, a list that names them skips them there.
     *
     * @internal
     * @param array<string, mixed> $wire
     * @param array<string, mixed> $ipn
     * @return list<string>
     */
    public function signatures(string $kind, string $setting, array $wire, array $ipn): array
    {
        ['signed' => $usual, 'added' => $added] = contract('tables')[$kind][$setting];
        $names = $this->agreed['signing'][$kind] ?? $usual;
        $names = [...array_intersect($names, array_keys($ipn)), ...array_diff($added, $names)];
        $text = $this->agreed['signing']['mode'] === 'whole'
            ? canonical((object) array_diff_key($wire, ['signature' => '']))
            : implode('&', array_map(fn(string $name) => "$name=$ipn[$name]", $names));
        return array_map(fn(string $key) => hash_hmac('sha256', $text, $key), $this->all('signingKey'));
    }

    /**
     * The same in today's shape: `encryptionKeys` and `{kind, secret}` are those of older files.
     *
     * @internal
     * @param array<string, mixed> $written
     * @return array<string, mixed>
     */
    public static function modern(#[\SensitiveParameter] array $written): array
    {
        if (isset($written['kind'], $written['secret'])) {
            $version = ['key' => $written['secret']] + array_diff_key($written, ['kind' => 0, 'secret' => 0]);
            $written = [$written['kind'] => $written['kind'] === 'apiKey' ? $written['secret'] : [$version]];
        }
        $toVersion = fn(mixed $one) => is_array($one) ? $one : ['key' => $one];
        foreach (array_keys(contract('keys')) as $kind) {
            if ($given = (array) ($written["{$kind}s"] ?? $written[$kind] ?? [])) {
                $written[$kind] = array_map($toVersion, array_values($given));
            }
            unset($written["{$kind}s"]);
        }
        return $written;
    }

    /**
     * A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning.
     *
     * @param array<string, string> $owners the kind of each key
     */
    private static function bytes(string $kind, #[\SensitiveParameter] mixed $key, array &$owners): string
    {
        $key = is_string($key) ? $key : '';
        $mistakes = array_filter(contract('keys')[$kind], fn(string $shape) => !preg_match("~^$shape\$~D", $key));
        $bytes = base64_decode(substr($key, -44));
        $mistakes += ($owners[$bytes] ??= $kind) === $kind ? [] : ['shared_key' => ''];
        $code = array_key_first($mistakes);
        return $code === null ? $bytes : throw new PaybellError($code, "$kind " . contract('errors')[$code]['finding']);
    }
}
