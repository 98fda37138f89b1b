"""Receives the payment notifications (IPNs) of Paybell.

from paybell import KeyFile, open
received = open(body, headers, KeyFile("paybell.json"))
received.ipn["amount"]
"""

from .errors import PaybellError, Refused
from .handlers import Asgi, Wsgi
from .ipn import CardIpn, SettlementEntry, SettlementIpn
from .keys import KeyFile, Keys
from .pulling import Page, catch_up
from .receiving import BODY_BYTES_MAX, FRESHNESS_SECONDS, Received, open
from .samples import SAMPLE_KEYS, Sample, sample

__all__ = ["BODY_BYTES_MAX", "FRESHNESS_SECONDS", "SAMPLE_KEYS", "Asgi", "CardIpn", "KeyFile", "Keys", "Page"]
__all__ += ["PaybellError", "Received", "Refused", "Sample", "SettlementEntry", "SettlementIpn", "Wsgi"]
__all__ += ["catch_up", "open", "sample"]
