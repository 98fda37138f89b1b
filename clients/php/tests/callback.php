<?php

/** A callback with the keys of its folder. */

declare(strict_types=1);

require getenv('PAYBELL_AUTOLOAD');

(new Paybell\Callback(new Paybell\KeyFile('paybell.json'), fn() => null))->run();
