"""The callback as an ASGI or a WSGI application: answers 2xx only when your function has returned."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from .errors import Refused
from .keys import KeySource
from .receiving import BODY_BYTES_MAX, Received, open

log = logging.getLogger("paybell")
REASONS = {
    204: "No Content",
    400: "Bad Request",
    405: "Method Not Allowed",
    413: "Content Too Large",
    500: "Internal Server Error",
}
OnIpn = Callable[[Received], Any]


def refused_status(refused: Refused) -> int:
    log.warning("IPN refused (%s): %s %s", refused.code, refused.finding, refused.remedy)
    return 413 if refused.code == "too_large" else 400


def failed_status(received: Received) -> int:
    log.exception("IPN %s not processed: it will be delivered again", received.ipn["id"])
    return 500


class Wsgi:
    """For Flask, Django and every other WSGI server: `application = Wsgi(keys, on_ipn)`."""

    def __init__(self, keys: KeySource, on_ipn: OnIpn):
        self._keys, self._on_ipn = keys, on_ipn

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status = self._status(environ)
        headers = [("Allow", "POST")] if status == 405 else []
        start_response(f"{status} {REASONS[status]}", headers + [("Content-Length", "0")] * (status != 204))
        return [b""]

    def _status(self, environ: dict[str, Any]) -> int:
        if environ["REQUEST_METHOD"] != "POST":
            return 405
        length = environ.get("CONTENT_LENGTH") or ""
        # A server that sets wsgi.input_terminated has taken a chunked body apart.
        limit = int(length) if length.isdigit() else BODY_BYTES_MAX + 1 if environ.get("wsgi.input_terminated") else 0
        body = environ["wsgi.input"].read(min(limit, BODY_BYTES_MAX + 1))
        headers = {name[5:].replace("_", "-"): text for name, text in environ.items() if name.startswith("HTTP_")}
        try:
            received = open(body, headers, self._keys)
        except Refused as refused:
            return refused_status(refused)
        try:
            self._on_ipn(received)
        except Exception:
            return failed_status(received)
        return 204


class Asgi:
    """For FastAPI and Starlette (`app.add_route("/ipn", Asgi(keys, on_ipn), methods=["POST"])`), and every other ASGI
    server. Your function may be a coroutine; another one runs in a thread."""

    def __init__(self, keys: KeySource, on_ipn: OnIpn):
        self._keys, self._on_ipn = keys, on_ipn

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        status = await self._status(scope, receive)
        if status is None:
            return
        headers = [(b"allow", b"POST")] if status == 405 else []
        headers += [(b"content-length", b"0")] * (status != 204)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _status(self, scope: dict[str, Any], receive: Callable[[], Any]) -> int | None:
        if scope["method"] != "POST":
            return 405
        body, more = bytearray(), True
        while more and len(body) <= BODY_BYTES_MAX:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        try:
            received = await asyncio.to_thread(open, bytes(body), headers, self._keys)
        except Refused as refused:
            return refused_status(refused)
        try:
            if inspect.iscoroutinefunction(self._on_ipn):
                await self._on_ipn(received)
            else:
                await asyncio.to_thread(self._on_ipn, received)
        except Exception:
            return failed_status(received)
        return 204
