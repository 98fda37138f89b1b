"""Opens an IPN: verifies who sent it and when, decrypts it, verifies its own signature."""

from __future__ import annotations

import base64
import hmac
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

from .errors import CONTRACT, Refused
from .ipn import CardIpn, SettlementIpn
from .keys import Keys, KeySource, keys_of
from .sealing import decrypt, take_apart
from .strict_json import canonical, parse, scalars

FRESHNESS_SECONDS = 300
BODY_BYTES_MAX = 16 * 1024 * 1024
# Longer bodies are not tried with other settings: refusing a body must not cost more than sending it.
TRIED_BYTES_MAX = 1024 * 1024

RequestHeaders = Union[Mapping[str, str], Iterable[tuple[str, str]]]


@dataclass(frozen=True)
class Received:
    """An authentic IPN. `ipn` has the tables' names, missing fields as empty strings. `wire` is the object as it was
    sent, with the fields that this version does not know. `headers` are by their names in lower case: no signature
    covers `paybell-command` and the like, so show them and log them, but decide nothing by them."""

    kind: str
    ipn: CardIpn | SettlementIpn
    wire: Mapping[str, Any]
    notification_id: str
    key_id: str
    headers: Mapping[str, str]


def open(body: bytes | str, headers: RequestHeaders, keys: KeySource, now: float | None = None) -> Received:
    """Opens a POST. `body` is the bytes as received, before any JSON parser. Raises Refused for anything else than an
    authentic, fresh IPN."""
    setup = keys_of(keys)
    raw = body.encode() if isinstance(body, str) else bytes(body)
    if len(raw) > BODY_BYTES_MAX:
        raise Refused("too_large")
    lists: dict[str, list[str]] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        lists.setdefault(name.lower(), []).append(value)
    got = {name: ", ".join(values) for name, values in lists.items()}
    check_headers(setup, raw, got, time.time() if now is None else now)
    named = got.get("paybell-key", "")
    try:
        kind, ipn, wire, key_id = open_body(raw, setup)
    except Refused as refused:
        code = mistake_of(raw) or explained(raw, refused.code, setup)
        finding = f"No encryptionKey decrypts it; the message names the version {named[:64]!a}."
        raise Refused(code, finding if code == "decryption" and named else "") from None
    return Received(kind, ipn, wire, got["webhook-id"], key_id or named, got)


