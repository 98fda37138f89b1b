"""IPNs as Paybell would POST them, signed and encrypted: for tests of your own callback."""

from __future__ import annotations

import copy
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

from .errors import CONTRACT, PaybellError
from .keys import KeySource, keys_of
from .receiving import header_mac, signatures
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
    table, setting = "settlement" if kind == "settlement" else "card", min(setup.fields)
    id, req_id, notification_id = (str(uuid.uuid4()) for _ in range(3))
    given = content["ipn"] | {"id": id, "reqId": req_id}
    ipn = {names[0]: given.get(names[0], "") for names in CONTRACT["tables"][table][setting]["fields"]}
    for name in fields:
        if name not in ipn:
            raise PaybellError("wrong_option", f"A {kind} has no field {name}.")
    ipn.update(fields)
    ipn["signature"] = signatures(setup, table, setting, ipn, ipn)[0]
    body = json.dumps({"data": seal(setup, json.dumps(ipn, ensure_ascii=False).encode())}, separators=(",", ":"))
    timestamp = str(int(time.time()))
    mac = header_mac(setup.all("webhookSecret")[0], notification_id, timestamp, body.encode())
    posted = {"webhook-id": notification_id, "webhook-timestamp": timestamp, "webhook-signature": mac}
    return Sample(body.encode(), content["headers"] | posted, ipn)
