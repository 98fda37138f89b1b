<?php

declare(strict_types=1);

namespace Paybell;

/** Generated from the code by scripts/generate.ts: change the tables there, not this file. */
final class SettlementEntry
{
    public function __construct(
        public readonly string $reqId,
        public readonly string $refNo,
    ) {
    }
}
