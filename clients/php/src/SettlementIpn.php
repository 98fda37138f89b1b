<?php

declare(strict_types=1);

namespace Paybell;

/** The IPN of a settlement: section 2.3. */
final class SettlementIpn implements \JsonSerializable
{
    /** @param list<SettlementEntry> $settlementList */
    public function __construct(
        public readonly string $batchNo,
        public readonly string $callbackUrl,
        public readonly string $deviceId,
        public readonly string $extraData,
        public readonly string $id,
        public readonly string $merchantTransId,
        public readonly string $mid,
        public readonly string $quantity,
        public readonly string $reqId,
        public readonly string $saleQuantity,
        public readonly string $saleTotalAmount,
        public readonly string $status,
        public readonly string $tid,
        public readonly string $totalAmount,
        public readonly string $transaction_time,
        public readonly string $transaction_type,
        public readonly string $voidQuantity,
        public readonly string $voidTotalAmount,
        public readonly array $settlementList,
        public readonly string $signature,
        // Only with fields: "extended".
        public readonly ?string $command = null,
        public readonly ?string $currency = null,
    ) {
    }

    public function jsonSerialize(): array
    {
        return array_filter(get_object_vars($this), fn(mixed $value) => $value !== null);
    }
}
