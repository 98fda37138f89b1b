<?php

declare(strict_types=1);

namespace Paybell;

use Psr\Http\Message\ResponseFactoryInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;

/** A callback as PSR-15 has it, for Slim, Mezzio and every other framework: `new Handler($callback, $responseFactory)`. */
final class Handler implements RequestHandlerInterface
{
    public function __construct(
        private readonly Callback $callback,
        private readonly ResponseFactoryInterface $responses,
    ) {
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        [$stream, $body] = [$request->getBody(), ''];
        if ($stream->isSeekable()) { // What read it before this handler may have left it at its end.
            $stream->rewind();
        }
        while (strlen($body) <= BODY_BYTES_MAX && !$stream->eof()) {
            $body .= $stream->read(65_536);
        }
        $status = $this->callback->statusOf($request->getMethod(), $body, $request->getHeaders());
        $response = $this->responses->createResponse($status);
        return $status === 405 ? $response->withHeader('Allow', 'POST') : $response;
    }
}