def check_headers(setup: Keys, body: bytes, got: Mapping[str, str], now: float) -> None:
    """Standard Webhooks v1. Before anything is decrypted: a sender without the secret gets no further."""
    id, timestamp, signature = (got.get(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if id is None or timestamp is None or signature is None:
        raise Refused("missing_headers")
    well_formed = re.fullmatch(r"[^.\s]{1,256}", id) and re.fullmatch(r"[0-9]{1,12}", timestamp)
    entries = [entry.encode() for entry in signature.split(" ")]

    def matches(text: bytes, *kinds: str) -> bool:
        expected = [header_mac(key, id, timestamp, text).encode() for key in setup.all(*kinds)]
        return bool(well_formed) and any(hmac.compare_digest(one, entry) for one in expected for entry in entries)

    if not matches(body, "webhookSecret"):
        tried = body if len(body) <= TRIED_BYTES_MAX else b""
        pair = re.fullmatch(rb'\s*\{\s*"data"\s*:\s*("[^"\\]*")\s*\}\s*', tried)
        rewritten = pair and matches(b'{"data":' + pair[1] + b"}", "webhookSecret")
        swapped = tried and matches(tried, "encryptionKey", "signingKey")
        code = "rewritten_body" if rewritten else "swapped_keys" if swapped else "webhook_signature"
        raise Refused(mistake_of(body) or code)
    age = int(now) - int(timestamp)
    if abs(age) > FRESHNESS_SECONDS:
        raise Refused("not_fresh", f"webhook-timestamp is {abs(age)} s {'old' if age > 0 else 'ahead'} by this clock.")


def header_mac(secret: bytes, id: str, timestamp: str, body: bytes) -> str:
    mac = hmac.digest(secret, f"{id}.{timestamp}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(mac).decode()


def mistake_of(body: bytes) -> str | None:
    """What the body itself shows, whoever sent it."""
    start = body[:64].lstrip()
    found = [code for first, code in CONTRACT["starts"].items() if start.startswith(first.encode())]
    return found[0] if found else None if body else "empty_body"


def explained(body: bytes, code: str, setup: Keys) -> str:
    """Other settings are tried: only for the holder of the webhook secret."""
    attempts = CONTRACT["tries"]["signature" if code == "signature" else "body"]
    for attempt in attempts if len(body) <= TRIED_BYTES_MAX else []:
        change = {name: value for name, value in attempt.items() if name not in ("code", "keys")}
        swapped = {kind: [("", key) for key in setup.all(*others)] for kind, others in attempt.get("keys", {}).items()}
        try:
            open_body(body, replace(setup, versions={**setup.versions, **swapped}, **change))
            return attempt["code"]
        except Refused as refused:
            if code != "signature" == refused.code:
                return attempt["code"]
    return code


def open_body(body: bytes, setup: Keys) -> tuple[str, Any, dict, str]:
    envelope = parse(body, "envelope")
    if set(envelope) != {"data"} or not isinstance(envelope["data"], str):
        raise Refused("envelope")
    kid, iv, sealed, authenticated = take_apart(setup, envelope["data"])
    versions = [one for one in setup.versions["encryptionKey"] if kid is None or one[0] in ("", kid)]
    code = "decryption" if versions else "unknown_key"
    for id, key in versions:
        try:  # A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
            return (*check_content(setup, decrypt(setup.cipher, key, iv, sealed, authenticated)), id or kid or "")
        except Refused as refused:
            code = code if refused.code == "decryption" else refused.code
    raise Refused(code)


def check_content(setup: Keys, plain: bytes) -> tuple[str, Any, dict]:
    wire = parse(plain)
    settles = "saleQuantity" in wire or wire.get("transaction_type") == "SETTLE" and "settlementList" in wire
    kind = "settlement" if settles else "card"
    if not all(isinstance(one, str) for one in scalars(wire)):  # Section 2, unknown fields included.
        raise Refused("wrong_type")
    tables = CONTRACT["tables"][kind]
    # With the whole IPN signed, one without the added fields has the same signed string.
    sent = [setting for setting in setup.fields if all(name in wire for name in tables[setting]["added"])]
    for setting in sorted(sent):  # "extended" first: it says more of the same IPN.
        ipn = by_table_names(wire, tables[setting]["fields"])
        expected = signatures(setup, kind, setting, wire, ipn)
        if any(hmac.compare_digest(one.encode(), ipn["signature"].lower().encode()) for one in expected):
            if not settles:
                ipn["cardScheme"] = ipn["cardScheme"].upper()
            return kind, ipn, wire
    raise Refused("signature")


def signatures(setup: Keys, kind: str, setting: str, wire: Mapping, ipn: Mapping) -> list[str]:
    """Section 5.1, by each signing key. The extended fields follow the agreed list, unless it names them. If the
    receiver accepts IPNs without them too, a list that names them skips them there."""
    table = CONTRACT["tables"][kind][setting]
    names = setup.signing.get(kind) or table["signed"]
    own = [name for name in names if name in ipn] + [name for name in table["added"] if name not in names]
    text = "&".join(f"{name}={ipn[name]}" for name in own)
    if setup.signing["mode"] == "whole":
        text = canonical({name: value for name, value in wire.items() if name != "signature"})
    return [hmac.digest(key, text.encode(), "sha256").hex() for key in setup.all("signingKey")]


def by_table_names(wire: Mapping, fields: Iterable[list[str]]) -> dict:
    ipn: dict[str, Any] = {}
    for names in fields:
        found, is_list = [wire[name] for name in names if name in wire], names[0] == "settlementList"
        if len(found) > 1:
            raise Refused("two_names")
        value = found[0] if found else [] if is_list else ""
        entries = value if is_list else []
        if not isinstance(value, list if is_list else str) or not all(isinstance(entry, dict) for entry in entries):
            raise Refused("wrong_type")
        ipn[names[0]] = [by_table_names(entry, CONTRACT["entry"]) for entry in value] if is_list else value
    return ipn
