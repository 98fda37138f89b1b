<?php

declare(strict_types=1);

namespace Paybell;

/**
 * The keys and the agreement of a registration. Several versions of a key are those of a rotation: each is accepted.
 * `fields` are the receiver's own settings: several while they change.
 */
final class Keys
{
    private const KINDS = ['encryptionKey', 'signingKey', 'webhookSecret'];

    /**
     * @internal Keys::of() checks what it reads.
     * @param array<string, list<array{string, string}>> $versions by kind: each has an id and 32 bytes
     * @param array{mode: string, card?: list<string>, settlement?: list<string>} $signing
     * @param list<string> $fields
     */
    public function __construct(
        public readonly array $versions,
        public readonly string $cipher,
        public readonly string $encoding,
        public readonly array $signing,
        public readonly array $fields,
        public readonly string $baseUrl,
        public readonly string $apiKey,
    ) {
    }

    /** @param array<string, mixed> ...$written the content of one file or several: their versions are put together */
    public static function of(#[\SensitiveParameter] array ...$written): self
    {
        $written = array_map(self::modern(...), $written);
        [$versions, $owners] = [[], []];
        foreach (self::KINDS as $kind) {
            foreach (array_column($written, $kind) as $given) {
                foreach (is_array($given) ? $given : [$given] as $one) {
                    $one = is_array($one) ? $one : ['key' => $one];
                    $versions[$kind][] = [$one['id'] ?? '', $key = self::bytes($kind, $one['key'] ?? '')];
                    if (($owners[$key] ??= $kind) !== $kind) {
                        throw PaybellError::in($kind, 'shared_key');
                    }
                }
            }
            isset($versions[$kind]) || throw PaybellError::in($kind, 'missing_key');
        }
        $merged = array_merge(contract('defaults'), ...$written);
        $merged['fields'] = array_values((array) $merged['fields']);
        foreach (contract('settings') as $name => $allowed) {
            $given = $name === 'signing' ? $merged[$name]['mode'] ?? '' : $merged[$name];
            if ($given === [] || array_filter((array) $given, fn($one) => !in_array($one, $allowed, true))) {
                throw new PaybellError('wrong_option', "$name must be one of " . implode(', ', $allowed) . '.');
            }
        }
        return new self($versions, ...array_intersect_key($merged, contract('defaults')));
    }

    /** @internal @return list<string> the bytes of the keys of these kinds */
    public function all(string ...$kinds): array
    {
        return array_merge(...array_map(fn(string $kind) => array_column($this->versions[$kind], 1), $kinds));
    }

    /** @internal */
    public static function from(#[\SensitiveParameter] self|KeyFile|array $source): self
    {
        return is_array($source) ? self::of($source) : ($source instanceof KeyFile ? $source->current() : $source);
    }

    /** @internal The same with other settings. */
    public function with(mixed ...$change): self
    {
        return new self(...array_merge(get_object_vars($this), $change));
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
            ['kind' => $kind, 'secret' => $secret] = $written;
            $more = array_diff_key($written, ['kind' => 0, 'secret' => 0]);
            return $kind === 'apiKey' ? [$kind => $secret] : [$kind => [[...$more, 'key' => $secret]]];
        }
        foreach (self::KINDS as $kind) {
            if (isset($written["{$kind}s"])) {
                $toVersion = fn(mixed $one) => is_array($one) ? $one : ['key' => $one];
                $written[$kind] = array_map($toVersion, (array) $written["{$kind}s"]);
                unset($written["{$kind}s"]);
            }
        }
        return $written;
    }

    /** A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning. */
    private static function bytes(string $kind, #[\SensitiveParameter] mixed $text): string
    {
        $prefix = $kind === 'webhookSecret' ? 'whsec_' : '';
        $bare = is_string($text) ? substr($text, strlen($prefix)) : '';
        $raw = (string) base64_decode($bare, true);
        $code = match (true) {
            !is_string($text), $text === '' => 'missing_key',
            !str_starts_with($text, $prefix) => 'no_whsec_prefix',
            base64_encode($raw) !== $bare => 'key_not_base64',
            strlen($raw) !== 32 => 'key_length',
            default => '',
        };
        return $code === '' ? $raw : throw PaybellError::in($kind, $code);
    }
}
