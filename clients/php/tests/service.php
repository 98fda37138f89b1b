<?php

/** Answers as the files 0.json, 1.json, … of its folder say, one after the other. */

declare(strict_types=1);

$at = is_file('asked') ? count(file('asked')) : 0;
file_put_contents('asked', "{$_SERVER['REQUEST_URI']} {$_SERVER['HTTP_AUTHORIZATION']}\n", FILE_APPEND);
[$status, $answer] = json_decode(file_get_contents("$at.json"), true);
http_response_code($status);
header('Location: /elsewhere');
http_response_code($status);
echo json_encode($answer);
