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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from .errors import CONTRACT, PaybellError

log = logging.getLogger("paybell")
KINDS = ("encryptionKey", "signingKey", "webhookSecret")


@dataclass(frozen=True)
class Keys:
    """Several versions of a key, each an id and 32 bytes, are those of a rotation: each is accepted. `fields` are the
    receiver's own settings: several while they change."""

    versions: Mapping[str, list[tuple[str, bytes]]]
    cipher: str
    encoding: str
    signing: Mapping[str, Any]
    fields: list[str]
    base_url: str
    api_key: str

    @staticmethod
    def of(*written: Mapping[str, Any]) -> Keys:
        """From the parsed content of one file or several: their versions are put together."""
        merged, owners = dict(CONTRACT["defaults"]), {}
        versions: dict[str, list[tuple[str, bytes]]] = {kind: [] for kind in KINDS}
        for part in map(modern, written):
            merged.update(part)
            for kind in KINDS:
                given = part.get(kind, [])
                for one in given if isinstance(given, list) else [given]:
                    id, key = (one.get("id", ""), one.get("key")) if isinstance(one, Mapping) else ("", one)
                    versions[kind].append((id, key_bytes(kind, key, owners)))
        for kind in KINDS:
            if not versions[kind]:
                raise PaybellError.about(kind, "missing_key")
        cipher, encoding, signing, fields, base_url, api_key = (merged[name] for name in CONTRACT["defaults"])
        fields = fields if isinstance(fields, list) else [fields]
        mode = signing.get("mode") if isinstance(signing, Mapping) else None
        for name, values in {"cipher": [cipher], "encoding": [encoding], "signing": [mode], "fields": fields}.items():
            allowed = CONTRACT["settings"][name]
            if not values or any(value not in allowed for value in values):
                raise PaybellError("wrong_option", f"{name} must be one of {', '.join(allowed)}.")
        return Keys(versions, cipher, encoding, signing, fields, base_url, api_key)

    def all(self, *kinds: str) -> list[bytes]:
        return [key for kind in kinds for _, key in self.versions[kind]]


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
    except ValueError:
        written = None  # The error's text would quote the file.
    if not isinstance(written, dict):
        raise PaybellError("wrong_option", f"{path} is not a JSON object.")
    content = modern(written)
    if content is not written:
        rewrite(path, content)
    return content


def modern(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same in today's shape: `encryptionKeys` and `{kind, secret}` are those of older files."""
    if "secret" in written and "kind" in written:
        more = dict(written)
        kind, secret = more.pop("kind"), more.pop("secret")
        return {kind: secret} if kind == "apiKey" else {kind: [{**more, "key": secret}]}
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


def key_bytes(kind: str, given: object, owners: dict[bytes, str]) -> bytes:
    """A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning."""
    text, prefix = given if isinstance(given, str) else "", "whsec_" if kind == "webhookSecret" else ""
    try:
        raw = base64.b64decode(text[len(prefix) :])
    except ValueError:
        raw = b""
    mistakes = {"missing_key": not text, "no_whsec_prefix": not text.startswith(prefix)}
    mistakes |= {"key_not_base64": prefix + base64.b64encode(raw).decode() != text, "key_length": len(raw) != 32}
    mistakes["shared_key"] = owners.setdefault(raw, kind) != kind
    for code, is_made in mistakes.items():
        if is_made:
            raise PaybellError.about(kind, code)
    return raw
