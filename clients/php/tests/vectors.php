<?php

/** Holds the installed package to test vectors: `php vectors.php <vendor/autoload.php> <vectors.json>`. */

declare(strict_types=1);

require $argv[1];

function canonical(?array $ipn): string
{
    $names = array_keys($ipn ?? []);
    sort($names);
    return json_encode($ipn === null ? null : array_map(fn(string $name) => [$name, $ipn[$name]], $names));
}

$passed = true;
foreach (json_decode(file_get_contents($argv[2]), true)['vectors'] as $vector) {
    $code = $found = null;
    try {
        $received = Paybell\open($vector['body'], $vector['headers'], $vector, $vector['nowSeconds']);
        $found = json_decode(json_encode($received->ipn), true);
        $kind = $received->ipn instanceof Paybell\SettlementIpn ? 'settlement' : 'card';
        assert($kind === ($vector['kind'] ?? $kind) && $received->keyId === ($vector['keyId'] ?? $received->keyId));
    } catch (Paybell\Refused $refused) {
        $code = $refused->getCode();
    }
    $expected = $vector['code'] ?? $code;
    $isRight = canonical($found) === canonical($vector['ipn'] ?? null) && $code === $expected;
    echo $isRight ? 'ok   ' : 'FAIL ', $vector['name'], "\n";
    if ($code !== $expected) {
        fwrite(STDERR, "$code instead of $expected: {$vector['name']}\n");
    }
    $passed = $passed && $isRight;
}
exit($passed ? 0 : 1);
