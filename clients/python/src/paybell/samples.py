"""IPNs as Paybell would POST them, signed and encrypted: for tests of your own callback."""

from __future__ import annotations

import base64
import copy
import hmac
import json
import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from .errors import CONTRACT, PaybellError
from .keys import Keys, KeySource, keys_of
from .receiving import encode, header_mac, signed_text

# Keys that everybody knows: for tests only.
SAMPLE_KEYS = {
    "encryptionKey": base64.b64encode(b"\1" * 32).decode(),
    "signingKey": base64.b64encode(b"\2" * 32).decode(),
    "webhookSecret": "whsec_" + base64.b64encode(b"\3" * 32).decode(),
}


@dataclass(frozen=True)
class Sample:
    body: bytes
    headers: dict[str, str]
    ipn: dict[str, Any]


def sample(kind: str = "sale", keys: KeySource = SAMPLE_KEYS, **fields: Any) -> Sample:
    """A sale, decline, void, preauth, preauth_complete, cancel, refund or settlement. `fields` replace those of the
    IPN; the first version of each key is used."""
    if kind not in CONTRACT["samples"]:
        raise PaybellError("wrong_option", f"There is no sample {kind}.", f"Use {', '.join(CONTRACT['samples'])}.")
    setup, content = keys_of(keys), copy.deepcopy(CONTRACT["samples"][kind])
    command, table = content["command"], "settlement" if kind == "settlement" else "card"
    follows = command in ("VOID", "PREAUTH_COMPLETE", "REFUND")
    original = fields.get("originalId", str(uuid.uuid4()) if follows else "")
    ipn = {**content["ipn"], "id": str(uuid.uuid4()), "reqId": str(uuid.uuid4())}
    extended = "extended" in setup.fields
    if extended:
        more = {"command": command, "originalId": original, "originalReqId": "", "currency": "VND"}
        ipn.update({name: more[name] for name in CONTRACT[table]["extended"]})
    unknown = [name for name in fields if name not in ipn]
    if unknown:
        raise PaybellError("wrong_option", f"A {kind} has no field {unknown[0]}.", f"It has {', '.join(ipn)}.")
    ipn.update(fields)
    text = signed_text(setup, table, ipn, ipn, extended)
    ipn["signature"] = hmac.digest(setup.signing[0], text.encode(), "sha256").hex()
    body = json.dumps({"data": seal(setup, json.dumps(ipn, ensure_ascii=False).encode())}, separators=(",", ":"))
    id, timestamp = str(uuid.uuid4()), str(int(time.time()))
    mac = header_mac(setup.webhook[0], id, timestamp, body.encode())
    headers = {"content-type": "application/json", "webhook-id": id, "webhook-timestamp": timestamp}
    headers |= {"webhook-signature": mac, "paybell-attempt": "1", "paybell-command": command}
    return Sample(body.encode(), headers | ({"paybell-original-transaction": original} if original else {}), ipn)


def seal(setup: Keys, plain: bytes) -> str:
    (id, key), iv = setup.encryption[0], os.urandom(12)
    if setup.cipher == "jwe":
        header = encode(json.dumps({"alg": "dir", "enc": "A256GCM", "kid": id}).encode(), "base64url")
        sealed = AESGCM(key).encrypt(iv, plain, header.encode())
        return ".".join([header, "", *(encode(part, "base64url") for part in (iv, sealed[:-16], sealed[-16:]))])
    if setup.cipher == "aes-256-gcm":
        return encode(iv + AESGCM(key).encrypt(iv, plain, None), setup.encoding)
    iv, padder = os.urandom(16), PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    padded = padder.update(plain) + padder.finalize()
    return encode(iv + encryptor.update(padded) + encryptor.finalize(), setup.encoding)
