<?php

declare(strict_types=1);

namespace Paybell;

/** One row of settlementList. */
final class SettlementEntry
{
    public function __construct(
        public readonly string $reqId,
        public readonly string $refNo,
    ) {
    }
}
