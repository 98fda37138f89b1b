"""The keys and the agreement of a registration: one JSON shape, read from files that are read again when they change.

{"baseUrl": …, "apiKey": …, "cipher": …, "encoding": …, "signing": …, "fields": …,
 "encryptionKey": [{"id": …, "key": …}], "signingKey": [{"key": …}], "webhookSecret": [{"key": …}]}
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import tempfile
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from .errors import CONTRACT, PaybellError

log = logging.getLogger("paybell")
KINDS = tuple(CONTRACT["keys"])


class KeyBytes(bytes):
    """Hidden from what reports errors with their local variables."""

    def __repr__(self) -> str:
        return "<key>"


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
    api_key: str = field(repr=False)

    @staticmethod
    def of(*written: Mapping[str, Any]) -> Keys:
        """From the parsed content of one file or several: their versions are put together."""
        parts, versions, owners = [modern(part) for part in written], {}, {}
        merged = dict(ChainMap(*reversed(parts), CONTRACT["defaults"]))
        for kind in KINDS:  # Without a version, the one that is checked has no key.
            given = [one for part in parts for one in part.get(kind, [])] or [{}]
            versions[kind] = [(str(one.get("id", "")), key_bytes(kind, one, owners)) for one in given]
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
            try:
                self._keys = Keys.of(*map(read_file, self._paths))
                self._stamp = stamp  # Not before: a file gets the right to be read without a change of its times.
            except (OSError, ValueError, PaybellError) as error:
                log.warning("The keys stay as they were: %s", error)
        return self._keys

    def _now(self) -> list[object]:
        return [stamp_of(path) for path in self._paths]


def stamp_of(path: Path) -> object:
    try:
        stat = path.stat()
    except OSError:  # Reading it says why.
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


KeySource = Union[Keys, KeyFile, Mapping[str, Any]]


def keys_of(source: KeySource) -> Keys:
    keys = source.current() if isinstance(source, KeyFile) else source
    return keys if isinstance(keys, Keys) else Keys.of(keys)


def read_file(path: Path) -> Mapping[str, Any]:
    try:
        written = json.loads(path.read_text("utf-8"))
    except ValueError:
        written = None  # The error's text would quote the file.
    if not isinstance(written, dict):
        raise PaybellError("wrong_option", f"{path} is not a JSON object.")
    content = modern(written)
    if content.keys() != written.keys():
        rewrite(path, content)
    return content


def modern(written: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same in today's shape: `encryptionKeys` and `{kind, secret}` are those of older files."""
    content = dict(written)
    if "secret" in content and "kind" in content:
        kind, secret = content.pop("kind"), content.pop("secret")
        content = {kind: secret if kind == "apiKey" else [{**content, "key": secret}]}
    for kind in KINDS:
        given = content.pop(f"{kind}s", content.get(kind, []))
        if given != []:
            given = given if isinstance(given, list) else [given]
            content[kind] = [one if isinstance(one, Mapping) else {"key": one} for one in given]
    return content


def rewrite(path: Path, content: Mapping[str, Any]) -> None:
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.resolve().parent)  # 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                file.flush()
                os.fsync(descriptor)
            Path(temporary).chmod(path.stat().st_mode & 0o777)
            Path(temporary).replace(path.resolve())
        finally:
            Path(temporary).unlink(missing_ok=True)
        log.warning("%s was in an older shape, and is rewritten", path)
    except OSError as error:
        log.warning("%s is in an older shape, and cannot be rewritten: %s", path, error.strerror)


def key_bytes(kind: str, version: Mapping[str, Any], owners: dict[bytes, str]) -> bytes:
    """A key that is slightly wrong must fail here, at the start, not as "not authentic" at three in the morning."""
    text = version["key"] if isinstance(version.get("key"), str) else ""
    mistakes = [code for code, shape in CONTRACT["keys"][kind].items() if not re.fullmatch(shape, text)]
    if not mistakes and owners.setdefault(base64.b64decode(text[-44:]), kind) != kind:
        mistakes = ["shared_key"]
    if mistakes:
        raise PaybellError(mistakes[0], f"{kind} {CONTRACT['errors'][mistakes[0]]['finding']}")
    return KeyBytes(base64.b64decode(text[-44:]))
