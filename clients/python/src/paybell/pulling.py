"""The pull API: everything that was created for you, however it was delivered."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from .errors import PaybellError
from .keys import Keys, KeySource, keys_of
from .receiving import Received, open


@dataclass(frozen=True)
class Page:
    """Store `cursor` once all of `items` are processed, and start from it the next time."""

    items: list[Received]
    cursor: str


def catch_up(
    cursor: str | None, keys: KeySource, *, page_max: int = 100, wait_seconds: int | None = None, timeout: float = 60
) -> Iterator[Page]:
    """Fetches everything after a cursor (none: from the oldest; "now": from this moment), page by page. Ends when
    nothing is left, with `wait_seconds` (1 to 30) when nothing arrived for that long. The file of the keys names
    `baseUrl` and `apiKey`. Raises PaybellError with the service's code, or Refused: then its page was not given."""
    items = [None]
    while items:
        setup, query = keys_of(keys), {"limit": page_max, "after": cursor, "wait": wait_seconds}
        posts, cursor = ask(setup, {name: value for name, value in query.items() if value is not None}, timeout)
        items = [open(json.dumps({"data": data}, separators=(",", ":")), headers, setup) for data, headers in posts]
        yield Page(items, cursor)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection would be sent the API key."""

    def redirect_request(self, *_: Any) -> None:
        return None


def ask(setup: Keys, query: Mapping[str, object], timeout: float) -> tuple[list[tuple[str, Any]], str]:
    if not re.match(r"https://|http://(localhost|127\.[0-9.]+|\[::1\])(:\d+)?(/|$)", setup.base_url):
        raise PaybellError("wrong_option", "baseUrl is not https://; http:// is for localhost alone.")
    url = f"{setup.base_url.rstrip('/')}/v1/notifications?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {setup.api_key}"})  # noqa: S310
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=timeout) as response:
            status, text = response.status, response.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    except (OSError, HTTPException) as error:
        raise PaybellError("no_answer") from error
    except ValueError:  # Its text could quote the API key.
        raise PaybellError("wrong_option", "baseUrl is no URL, or apiKey cannot be sent.") from None
    try:
        answer = json.loads(text)
        if status == 200:
            return [(one["data"], one["headers"]) for one in answer["items"]], answer["next"]
        raise PaybellError(answer["code"], answer.get("detail", ""), answer.get("remedy", ""))
    except (ValueError, KeyError, TypeError):
        raise PaybellError("not_paybell", f"HTTP {status} without an answer of Paybell's.") from None
