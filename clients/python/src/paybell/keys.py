"""The keys and the agreement of a registration: one JSON shape, read from files that are read again when they change.

{"baseUrl": …, "apiKey": …, "cipher": …, "encoding": …, "signing": …, "fields": …,
 "encryptionKey": [{"id": …, "key": …}], "signingKey": [{"key": …}], "webhookSecret": [{"key": …}]}
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from .errors import PaybellError

log = logging.getLogger("paybell")
KINDS = ("encryptionKey", "signingKey", "webhookSecret")
PREFIX = "whsec_"


@dataclass(frozen=True)
class Keys:
    """Several versions of a key are those of a rotation: each is accepted. `fields` are the receiver's own settings:
    several while they change."""

    encryption: tuple[tuple[str, bytes], ...]
    signing: tuple[bytes, ...]
    webhook: tuple[bytes, ...]
    cipher: str = "aes-256-gcm"
    encoding: str = "base64"
    signed: Mapping[str, Any] | None = None
    fields: tuple[str, ...] = ("specification",)
    base_url: str = ""
    api_key: str = ""

    @staticmethod
    def of(*written: Mapping[str, Any]) -> Keys:
        """From the parsed content of one file or several: their versions are put together."""
        merged: dict[str, Any] = {}
        found: dict[str, list[tuple[str, bytes]]] = {kind: [] for kind in KINDS}
        for part in map(modern, written):
            merged.update(part)
            for kind in KINDS:
                given = part.get(kind, [])
                versions = [{"key": given}] if isinstance(given, str) else given
                found[kind] += [(one.get("id", ""), key_bytes(kind, one.get("key"))) for one in versions]
        owners: dict[bytes, str] = {}
        for kind in KINDS:
            if not found[kind]:
                raise PaybellError("missing_key", f"{kind} is missing.")
            for _, key in found[kind]:
                if owners.setdefault(key, kind) != kind:
                    raise PaybellError("shared_key", f"{kind} is the same key as {owners[key]}.")
        encryption, signing, webhook = (found[kind] for kind in KINDS)
        fields = merged.get("fields", "specification")
        fields = (fields,) if isinstance(fields, str) else tuple(fields)
        cipher, encoding = merged.get("cipher", "aes-256-gcm"), merged.get("encoding", "base64")
        allowed("cipher", cipher, "aes-256-gcm", "aes-256-cbc", "jwe")
        allowed("encoding", encoding, "base64", "base64url", "hex")
        signed = merged.get("signing", {"mode": "fields"})
        allowed("signing.mode", signed.get("mode"), "fields", "whole")
        for setting in fields or ("none",):
            allowed("fields", setting, "specification", "extended")
        return Keys(
            tuple(encryption),
            tuple(key for _, key in signing),
            tuple(key for _, key in webhook),
            cipher,
            encoding,
            signed,
            fields,
            merged.get("baseUrl", ""),
            merged.get("apiKey", ""),
        )


class KeyFile:
    """Keys in files, such as the one of the registration and those of rotations. They are read again when one changes.
    If they cannot be read then, the keys that were read before stay valid, and a warning is logged."""

    def __init__(self, *paths: str | os.PathLike[str]):
        self._paths = [Path(path) for path in paths]
        self._keys = Keys.of(*map(read_file, self._paths))
        self._stamp = self._now()

    def current(self) -> Keys:
        if (stamp := self._now()) != self._stamp:
            self._stamp = stamp
            try:
                self._keys = Keys.of(*map(read_file, self._paths))
            except (OSError, ValueError, PaybellError) as error:
                log.warning("The keys stay as they were: %s", error)
            self._stamp = self._now()
        return self._keys

    def _now(self) -> list[object]:
        stats = [path.stat() if path.exists() else None for path in self._paths]
        return [stat and (stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats]


KeySource = Union[Keys, KeyFile, Mapping[str, Any]]


def keys_of(source: KeySource) -> Keys:
    if isinstance(source, KeyFile):
        return source.current()
    return source if isinstance(source, Keys) else Keys.of(source)


def read_file(path: Path) -> Mapping[str, Any]:
    try:
        written = json.loads(path.read_text("utf-8"))
    except ValueError:  # Its text would quote the file.
        raise PaybellError("wrong_option", f"{path} is not JSON.", "Write it again.") from None
    content = modern(written)
    if content is not written:
        rewrite(path, content)
    return content


def modern(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same in today's shape: `encryptionKeys` and `{kind, secret}` are those of older files."""
    if "secret" in written and "kind" in written:
        kind, secret = written["kind"], written["secret"]
        times = {name: written[name] for name in ("id", "activeFrom", "expiresOld") if name in written}
        return {kind: secret} if kind == "apiKey" else {kind: [{**times, "key": secret}]}
    if not any(f"{kind}s" in written for kind in KINDS):
        return written
    content = {name: value for name, value in written.items() if name[:-1] not in KINDS}
    for kind in KINDS:
        versions = written.get(f"{kind}s", [])
        content[kind] = [one if isinstance(one, dict) else {"key": one} for one in versions]
    return content


def rewrite(path: Path, content: Mapping[str, Any]) -> None:
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.resolve().parent)  # 0600
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
        Path(temporary).chmod(path.stat().st_mode & 0o777)
        Path(temporary).replace(path.resolve())
        log.warning("%s was in an older shape, and is rewritten", path)
    except OSError as error:
        log.warning("%s is in an older shape, and cannot be rewritten: %s", path, error.strerror)


def key_bytes(kind: str, text: object) -> bytes:
    """A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning."""
    if not isinstance(text, str) or not text:
        raise PaybellError("missing_key", f"{kind} is missing.")
    if kind == "webhookSecret":
        if not text.startswith(PREFIX):
            raise PaybellError("no_whsec_prefix", f"{kind} does not begin with {PREFIX}.")
        text = text[len(PREFIX) :]
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if base64.b64encode(raw).decode() != text:
        raise PaybellError("key_not_base64", f"{kind} is not base64.")
    if len(raw) != 32:
        raise PaybellError("key_length", f"{kind} has {len(raw)} bytes instead of 32.")
    return raw


def allowed(name: str, value: object, *values: str) -> None:
    if value not in values:
        raise PaybellError("wrong_option", f"{name} must be one of {', '.join(values)}.", "Compare with GET /v1/self.")
