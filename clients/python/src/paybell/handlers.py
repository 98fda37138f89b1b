"""The callback as an ASGI or a WSGI application: answers 2xx only when your function has returned."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from .errors import Refused
from .keys import KeySource, log
from .receiving import BODY_BYTES_MAX, Received, open

OnIpn = Callable[[Received], Any]


def status_of(error: Exception) -> int:
    if isinstance(error, Refused):
        log.warning("IPN refused (%s): %s %s", error.code, error.finding, error.remedy)
        return 413 if error.code == "too_large" else 400
    log.error("IPN not processed: it will be delivered again", exc_info=error)
    return 500


def headers_of(status: int) -> list[tuple[str, str]]:
    return [("allow", "POST")] * (status == 405) + [("content-length", "0")] * (status != 204)


@dataclass(frozen=True)
class Handler:
    keys: KeySource
    on_ipn: OnIpn


class Wsgi(Handler):
    """For Flask, Django and every other WSGI server: `application = Wsgi(keys, on_ipn)`."""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length, status = environ.get("CONTENT_LENGTH") or "", 405
        # A server that sets wsgi.input_terminated has taken a chunked body apart.
        limit = int(length) if length.isdigit() else BODY_BYTES_MAX + 1 if environ.get("wsgi.input_terminated") else 0
        headers = {name[5:].replace("_", "-"): text for name, text in environ.items() if name.startswith("HTTP_")}
        if environ["REQUEST_METHOD"] == "POST":
            try:
                body = environ["wsgi.input"].read(min(limit, BODY_BYTES_MAX + 1))
                result = self.on_ipn(open(body, headers, self.keys))
                if inspect.iscoroutine(result):
                    result.close()
                    raise TypeError("your function is a coroutine, which nobody awaits here: use Asgi")
                status = 204
            except Exception as error:
                status = status_of(error)
        start_response(f"{status} {HTTPStatus(status).phrase}", headers_of(status))
        return [b""]


class Asgi(Handler):
    """For FastAPI and Starlette (`app.add_route("/ipn", Asgi(keys, on_ipn), methods=["POST"])`), and every other ASGI
    server. Your function may be a coroutine; another one runs in a thread."""

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        body, more, status = bytearray(), scope["method"] == "POST", 405
        while more and len(body) <= BODY_BYTES_MAX:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        if scope["method"] == "POST":
            try:
                received = await asyncio.to_thread(open, bytes(body), headers, self.keys)
                isasync = inspect.iscoroutinefunction(self.on_ipn)
                result = self.on_ipn(received) if isasync else await asyncio.to_thread(self.on_ipn, received)
                if inspect.isawaitable(result):  # Also that of a lambda, or of an object that is called.
                    await result
                status = 204
            except Exception as error:
                status = status_of(error)
        own = [(name.encode(), value.encode()) for name, value in headers_of(status)]
        await send({"type": "http.response.start", "status": status, "headers": own})
        await send({"type": "http.response.body", "body": b""})
