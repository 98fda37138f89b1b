<?php

/** Stores each IPN once, as a file in the folder inbox. PAYBELL_KEYS is the file of the keys. */

declare(strict_types=1);

http_response_code(500); // PHP itself answers 200 to what fails before run(), such as a file that cannot be read.
require 'vendor/autoload.php';

/** A table with a unique key on the id, written with the rest of your work, is better. */
function store(Paybell\Received $received): void
{
    if (!preg_match('/^[0-9A-Za-z-]{1,64}$/D', $received->ipn->id)) {
        throw new RuntimeException('the id is no file name');
    }
    $path = "inbox/{$received->ipn->id}.json";
    $text = json_encode($received->ipn, JSON_THROW_ON_ERROR);
    $temporary = tempnam('inbox', '.new');
    $file = fopen($temporary, 'w');
    $isWritten = fwrite($file, $text) === strlen($text) && fsync($file); // A full disk may take a part of it.
    // Of two at once, one fails, and the file is there.
    $isStored = $isWritten && (@link($temporary, $path) || file_exists($path));
    unlink($temporary);
    $isStored || throw new RuntimeException('the IPN cannot be stored');
}

is_dir('inbox') || mkdir('inbox', 0700);
(new Paybell\Callback(new Paybell\KeyFile(getenv('PAYBELL_KEYS')), store(...)))->run();
