<?php

declare(strict_types=1);

namespace Paybell;

const FRESHNESS_SECONDS = 300;
const BODY_BYTES_MAX = 16777216;
/** Keys that everybody knows: for tests only. */
const SAMPLE_KEYS = [
    'encryptionKey' => 'AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=',
    'signingKey' => 'AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=',
    'webhookSecret' => 'whsec_AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=',
];
