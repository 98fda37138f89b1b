<?php

declare(strict_types=1);

namespace Paybell;

/**
 * The keys and the agreement of a registration. Several versions of a key are those of a rotation: each is accepted.
 * `fields` are the receiver's own settings: several while they change.
 */
final class Keys
{
    public const CIPHERS = ['aes-256-gcm', 'aes-256-cbc', 'jwe'];
    public const ENCODINGS = ['base64', 'base64url', 'hex'];
    private const KINDS = ['encryptionKey', 'signingKey', 'webhookSecret'];
    private const DEFAULTS = ['cipher' => 'aes-256-gcm', 'encoding' => 'base64', 'signing' => ['mode' => 'fields'],
        'fields' => 'specification', 'baseUrl' => '', 'apiKey' => ''];

    /**
     * @internal Keys::of() checks what it reads.
     * @param list<string> $encryption
     * @param list<string> $ids those of the encryption keys
     * @param list<string> $signing
     * @param list<string> $webhook
     * @param array{mode: string, card?: list<string>, settlement?: list<string>} $signed
     * @param list<string> $fields
     */
    public function __construct(
        public readonly array $encryption,
        public readonly array $ids,
        public readonly array $signing,
        public readonly array $webhook,
        public readonly string $cipher,
        public readonly string $encoding,
        public readonly array $signed,
        public readonly array $fields,
        public readonly string $baseUrl,
        public readonly string $apiKey,
    ) {
    }

    /** @param array<string, mixed> ...$written the content of one file or several: their versions are put together */
    public static function of(#[\SensitiveParameter] array ...$written): self
    {
        $written = array_map(self::modern(...), $written);
        [$bytes, $ids, $owners] = [[], [], []];
        foreach (self::KINDS as $kind) {
            foreach (array_column($written, $kind) as $given) {
                foreach (is_array($given) ? $given : [['key' => $given]] as $one) {
                    $bytes[$kind][] = $key = self::bytes($kind, $one['key'] ?? '');
                    $ids[$kind][] = $one['id'] ?? '';
                    if (($owners[$key] ??= $kind) !== $kind) {
                        throw new PaybellError('shared_key', "$kind is the same key as $owners[$key].");
                    }
                }
            }
            isset($bytes[$kind]) || throw new PaybellError('missing_key', "$kind is missing.");
        }
        $merged = array_merge(self::DEFAULTS, ...$written);
        $fields = array_values((array) $merged['fields']);
        self::allow('cipher', $merged['cipher'], self::CIPHERS);
        self::allow('encoding', $merged['encoding'], self::ENCODINGS);
        self::allow('signing.mode', $merged['signing']['mode'] ?? '', ['fields', 'whole']);
        foreach ($fields ?: [''] as $setting) {
            self::allow('fields', $setting, ['specification', 'extended']);
        }
        return new self(
            $bytes['encryptionKey'],
            $ids['encryptionKey'],
            $bytes['signingKey'],
            $bytes['webhookSecret'],
            $merged['cipher'],
            $merged['encoding'],
            $merged['signing'],
            $fields,
            $merged['baseUrl'],
            $merged['apiKey'],
        );
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
            $version = array_intersect_key($written, ['id' => 0, 'activeFrom' => 0, 'expiresOld' => 0]);
            $isList = $written['kind'] !== 'apiKey';
            return [$written['kind'] => $isList ? [[...$version, 'key' => $written['secret']]] : $written['secret']];
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
        [$code, $finding] = match (true) {
            !is_string($text), $text === '' => ['missing_key', 'is missing'],
            !str_starts_with($text, $prefix) => ['no_whsec_prefix', "does not begin with $prefix"],
            base64_encode($raw) !== $bare => ['key_not_base64', 'is not base64'],
            strlen($raw) !== 32 => ['key_length', 'has ' . strlen($raw) . ' bytes instead of 32'],
            default => ['', ''],
        };
        return $code === '' ? $raw : throw new PaybellError($code, "$kind $finding.");
    }

    /** @param list<string> $values */
    private static function allow(string $name, mixed $value, array $values): void
    {
        if (!in_array($value, $values, true)) {
            $list = implode(', ', $values);
            throw new PaybellError('wrong_option', "$name must be one of $list.", 'Compare with GET /v1/self.');
        }
    }
}
