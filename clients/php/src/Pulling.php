<?php

declare(strict_types=1);

namespace Paybell;

/** @internal One call of the pull API. */
final class Pulling
{
    /** @return array{items: list<array{data: string, headers: array<string, string>}>, next: string} */
    public static function ask(Keys $keys, string $path, float $timeout): array
    {
        if (!preg_match('~^(https://|http://(localhost|127\.[0-9.]+|\[::1\])(:\d+)?(/|$))~D', $keys->baseUrl)) {
            throw new PaybellError('wrong_option', 'baseUrl is not https://; http:// is for localhost alone.');
        }
        // A redirection would be sent the API key.
        $how = ['header' => "Authorization: Bearer $keys->apiKey", 'follow_location' => 0, 'ignore_errors' => true];
        $context = stream_context_create(['http' => [...$how, 'timeout' => $timeout]]);
        $stream = @fopen(rtrim($keys->baseUrl, '/') . $path, 'r', false, $context);
        $answer = $stream === false ? '' : stream_get_contents($stream);
        if ($stream === false || stream_get_meta_data($stream)['timed_out']) {
            throw new PaybellError('no_answer');
        }
        $read = json_decode($answer, true);
        $status = (int) substr(stream_get_meta_data($stream)['wrapper_data'][0], 9, 3);
        if ($status === 200 && isset($read['items'], $read['next'])) {
            return $read;
        }
        if (is_string($code = $read['code'] ?? null)) {
            throw new PaybellError($code, $read['detail'] ?? '', $read['remedy'] ?? '');
        }
        throw new PaybellError('not_paybell', "HTTP $status without an answer of Paybell's.");
    }
}
