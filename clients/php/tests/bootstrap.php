<?php

/** The package that $PAYBELL_AUTOLOAD loads, and PSR-15, of which Debian has no package. */

declare(strict_types=1);

namespace Psr\Http\Server;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;

require 'Nyholm/Psr7/autoload.php';

interface RequestHandlerInterface
{
    public function handle(ServerRequestInterface $request): ResponseInterface;
}

require getenv('PAYBELL_AUTOLOAD');
