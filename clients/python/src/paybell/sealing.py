"""The ciphers and encodings of `data`."""

from __future__ import annotations

import base64
import json
import os
import re

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from .errors import Refused
from .keys import Keys
from .strict_json import parse


def take_apart(setup: Keys, data: str) -> tuple[str | None, bytes, bytes, bytes]:
    """The id of the key where the message names it, the IV, the ciphertext, the additional authenticated data."""
    if setup.cipher != "jwe":
        raw, cbc = decode(data, setup.encoding), setup.cipher == "aes-256-cbc"
        iv_bytes, least = (16, 32) if cbc else (12, 28)
        if len(raw) < least or cbc and len(raw) % 16:
            raise Refused("encoding")
        return None, raw[:iv_bytes], raw[iv_bytes:], b""
    jwe = re.fullmatch(r"([^.]*)\.\.([^.]{16})\.([^.]*)\.([^.]{22})", data)  # An IV of 12 bytes, and a tag of 16.
    if not jwe:
        raise Refused("encoding")
    header, *parts = jwe.groups()
    iv, sealed, tag = (decode(part, "base64url") for part in parts)
    fields = parse(decode(header, "base64url", "jwe_header"), "jwe_header")
    usual = fields.get("alg") == "dir" and fields.get("enc") == "A256GCM" and isinstance(fields.get("kid"), str)
    if not usual or "zip" in fields or "crit" in fields:
        raise Refused("jwe_header")
    return fields["kid"], iv, sealed + tag, header.encode()


def decrypt(cipher: str, key: bytes, iv: bytes, sealed: bytes, authenticated: bytes) -> bytes:
    try:
        if cipher != "aes-256-cbc":
            return AESGCM(key).decrypt(iv, sealed, authenticated)
        decryptor, unpadder = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor(), PKCS7(128).unpadder()
        return unpadder.update(decryptor.update(sealed) + decryptor.finalize()) + unpadder.finalize()
    except (InvalidTag, ValueError):
        raise Refused("decryption") from None


def seal(setup: Keys, plain: bytes) -> str:
    """Encrypts as Paybell does."""
    id, key = setup.versions["encryptionKey"][0]
    if setup.cipher == "aes-256-cbc":
        iv, padder = os.urandom(16), PKCS7(128).padder()
        encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
        padded = padder.update(plain) + padder.finalize()
        return encode(iv + encryptor.update(padded) + encryptor.finalize(), setup.encoding)
    named = json.dumps({"alg": "dir", "enc": "A256GCM", "kid": id}).encode() if setup.cipher == "jwe" else b""
    iv, header = os.urandom(12), encode(named, "base64url")
    sealed = AESGCM(key).encrypt(iv, plain, header.encode())
    if header:
        return ".".join([header, "", *(encode(part, "base64url") for part in (iv, sealed[:-16], sealed[-16:]))])
    return encode(iv + sealed, setup.encoding)


def encode(raw: bytes, encoding: str) -> str:
    if encoding == "hex":
        return raw.hex()
    if encoding == "base64url":
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return base64.b64encode(raw).decode()


def decode(text: str, encoding: str, otherwise: str = "encoding") -> bytes:
    """The bytes, if the text is exactly what an encoder writes: decoders accept stray bits and alphabets."""
    try:
        raw = bytes.fromhex(text) if encoding == "hex" else base64.urlsafe_b64decode(text + "===")
    except ValueError:
        raise Refused(otherwise) from None
    if encode(raw, encoding) != (text.lower() if encoding == "hex" else text):
        raise Refused(otherwise)
    return raw
