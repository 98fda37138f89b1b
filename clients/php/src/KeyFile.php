<?php

declare(strict_types=1);

namespace Paybell;

/**
 * Keys in files, such as the one of the registration and those of rotations. They are read for each IPN. If they cannot
 * be read in a program that stays, the keys stay as they were, with a warning in the log.
 */
final class KeyFile
{
    /** @var array<string> */
    private readonly array $paths;
    private ?Keys $keys = null;

    /** Files of older shapes are rewritten, with a warning in the log. */
    public function __construct(string ...$paths)
    {
        $this->paths = $paths;
        $this->current();
    }

    public function current(): Keys
    {
        try {
            $this->keys = Keys::of(...array_map(self::read(...), $this->paths));
        } catch (PaybellError $error) {
            $this->keys ?? throw $error;
            error_log("paybell: the keys stay as they were: {$error->getMessage()}");
        }
        return $this->keys;
    }

    /** @return array<string, mixed> in today's shape */
    private static function read(string $path): array
    {
        $content = @file_get_contents($path);
        $written = json_decode((string) $content, true);
        $mistake = $content === false ? 'cannot be read' : 'is not a JSON object';
        is_array($written) || throw new PaybellError('wrong_option', "$path $mistake.");
        $modern = Keys::modern($written);
        array_keys($modern) === array_keys($written) || self::rewrite($path, $modern);
        return $modern;
    }

    /** @param array<string, mixed> $content */
    private static function rewrite(string $path, #[\SensitiveParameter] array $content): void
    {
        $target = realpath($path);
        $temporary = @tempnam(dirname($target), '.keys'); // 0600. If this folder is not writable, in another one.
        $isDone = dirname($temporary) === dirname($target)
            && ($file = fopen($temporary, 'w'))
            && fwrite($file, json_encode($content, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES))
            && fsync($file)
            && chmod($temporary, fileperms($target) & 0777)
            && rename($temporary, $target);
        @unlink($temporary);
        error_log("paybell: $path is in an older shape, and " . ($isDone ? 'is rewritten' : 'cannot be rewritten'));
    }
}
