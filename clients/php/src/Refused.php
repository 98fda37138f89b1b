<?php

declare(strict_types=1);

namespace Paybell;

/**
 * The IPN is not authentic or not fresh. Its message is the same for every cause: an answer that tells them apart helps
 * a forger. Code, finding and remedy are for your own log.
 */
final class Refused extends PaybellError
{
    public function __construct(string $code, string $finding = '')
    {
        parent::__construct($code, $finding);
        $this->message = 'The IPN is not authentic.';
    }
}
