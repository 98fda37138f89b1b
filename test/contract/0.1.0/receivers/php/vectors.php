<?php

/** Holds receiver.php against the test vectors: php vectors.php ../../vectors.json */

declare(strict_types=1);

require __DIR__ . '/receiver.php';

$passed = true;
foreach (json_decode(file_get_contents($argv[1]))->vectors as $vector) {
    try {
        $found = canonical(verify($vector, $vector->body, (array) $vector->headers, $vector->nowSeconds));
    } catch (Refused) {
        $found = null;
    }
    $isRight = $found === (isset($vector->ipn) ? canonical($vector->ipn) : null);
    echo $isRight ? 'ok   ' : 'FAIL ', $vector->name, "\n";
    $passed = $passed && $isRight;
}
exit($passed ? 0 : 1);
