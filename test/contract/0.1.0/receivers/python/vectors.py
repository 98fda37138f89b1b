"""Holds receiver.py against the test vectors: `python3 vectors.py ../../vectors.json`."""

import json, sys
from pathlib import Path

from receiver import Refused, agreement, verify

passed = True
for vector in json.loads(Path(sys.argv[1]).read_text("utf-8"))["vectors"]:
    try:
        found = verify(agreement(vector), vector["body"].encode(), vector["headers"], vector["nowSeconds"])
    except Refused:
        found = None
    right = found == vector.get("ipn")
    passed = passed and right
    print("ok  " if right else "FAIL", vector["name"])
sys.exit(0 if passed else 1)
