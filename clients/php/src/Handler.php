<?php

declare(strict_types=1);

namespace Paybell;

use Psr\Http\Message\{ResponseFactoryInterface, ResponseInterface, ServerRequestInterface};
use Psr\Http\Server\RequestHandlerInterface;

/** A callback for each framework with PSR-15, as Slim and Mezzio: `new Handler($callback, $responseFactory)`. */
final class Handler implements RequestHandlerInterface
{
    public function __construct(private Callback $callback, private ResponseFactoryInterface $responses)
    {
    }

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        [$stream, $body] = [$request->getBody(), ''];
        $stream->isSeekable() && $stream->rewind(); // What read it before this handler may have left it at its end.
        while (strlen($body) <= BODY_BYTES_MAX && !$stream->eof()) {
            $body .= $stream->read(65_536);
        }
        $status = $this->callback->statusOf($request->getMethod(), $body, $request->getHeaders());
        $response = $this->responses->createResponse($status);
        return $status === 405 ? $response->withHeader('Allow', 'POST') : $response;
    }
}
