<?php

declare(strict_types=1);

namespace Paybell;

/** An authentic IPN. Missing fields are empty strings. */
final class Received
{
    /**
     * @param object $wire the object as it was sent, with the fields that this version does not know
     * @param array<string, string> $headers by their names in lower case: no signature covers `paybell-command` and the
     *     like, so show them and log them, but decide nothing by them
     */
    public function __construct(
        public readonly CardIpn|SettlementIpn $ipn,
        public readonly object $wire,
        public readonly string $notificationId,
        public readonly string $keyId,
        public readonly array $headers,
    ) {
    }
}
