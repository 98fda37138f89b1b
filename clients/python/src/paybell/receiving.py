"""Opens an IPN: verifies who sent it and when, decrypts it, verifies its own signature."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from .errors import CONTRACT, Refused
from .ipn import CardIpn, SettlementIpn
from .keys import Keys, KeySource, keys_of

FRESHNESS_SECONDS = 300
BODY_BYTES_MAX = 16 * 1024 * 1024
LEVELS_MAX = 64
# Longer bodies are not tried with other settings: refusing a body must not cost more than sending it.
TRIED_BYTES_MAX = 1024 * 1024

RequestHeaders = Union[Mapping[str, str], Iterable[tuple[str, str]]]


@dataclass(frozen=True)
class Headers:
    """Hints that no signature covers: show them and log them, but decide nothing by them."""

    attempt: str
    command: str
    original_transaction_id: str
    out_of_order: bool


@dataclass(frozen=True)
class Received:
    """An authentic IPN. `ipn` has the tables' names, missing fields as empty strings. `wire` is the object as it was
    sent, with the fields that this version does not know."""

    kind: str
    ipn: CardIpn | SettlementIpn
    wire: Mapping[str, Any]
    notification_id: str
    key_id: str
    headers: Headers


def open(  # noqa: A001
    body: bytes | str, headers: RequestHeaders, keys: KeySource, now: float | None = None
) -> Received:
    """Opens a POST. `body` is the bytes as received, before any JSON parser. Raises Refused for anything else than an
    authentic, fresh IPN."""
    setup = keys_of(keys)
    raw = body.encode() if isinstance(body, str) else bytes(body)
    if len(raw) > BODY_BYTES_MAX:
        raise Refused("too_large")
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    got: dict[str, str] = {}
    for name, value in pairs:
        got[name.lower()] = f"{got[name.lower()]}, {value}" if name.lower() in got else value
    check_headers(setup, raw, got, time.time() if now is None else now)
    try:
        kind, ipn, wire, key_id = open_body(raw, setup)
    except Refused as refused:
        code = mistake_of(raw) or explained(raw, refused.code, setup)
        named = got.get("paybell-key", "") if code == "decryption" else ""
        finding = f"No encryptionKey decrypts it; the message names the version {named[:64]!a}." if named else ""
        raise Refused(code, finding) from None
    hints = Headers(
        got.get("paybell-attempt", ""),
        got.get("paybell-command", ""),
        got.get("paybell-original-transaction", ""),
        got.get("paybell-out-of-order") == "1",
    )
    return Received(kind, ipn, wire, got["webhook-id"], key_id or got.get("paybell-key", ""), hints)


def check_headers(setup: Keys, body: bytes, got: Mapping[str, str], now: float) -> None:
    """Standard Webhooks v1. Before anything is decrypted: a sender without the secret gets no further."""
    id, timestamp, signature = (got.get(f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    if id is None or timestamp is None or signature is None:
        raise Refused("missing_headers")
    well_formed = re.fullmatch(r"[^.\s]{1,256}", id) and re.fullmatch(r"[0-9]{1,12}", timestamp)
    start, entries = f"{id}.{timestamp}.".encode(), [entry.encode() for entry in signature.split(" ")]

    def matches(text: bytes, secrets: Iterable[bytes]) -> bool:
        expected = [b"v1," + base64.b64encode(hmac.digest(key, start + text, "sha256")) for key in secrets]
        return bool(well_formed) and any(hmac.compare_digest(one, entry) for one in expected for entry in entries)

    if not matches(body, setup.webhook):
        code = mistake_of(body)
        if code is None and len(body) <= TRIED_BYTES_MAX:
            pair = re.fullmatch(rb'\s*\{\s*"data"\s*:\s*("[^"\\]*")\s*\}\s*', body)
            if pair and matches(b'{"data":' + pair[1] + b"}", setup.webhook):
                code = "rewritten_body"
            elif matches(body, [key for _, key in setup.encryption] + list(setup.signing)):
                code = "swapped_keys"
        raise Refused(code or "webhook_signature")
    age = int(now) - int(timestamp)
    if abs(age) > FRESHNESS_SECONDS:
        raise Refused("not_fresh", f"webhook-timestamp is {abs(age)} s {'old' if age > 0 else 'ahead'} by this clock.")


def mistake_of(body: bytes) -> str | None:
    """What the body itself shows, whoever sent it."""
    start = body[:64].lstrip()
    shapes = {"compressed_body": b"\x1f\x8b", "html_body": b"<", "stringified_body": (b"[object ", b'"')}
    found = [code for code, prefix in shapes.items() if start.startswith(prefix)]
    return found[0] if found else None if body else "empty_body"


def explained(body: bytes, code: str, setup: Keys) -> str:
    """Other settings are tried: only for the holder of the webhook secret."""
    if len(body) > TRIED_BYTES_MAX:
        return code

    def gives(**change: Any) -> str:
        try:
            return open_body(body, replace(setup, **change)) and "opened"
        except Refused as refused:
            return refused.code

    encryption = tuple(key for _, key in setup.encryption)
    if code == "signature":
        if any(gives(signed={"mode": mode}, fields=("specification", "extended")) == "opened" for mode in SIGNED):
            return "wrong_signing"
        return "swapped_keys" if gives(signing=encryption + setup.webhook) == "opened" else code
    decrypted = ("opened", "signature")
    for cipher in ("aes-256-gcm", "aes-256-cbc", "jwe"):
        for encoding in ("base64", "base64url", "hex"):
            if gives(cipher=cipher, encoding=encoding) in decrypted:
                if cipher != setup.cipher:
                    return "wrong_cipher"
                if encoding != setup.encoding and cipher != "jwe":
                    return "wrong_encoding"
    others = tuple(("", key) for key in setup.signing + setup.webhook)
    return "swapped_keys" if gives(encryption=others) in decrypted else code


SIGNED = ("whole", "fields")


def open_body(body: bytes, setup: Keys) -> tuple[str, Any, dict, str]:
    try:
        envelope = parse(body)
    except Refused:
        envelope = {}
    if set(envelope) != {"data"} or not isinstance(envelope["data"], str):
        raise Refused("envelope")
    kid, iv, sealed, authenticated = take_apart(setup, envelope["data"])
    versions = [one for one in setup.encryption if kid is None or one[0] in ("", kid)]
    code = "decryption" if versions else "unknown_key"
    for id, key in versions:
        try:  # A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
            return (*check_content(setup, decrypt(setup.cipher, key, iv, sealed, authenticated)), id or kid or "")
        except Refused as refused:
            code = code if refused.code == "decryption" else refused.code
    raise Refused(code)


def take_apart(setup: Keys, data: str) -> tuple[str | None, bytes, bytes, bytes | None]:
    """The id of the key where the message names it, the IV, the ciphertext, the additional authenticated data."""
    if setup.cipher != "jwe":
        raw, cbc = decode(data, setup.encoding), setup.cipher == "aes-256-cbc"
        iv_bytes, least = (16, 32) if cbc else (12, 28)
        if len(raw) < least or cbc and len(raw) % 16:
            raise Refused("encoding")
        return None, raw[:iv_bytes], raw[iv_bytes:], None
    if data.count(".") != 4:
        raise Refused("encoding")
    header, encrypted_key, *parts = data.split(".")
    iv, sealed, tag = (decode(part, "base64url") for part in parts)
    if encrypted_key or len(iv) != 12 or len(tag) != 16:
        raise Refused("encoding")
    try:
        fields = parse(decode(header, "base64url"))
    except Refused:
        fields = {}
    usual = fields.get("alg") == "dir" and fields.get("enc") == "A256GCM" and isinstance(fields.get("kid"), str)
    if not usual or "zip" in fields or "crit" in fields:
        raise Refused("jwe_header")
    return fields["kid"], iv, sealed + tag, header.encode()


def decrypt(cipher: str, key: bytes, iv: bytes, sealed: bytes, authenticated: bytes | None) -> bytes:
    try:
        if cipher != "aes-256-cbc":
            return AESGCM(key).decrypt(iv, sealed, authenticated)
        decryptor, unpadder = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor(), PKCS7(128).unpadder()
        return unpadder.update(decryptor.update(sealed) + decryptor.finalize()) + unpadder.finalize()
    except (InvalidTag, ValueError):
        raise Refused("decryption") from None


def check_content(setup: Keys, plain: bytes) -> tuple[str, Any, dict]:
    wire = parse(plain)
    settles = "saleQuantity" in wire or wire.get("transaction_type") == "SETTLE" and "settlementList" in wire
    kind = "settlement" if settles else "card"
    texts_only(wire)
    for setting in sorted(setup.fields):  # "extended" first: it says more of the same IPN.
        # With the whole IPN signed, one without these fields has the same signed string.
        if setting == "extended" and any(name not in wire for name in CONTRACT[kind]["extended"]):
            continue
        ipn = by_table_names(wire, kind, setting == "extended")
        text = signed_text(setup, kind, wire, ipn, setting == "extended")
        expected = [hmac.digest(key, text.encode(), "sha256").hex().encode() for key in setup.signing]
        if any(hmac.compare_digest(one, ipn["signature"].lower().encode()) for one in expected):
            if not settles:
                ipn["cardScheme"] = ipn["cardScheme"].upper()
            return kind, ipn, wire
    raise Refused("signature")


def signed_text(setup: Keys, kind: str, wire: Mapping, ipn: Mapping, extended: bool) -> str:
    """Section 5.1. The extended fields follow the agreed list, unless it names them."""
    signed = setup.signed or {"mode": "fields"}
    if signed["mode"] == "whole":
        return canonical({name: value for name, value in wire.items() if name != "signature"})
    names, added = signed.get(kind) or CONTRACT[kind]["signed"], CONTRACT[kind]["extended"]
    if extended:
        names = [*names, *(name for name in added if name not in names)]
    # A list for both kinds of IPN may name them: they are no part of the other kind.
    own = [name for name in names if extended or name not in added]
    return "&".join(f"{name}={ipn.get(name, '')}" for name in own)


def by_table_names(wire: Mapping, kind: str, extended: bool = False) -> dict:
    ipn: dict[str, Any] = {}
    table = CONTRACT[kind]["fields"] + [[name, ""] for name in CONTRACT[kind].get("extended", []) if extended]
    for name, alias in table:
        if alias and name in wire and alias in wire:
            raise Refused("two_names")
        is_list = name == "settlementList"
        value = wire.get(name, wire.get(alias, [] if is_list else ""))
        if not isinstance(value, list if is_list else str):
            raise Refused("wrong_type")
        if is_list and not all(isinstance(entry, dict) for entry in value):
            raise Refused("wrong_type")
        ipn[name] = [by_table_names(entry, "entry") for entry in value] if is_list else value
    return ipn


def texts_only(value: object) -> None:
    """Section 2: all scalars are strings. This applies to unknown fields as well."""
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            texts_only(item)
    elif not isinstance(value, str):
        raise Refused("wrong_type")


def parse(raw: bytes) -> dict[str, Any]:
    """One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels."""
    duplicates: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            duplicates.append("")
        return content

    def refuse(_: str) -> None:
        raise ValueError("no such number")

    try:
        text = raw.decode("utf-8")
    except ValueError:
        raise Refused("not_text") from None
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        depth(value, LEVELS_MAX)
    except (ValueError, RecursionError):
        raise Refused("not_json") from None
    if duplicates:
        raise Refused("duplicate_key")
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError:
        raise Refused("not_json") from None
    if not isinstance(value, dict):
        raise Refused("not_json")
    return value


def depth(value: object, levels: int) -> None:
    if isinstance(value, (dict, list)):
        if levels == 0:
            raise ValueError("too deep")
        for item in value.values() if isinstance(value, dict) else value:
            depth(item, levels - 1)


quoted = json.JSONEncoder(ensure_ascii=False).encode


def canonical(value: Any) -> str:
    """RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(quoted(name) + ":" + canonical(value[name]) for name in names) + "}"


def decode(text: str, encoding: str) -> bytes:
    """The bytes, if the text is exactly what an encoder writes: decoders accept stray bits and alphabets."""
    url = encoding == "base64url"
    try:
        if encoding == "hex":
            return binascii.unhexlify(text)
        raw = base64.b64decode(text + "=" * (-len(text) % 4 if url else 0), b"-_" if url else None)
    except ValueError:
        raise Refused("encoding") from None
    again = base64.b64encode(raw, b"-_" if url else None).decode()
    if text != (again.rstrip("=") if url else again):
        raise Refused("encoding")
    return raw
