"""Opens an IPN: verifies who sent it and when, decrypts it, verifies its own signature."""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from .errors import CONTRACT, Refused
from .ipn import CardIpn, SettlementIpn
from .keys import CIPHERS, ENCODINGS, Keys, KeySource, keys_of

FRESHNESS_SECONDS = 300
BODY_BYTES_MAX = 16 * 1024 * 1024
LEVELS_MAX = 64
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


def open(  # noqa: A001
    body: bytes | str, headers: RequestHeaders, keys: KeySource, now: float | None = None
) -> Received:
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

    def matches(text: bytes, secrets: Iterable[bytes]) -> bool:
        expected = [header_mac(key, id, timestamp, text).encode() for key in secrets]
        return bool(well_formed) and any(hmac.compare_digest(one, entry) for one in expected for entry in entries)

    if not matches(body, setup.webhook):
        code, tried = mistake_of(body), body if len(body) <= TRIED_BYTES_MAX else b""
        pair = re.fullmatch(rb'\s*\{\s*"data"\s*:\s*("[^"\\]*")\s*\}\s*', tried)
        if pair and matches(b'{"data":' + pair[1] + b"}", setup.webhook):
            code = code or "rewritten_body"
        elif tried and matches(tried, [key for _, key in setup.encryption] + list(setup.signing)):
            code = code or "swapped_keys"
        raise Refused(code or "webhook_signature")
    age = int(now) - int(timestamp)
    if abs(age) > FRESHNESS_SECONDS:
        raise Refused("not_fresh", f"webhook-timestamp is {abs(age)} s {'old' if age > 0 else 'ahead'} by this clock.")


def header_mac(secret: bytes, id: str, timestamp: str, body: bytes) -> str:
    mac = hmac.digest(secret, f"{id}.{timestamp}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(mac).decode()


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

    encryption, both = tuple(key for _, key in setup.encryption), ("specification", "extended")
    tries: list[tuple[str, dict[str, Any]]] = [
        ("wrong_fields", {"fields": tuple(one for one in both if one not in setup.fields)}),
        ("wrong_signing", {"signed": {"mode": "whole"}, "fields": both}),
        ("wrong_signing", {"signed": {"mode": "fields"}, "fields": both}),
        ("swapped_keys", {"signing": encryption + setup.webhook}),
    ]
    if code != "signature":
        others = tuple(("", key) for key in setup.signing + setup.webhook)
        own = [("wrong_encoding", {"encoding": one}) for one in ENCODINGS if setup.cipher != "jwe"]
        pairs = [
            {"cipher": cipher, "encoding": one} for cipher in CIPHERS if cipher != setup.cipher for one in ENCODINGS
        ]
        tries = [*own, *(("wrong_cipher", pair) for pair in pairs), ("swapped_keys", {"encryption": others})]
    for found, change in tries:
        try:
            open_body(body, replace(setup, **change))
            return found
        except Refused as refused:
            if code != "signature" == refused.code:
                return found
    return code


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
    if not all(isinstance(one, str) for one in scalars(wire)):  # Section 2, unknown fields included.
        raise Refused("wrong_type")
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
    if setup.signed["mode"] == "whole":
        return canonical({name: value for name, value in wire.items() if name != "signature"})
    names, added = setup.signed.get(kind) or CONTRACT[kind]["signed"], CONTRACT[kind]["extended"]
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
        value = wire.get(name, wire.get(alias or name, [] if is_list else ""))
        if not isinstance(value, list if is_list else str):
            raise Refused("wrong_type")
        if is_list and not all(isinstance(entry, dict) for entry in value):
            raise Refused("wrong_type")
        ipn[name] = [by_table_names(entry, "entry") for entry in value] if is_list else value
    return ipn


def scalars(value: object, levels: int = LEVELS_MAX) -> Iterator[object]:
    if not isinstance(value, (dict, list)):
        yield value
    elif levels == 0:
        raise ValueError("too deep")
    else:
        for item in value.values() if isinstance(value, dict) else value:
            yield from scalars(item, levels - 1)


def parse(raw: bytes) -> dict[str, Any]:
    """One JSON object in UTF-8, without duplicate keys, lone surrogates, or more than 64 levels."""
    duplicates = 0

    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal duplicates
        content = dict(pairs)
        duplicates += len(pairs) - len(content)
        return content

    try:
        text = raw.decode()
    except ValueError:
        raise Refused("not_text") from None
    try:  # int raises for NaN and Infinity, encode for half of a surrogate pair.
        value = json.loads(text, object_pairs_hook=counted, parse_constant=int)
        sum(1 for _ in scalars(value))
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Refused("not_json") from None
    if duplicates or not isinstance(value, dict):
        raise Refused("duplicate_key" if duplicates else "not_json")
    return value


quoted = json.JSONEncoder(ensure_ascii=False).encode


def canonical(value: Any) -> str:
    """RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(quoted(name) + ":" + canonical(value[name]) for name in names) + "}"


URL, STANDARD = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")


def encode(raw: bytes, encoding: str) -> str:
    if encoding == "hex":
        return raw.hex()
    text = base64.b64encode(raw).decode()
    return text.translate(URL).rstrip("=") if encoding == "base64url" else text


def decode(text: str, encoding: str) -> bytes:
    """The bytes, if the text is exactly what an encoder writes: decoders accept stray bits and alphabets."""
    try:
        raw = bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text.translate(STANDARD) + "===")
    except ValueError:
        raise Refused("encoding") from None
    if encode(raw, encoding) != (text.lower() if encoding == "hex" else text):
        raise Refused("encoding")
    return raw
