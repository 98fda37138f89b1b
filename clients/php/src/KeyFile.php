<?php

declare(strict_types=1);

namespace Paybell;

/**
 * Keys in files, such as the one of the registration and those of rotations. In a program that stays, they are read
 * again when one changes. If they cannot be read then, the keys stay as they were, with a warning in the log.
 */
final class KeyFile
{
    /** @var array<string, string|false> */
    private array $contents;
    private Keys $keys;

    /** Files of older shapes are rewritten, with a warning in the log. */
    public function __construct(string ...$paths)
    {
        $this->contents = self::contentsOf($paths);
        $this->keys = self::read($this->contents);
    }

    public function current(): Keys
    {
        $contents = self::contentsOf(array_keys($this->contents));
        if ($contents !== $this->contents) {
            $this->contents = $contents;
            try {
                $this->keys = self::read($contents);
            } catch (PaybellError $error) {
                error_log("paybell: the keys stay as they were: {$error->getMessage()}");
            }
        }
        return $this->keys;
    }

    /**
     * @param array<string> $paths
     * @return array<string, string|false>
     */
    private static function contentsOf(array $paths): array
    {
        return array_combine($paths, array_map(fn(string $path) => @file_get_contents($path), $paths));
    }

    /** @param array<string, string|false> $contents */
    private static function read(#[\SensitiveParameter] array $contents): Keys
    {
        $all = [];
        foreach ($contents as $path => $content) {
            $written = json_decode((string) $content, true);
            if (!is_array($written)) {
                $finding = $content === false ? "$path cannot be read." : "$path is not a JSON object.";
                throw new PaybellError('wrong_option', $finding);
            }
            $all[] = $modern = Keys::modern($written);
            if ($modern !== $written) {
                $isDone = self::rewrite($path, $modern) ? 'is rewritten' : 'cannot be rewritten';
                error_log("paybell: $path is in an older shape, and $isDone");
            }
        }
        return Keys::of(...$all);
    }

    /** @param array<string, mixed> $content */
    private static function rewrite(string $path, #[\SensitiveParameter] array $content): bool
    {
        $path = realpath($path);
        $temporary = @tempnam(dirname($path), '.keys'); // 0600
        try { // In a folder that is not writable, tempnam takes another one.
            return dirname($temporary) === dirname($path)
                && ($file = fopen($temporary, 'w'))
                && fwrite($file, json_encode($content, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES))
                && fsync($file)
                && chmod($temporary, fileperms($path) & 0777)
                && rename($temporary, $path);
        } finally {
            @unlink($temporary);
        }
    }
}
