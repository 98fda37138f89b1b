<?php

declare(strict_types=1);

namespace Paybell;

/**
 * The callback as a PHP script: `(new Callback($keys, $onIpn))->run();`. It answers 2xx only when your function has
 * returned; after an exception the IPN comes again. Delivery is at least once: deduplicate by `id`.
 */
final class Callback
{
    private readonly \Closure $onIpn;
    private readonly \Closure $log;

    /**
     * @param Keys|KeyFile|array<string, mixed> $keys
     * @param callable(Received): mixed $onIpn
     * @param ?\Closure(string): mixed $log gets a text for each IPN that is refused or fails, in place of error_log
     */
    public function __construct(
        #[\SensitiveParameter] private readonly Keys|KeyFile|array $keys,
        callable $onIpn,
        ?\Closure $log = null,
    ) {
        [$this->onIpn, $this->log] = [$onIpn(...), $log ?? error_log(...)];
    }

    /** Answers the request of this script. */
    public function run(): void
    {
        $mistake = self::mistake();
        ini_set('display_errors', '0'); // The sender must not read them.
        ob_start(fn() => ''); // Nor what your function prints, which would send the status before it is known.
        $body = file_get_contents('php://input', length: BODY_BYTES_MAX + 1);
        $status = $mistake ? 500 : $this->statusOf($_SERVER['REQUEST_METHOD'], $body, getallheaders());
        $mistake && ($this->log)("paybell: $mistake");
        http_response_code($status);
        $status === 405 && header('Allow: POST');
    }

    /**
     * The status to answer with, for a server of your own.
     *
     * @param iterable<string, string|string[]> $headers
     */
    public function statusOf(string $method, string $body, iterable $headers): int
    {
        if ($method !== 'POST') {
            return 405;
        }
        // exit(), a time limit and no memory end the script without an exception: PHP answers with this.
        headers_sent() || http_response_code(500);
        try {
            $received = open($body, $headers, $this->keys);
            ($this->onIpn)($received);
            return 204;
        } catch (Refused $refused) {
            ($this->log)("paybell: IPN refused ({$refused->getCode()}): $refused->finding $refused->remedy");
            return $refused->getCode() === 'too_large' ? 413 : 400;
        } catch (\Throwable $error) {
            ($this->log)('paybell: IPN ' . ($received->ipn->id ?? '') . " not processed, it comes again: $error");
            return 500;
        }
    }

    /** PHP itself would answer 200 to a body above post_max_size, with a warning, before this script begins. */
    private static function mistake(): string
    {
        $limit = ini_get('post_max_size');
        $units = ['K' => 1 << 10, 'M' => 1 << 20, 'G' => 1 << 30];
        $bytes = (int) $limit * ($units[strtoupper(substr($limit, -1))] ?? 1);
        $shows = in_array(strtolower((string) ini_get('display_errors')), ['1', 'on', 'yes', 'true', 'stdout'], true);
        return $shows && $bytes > 0 && $bytes < BODY_BYTES_MAX
            ? "every IPN is refused: set post_max_size = 16M in php.ini (it is $limit), or display_errors = Off"
            : '';
    }
}
