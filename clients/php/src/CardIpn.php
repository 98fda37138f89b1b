<?php

declare(strict_types=1);

namespace Paybell;

/** The IPN of a card command: section 2.2. */
final class CardIpn implements \JsonSerializable
{
    public function __construct(
        public readonly string $aid,
        public readonly string $amount,
        public readonly string $appName,
        public readonly string $approveCode,
        public readonly string $batchNo,
        public readonly string $billId,
        public readonly string $cardHolder,
        public readonly string $cardNumber,
        public readonly string $cardScheme,
        public readonly string $currency,
        public readonly string $deviceId,
        public readonly string $expDate,
        public readonly string $extraData,
        public readonly string $id,
        public readonly string $invoiceNo,
        public readonly string $isoResponseCode,
        public readonly string $merchantAddress,
        public readonly string $merchantId,
        public readonly string $merchantName,
        public readonly string $merchantTransId,
        public readonly string $mid,
        public readonly string $paymentType,
        public readonly string $refId,
        public readonly string $reqId,
        public readonly string $status,
        public readonly string $swipeType,
        public readonly string $tc,
        public readonly string $tid,
        public readonly string $traceNo,
        public readonly string $transDateTime,
        public readonly string $transaction_type,
        public readonly string $signature,
        // Only with fields: "extended".
        public readonly ?string $command = null,
        public readonly ?string $originalId = null,
        public readonly ?string $originalReqId = null,
    ) {
    }

    public function jsonSerialize(): array
    {
        return array_filter(get_object_vars($this), fn(mixed $value) => $value !== null);
    }
}
