<?php

declare(strict_types=1);

namespace Paybell;

/**
 * An error with the codes of Paybell's own partner library. Branch on getCode(), a string; `remedy` says what to do.
 * No message contains a key or decrypted content.
 */
class PaybellError extends \RuntimeException
{
    public readonly string $finding;
    public readonly string $remedy;

    public function __construct(string $code, string $finding = '', string $remedy = '')
    {
        $known = contract('errors')[$code] ?? ['finding' => '', 'remedy' => ''];
        $this->finding = $finding ?: $known['finding'];
        $this->remedy = $known['remedy'] ?: $remedy;
        parent::__construct(trim("$code: $this->finding $this->remedy"));
        $this->code = $code;
    }
}
