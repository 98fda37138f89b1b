"""JSON of a stranger, read strictly, and JSON that is signed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .errors import Refused

LEVELS_MAX = 64
quoted = json.JSONEncoder(ensure_ascii=False).encode


def scalars(value: object, levels: int = LEVELS_MAX) -> Iterator[object]:
    if not isinstance(value, (dict, list)):
        yield value
    elif levels == 0:
        raise ValueError("too deep")
    else:
        for item in value.values() if isinstance(value, dict) else value:
            yield from scalars(item, levels - 1)


def parse(raw: bytes, otherwise: str = "") -> dict[str, Any]:
    """One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels. Another text is
    refused with a code that says why, unless another code is given."""
    repeated = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.append(len(dict(pairs)) < len(pairs))
        return dict(pairs)

    try:  # int raises for NaN and Infinity, encode for half of a surrogate pair.
        value = json.loads(raw.decode(), object_pairs_hook=noted, parse_constant=int)
        sum(1 for _ in scalars(value))
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise Refused(otherwise or "not_text") from None
    except (ValueError, RecursionError):
        raise Refused(otherwise or "not_json") from None
    if any(repeated) or not isinstance(value, dict):
        raise Refused(otherwise or ("duplicate_key" if any(repeated) else "not_json"))
    return value


def canonical(value: Any) -> str:
    """RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(quoted(name) + ":" + canonical(value[name]) for name in names) + "}"
