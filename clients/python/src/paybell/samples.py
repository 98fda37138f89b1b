"""IPNs as Paybell would POST them, signed and encrypted: for tests of your own callback."""

from __future__ import annotations

import copy
import hmac
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

from .errors import CONTRACT, PaybellError
from .keys import KeySource, keys_of
from .receiving import header_mac, signed_text
from .sealing import seal

# Keys that everybody knows: for tests only.
SAMPLE_KEYS: dict[str, str] = CONTRACT["sampleKeys"]


@dataclass(frozen=True)
class Sample:
    body: bytes
    headers: dict[str, str]
    ipn: dict[str, Any]


def sample(kind: str = "sale", keys: KeySource = SAMPLE_KEYS, **fields: Any) -> Sample:
    """A sale, decline, void, preauth, preauth_complete, cancel, refund or settlement. `fields` replace those of the
    IPN; the first version of each key is used."""
    if kind not in CONTRACT["samples"]:
        raise PaybellError("wrong_option", f"There is no sample {kind}, but {', '.join(CONTRACT['samples'])}.")
    setup, content = keys_of(keys), copy.deepcopy(CONTRACT["samples"][kind])
    command, ipn, extended = content["command"], content["ipn"], "extended" in setup.fields
    ipn.update(id=str(uuid.uuid4()), reqId=str(uuid.uuid4()))
    original = fields.get("originalId", str(uuid.uuid4()) if content["hasOriginal"] else "")
    if extended:
        ipn.update(content["extended"])
        ipn.update({"originalId": original} if "originalId" in ipn else {})
    unknown = [name for name in fields if name not in ipn]
    if unknown:
        raise PaybellError("wrong_option", f"A {kind} has no field {unknown[0]}.")
    ipn.update(fields)
    text = signed_text(setup, "settlement" if kind == "settlement" else "card", ipn, ipn, extended)
    ipn["signature"] = hmac.digest(setup.all("signingKey")[0], text.encode(), "sha256").hex()
    body = json.dumps({"data": seal(setup, json.dumps(ipn, ensure_ascii=False).encode())}, separators=(",", ":"))
    id, timestamp = str(uuid.uuid4()), str(int(time.time()))
    mac = header_mac(setup.all("webhookSecret")[0], id, timestamp, body.encode())
    headers = {"content-type": "application/json", "webhook-id": id, "webhook-timestamp": timestamp}
    headers |= {"webhook-signature": mac, "paybell-attempt": "1", "paybell-command": command}
    return Sample(body.encode(), headers | ({"paybell-original-transaction": original} if original else {}), ipn)
