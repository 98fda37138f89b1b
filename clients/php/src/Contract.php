<?php

declare(strict_types=1);

namespace Paybell;

/** @internal The tables of the specification, generated from Paybell's own code. */
final class Contract
{
    private static array $tables;

    public static function table(string $name): array
    {
        self::$tables ??= json_decode(file_get_contents(__DIR__ . '/contract.json'), true);
        return self::$tables[$name];
    }
}
