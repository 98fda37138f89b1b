"""Holds the installed package to test vectors: `python vectors.py vectors.json`."""

import json
import sys
from pathlib import Path

import paybell

passed = True
for vector in json.loads(Path(sys.argv[1]).read_text("utf-8"))["vectors"]:
    code = found = None
    try:
        received = paybell.open(vector["body"], vector["headers"], vector, vector["nowSeconds"])
        found = received.ipn
        assert received.kind == vector.get("kind", received.kind), received.kind
        assert received.key_id == vector.get("keyId", received.key_id), received.key_id
    except paybell.Refused as refused:
        code = refused.code
    right = found == vector.get("ipn") and code == vector.get("code", code)
    passed = passed and right
    print("ok  " if right else "FAIL", vector["name"])
    if code != vector.get("code", code):
        print(f"{code} instead of {vector['code']}: {vector['name']}", file=sys.stderr)
sys.exit(0 if passed else 1)
