<?php

/** A callback with the keys of its folder. Its function does what the query says. */

declare(strict_types=1);

require getenv('PAYBELL_AUTOLOAD');

$onIpn = fn() => match ($_SERVER['QUERY_STRING'] ?? '') {
    'echo' => print 'stored',
    'exit' => exit('the database is away'),
    'fatal' => str_repeat('x', 1 << 30),
    default => null,
};
(new Paybell\Callback(new Paybell\KeyFile('paybell.json'), $onIpn))->run();
