"""The keys and the agreement of a registration: one JSON shape, read from files that are read again when they change.

{"baseUrl": …, "apiKey": …, "cipher": …, "encoding": …, "signing": …, "fields": …,
 "encryptionKey": [{"id": …, "key": …}], "signingKey": [{"key": …}], "webhookSecret": [{"key": …}]}
"""

from __future__ import annotations

import base64
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from .errors import PaybellError

log = logging.getLogger("paybell")
KINDS = ("encryptionKey", "signingKey", "webhookSecret")
CIPHERS = ("aes-256-gcm", "aes-256-cbc", "jwe")
ENCODINGS = ("base64", "base64url", "hex")
DEFAULTS = {"cipher": "aes-256-gcm", "encoding": "base64", "signing": {"mode": "fields"}, "fields": "specification"}


@dataclass(frozen=True)
class Keys:
    """Several versions of a key are those of a rotation: each is accepted. `fields` are the receiver's own settings:
    several while they change."""

    encryption: tuple[tuple[str, bytes], ...]
    signing: tuple[bytes, ...]
    webhook: tuple[bytes, ...]
    cipher: str
    encoding: str
    signed: Mapping[str, Any]
    fields: tuple[str, ...]
    base_url: str
    api_key: str

    @staticmethod
    def of(*written: Mapping[str, Any]) -> Keys:
        """From the parsed content of one file or several: their versions are put together."""
        merged: dict[str, Any] = {**DEFAULTS}
        found: dict[str, list[tuple[str, bytes]]] = {kind: [] for kind in KINDS}
        owners: dict[bytes, str] = {}
        for part in map(modern, written):
            merged.update(part)
            for kind in KINDS:
                given = part.get(kind, [])
                for one in [{"key": given}] if isinstance(given, str) else given:
                    key = key_bytes(kind, one.get("key"))
                    found[kind].append((one.get("id", ""), key))
                    if owners.setdefault(key, kind) != kind:
                        raise PaybellError("shared_key", f"{kind} is the same key as {owners[key]}.")
        for kind in KINDS:
            if not found[kind]:
                raise PaybellError("missing_key", f"{kind} is missing.")
        cipher, encoding, signed, fields = (merged[name] for name in DEFAULTS)
        fields = (fields,) if isinstance(fields, str) else tuple(fields)
        allowed("cipher", cipher, CIPHERS)
        allowed("encoding", encoding, ENCODINGS)
        allowed("signing.mode", signed.get("mode"), ("fields", "whole"))
        for setting in fields or ("none",):
            allowed("fields", setting, ("specification", "extended"))
        signing, webhook = (tuple(key for _, key in found[kind]) for kind in KINDS[1:])
        access = merged.get("baseUrl", ""), merged.get("apiKey", "")
        return Keys(tuple(found["encryptionKey"]), signing, webhook, cipher, encoding, signed, fields, *access)


class KeyFile:
    """Keys in files, such as the one of the registration and those of rotations. They are read again when one changes.
    If they cannot be read then, the keys that were read before stay valid, and a warning is logged."""

    def __init__(self, *paths: str | os.PathLike[str]):
        self._paths = [Path(path) for path in paths]
        self._stamp = self._now()  # Before it is read: what changes meanwhile is read again.
        self._keys = Keys.of(*map(read_file, self._paths))

    def current(self) -> Keys:
        if (stamp := self._now()) != self._stamp:
            self._stamp = stamp
            try:
                self._keys = Keys.of(*map(read_file, self._paths))
            except (OSError, ValueError, PaybellError) as error:
                log.warning("The keys stay as they were: %s", error)
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
    old = {kind: written[f"{kind}s"] for kind in KINDS if f"{kind}s" in written}
    lists = {kind: [one if isinstance(one, dict) else {"key": one} for one in given] for kind, given in old.items()}
    return {name: value for name, value in written.items() if name[:-1] not in KINDS} | lists if lists else written


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
    prefix = "whsec_" if kind == "webhookSecret" else ""
    if not text.startswith(prefix):
        raise PaybellError("no_whsec_prefix", f"{kind} does not begin with {prefix}.")
    try:
        raw = base64.b64decode(text[len(prefix) :])
    except ValueError:
        raw = b""
    if prefix + base64.b64encode(raw).decode() != text:
        raise PaybellError("key_not_base64", f"{kind} is not base64.")
    if len(raw) != 32:
        raise PaybellError("key_length", f"{kind} has {len(raw)} bytes instead of 32.")
    return raw


def allowed(name: str, value: object, values: Iterable[str]) -> None:
    if value not in values:
        raise PaybellError("wrong_option", f"{name} must be one of {', '.join(values)}.", "Compare with GET /v1/self.")
