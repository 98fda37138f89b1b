"""The errors, with the codes of Paybell's own partner library."""

from __future__ import annotations

import json
from pathlib import Path

CONTRACT = json.loads(Path(__file__).with_name("contract.json").read_text("utf-8"))


class PaybellError(Exception):
    """Branch on `code`; `remedy` says what to do. No message contains a key or decrypted content."""

    def __init__(self, code: str, finding: str = "", remedy: str = ""):
        known = CONTRACT["errors"].get(code, {"finding": "", "remedy": ""})
        self.code, self.finding, self.remedy = code, finding or known["finding"], known["remedy"] or remedy
        super().__init__(f"{code}: {self.finding} {self.remedy}".strip())


class Refused(PaybellError):
    """The IPN is not authentic or not fresh. Its text is the same for every cause: an answer that tells them apart
    helps a forger. `code`, `finding` and `remedy` are for your own log."""

    def __str__(self) -> str:
        return "The IPN is not authentic."

    __repr__ = __str__
