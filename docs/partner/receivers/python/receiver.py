"""Receives Paybell's notifications (IPNs): verifies the sender, decrypts, stores each IPN once, answers.

pip install -r requirements.txt
python3 receiver.py agreement.json     # listens on PORT, or 8080; stores in the folder inbox
python3 vectors.py ../../vectors.json  # runs the test vectors
"""

import base64, binascii, hmac, json, os, re, sys, tempfile, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

FRESHNESS_SECONDS = 300
BODY_BYTES_MAX = 16 * 1024 * 1024

# The tables of the specification, section 2. After a slash: a second name of the field.
CARD = """aid amount appName approveCode/approve_code batchNo billId cardHolder cardNumber cardScheme currency
    deviceId/device_id expDate extraData id invoiceNo isoResponseCode merchantAddress merchantId merchantName
    merchantTransId mid paymentType/payment_type refId reqId status swipeType tc tid traceNo transDateTime
    transaction_type signature""".split()
SETTLEMENT = """batchNo callbackUrl deviceId/deviceID extraData id merchantTransId mid quantity reqId saleQuantity
    saleTotalAmount status tid totalAmount transaction_time transaction_type voidQuantity voidTotalAmount
    settlementList signature""".split()
ENTRY = ["reqId/reqID", "refNo"]
SIGNED = {
    "card": """aid amount approveCode isoResponseCode merchantTransId isoResponseCode cardScheme tid mid traceNo
        batchNo""".split(),
    "settlement": """batchNo quantity saleQuantity saleTotalAmount voidQuantity voidTotalAmount totalAmount tid
        mid""".split(),
}


class Refused(Exception):
    """A message that is not authentic or not as agreed. The reason is for your log, never for the sender."""


def agreement(written: dict) -> dict:
    """What was agreed with the operator, its keys as bytes. Several keys are the versions of a rotation."""
    keys = [{**one, "key": key(one["key"])} for one in written["encryptionKeys"]]
    lists = {name: [key(one) for one in written[name]] for name in ("signingKeys", "webhookSecrets")}
    return {**written, **lists, "encryptionKeys": keys}


def key(text: str) -> bytes:
    raw = decode(text.removeprefix("whsec_"), "base64")
    if len(raw) != 32:
        raise ValueError("a key is base64 of 32 bytes")
    return raw


def verify(agreed: dict, body: bytes, headers, now: float) -> dict:
    """The IPN by the tables' names; else Refused. `body` is the bytes as received, `headers` needs get(name)."""
    check_headers(agreed, body, headers, now)
    envelope = parse(body)
    if set(envelope) != {"data"} or not isinstance(envelope["data"], str):
        raise Refused("the body is not {data}")
    kid, *sealed = take_apart(agreed, envelope["data"])
    refused = Refused("no key has this kid")
    for version in agreed["encryptionKeys"]:
        if version["id"] and kid not in (None, version["id"]):
            continue  # An empty id matches any.
        try:  # A wrong key decrypts one AES-CBC message in 256: the signature must match, too.
            return check_content(agreed, decrypt(agreed["cipher"], version["key"], *sealed))
        except Refused as reason:
            refused = reason
    raise refused


def check_headers(agreed, body, headers, now):
    """Standard Webhooks v1. Comes first: a sender without the secret must not learn how decryption ends."""
    id, timestamp, signature = (headers.get(f"webhook-{name}") or "" for name in ("id", "timestamp", "signature"))
    if not re.fullmatch(r"[^.\s]{1,256}", id) or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise Refused("webhook-id or webhook-timestamp is missing or malformed")
    signed = f"{id}.{timestamp}.".encode() + body
    expected = [b"v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")) for secret in agreed["webhookSecrets"]]
    if not any(hmac.compare_digest(one, entry.encode()) for one in expected for entry in signature.split(" ")):
        raise Refused("webhook-signature does not match the body")
    if abs(int(now) - int(timestamp)) > FRESHNESS_SECONDS:
        raise Refused("webhook-timestamp is too far from this clock")


def take_apart(agreed, data):
    """The id of the key where the message names it, the IV, the ciphertext, the additional authenticated data."""
    if agreed["cipher"] != "jwe":
        raw, iv_bytes = decode(data, agreed["encoding"]), 16 if agreed["cipher"] == "aes-256-cbc" else 12
        return None, raw[:iv_bytes], raw[iv_bytes:], None
    if data.count(".") != 4:
        raise Refused("a JWE has five parts")
    header, encrypted_key, *parts = data.split(".")
    iv, sealed, tag = (decode(part, "base64url") for part in parts)
    fields = parse(decode(header, "base64url"))
    usual = fields.get("alg") == "dir" and fields.get("enc") == "A256GCM" and isinstance(fields.get("kid"), str)
    if not usual or "zip" in fields or "crit" in fields or encrypted_key or len(iv) != 12 or len(tag) != 16:
        raise Refused("the JWE is not as agreed")
    return fields["kid"], iv, sealed + tag, header.encode()


def decrypt(cipher, key, iv, sealed, authenticated):
    try:
        if cipher != "aes-256-cbc":
            return AESGCM(key).decrypt(iv, sealed, authenticated)
        decryptor, unpadder = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor(), PKCS7(128).unpadder()
        return unpadder.update(decryptor.update(sealed) + decryptor.finalize()) + unpadder.finalize()
    except (InvalidTag, ValueError) as error:
        raise Refused("decryption failed") from error


def check_content(agreed, plain):
    wire = parse(plain)
    settles = "saleQuantity" in wire or wire.get("transaction_type") == "SETTLE" and "settlementList" in wire
    ipn = by_table_names(wire, SETTLEMENT if settles else CARD)
    kind = "settlement" if settles else "card"
    if agreed["signing"]["mode"] == "whole":
        text = canonical({name: value for name, value in wire.items() if name != "signature"})
    else:
        text = "&".join(f"{name}={ipn[name]}" for name in agreed["signing"].get(kind, SIGNED[kind]))
    expected = [hmac.digest(key, text.encode(), "sha256").hex().encode() for key in agreed["signingKeys"]]
    if not any(hmac.compare_digest(one, ipn["signature"].lower().encode()) for one in expected):
        raise Refused("signature does not match the signed string")
    return ipn if settles else {**ipn, "cardScheme": ipn["cardScheme"].upper()}


def by_table_names(wire, table):
    ipn = {}
    for name, *alias in (field.split("/") for field in table):
        found = [wire[one] for one in (name, *alias) if one in wire]
        if len(found) > 1:
            raise Refused(f"{name} appears under two names")
        kind = list if name == "settlementList" else str
        value = found[0] if found else kind()
        if not isinstance(value, kind) or kind is list and not all(isinstance(entry, dict) for entry in value):
            raise Refused(f"{name} has another type")
        ipn[name] = [by_table_names(entry, ENTRY) for entry in value] if kind is list else value
    return ipn


def parse(raw: bytes) -> dict:
    """One JSON object in UTF-8 whose scalars are strings, without duplicate keys or lone surrogates."""

    def unique(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key appears twice")
        return dict(pairs)

    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
        canonical(value).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise Refused("not valid JSON") from error
    if not isinstance(value, dict):
        raise Refused("not a JSON object")
    return value


quoted = json.JSONEncoder(ensure_ascii=False).encode


def canonical(value, levels=64):
    """RFC 8785, for strings, lists and objects: keys in the order of UTF-16, no white space."""
    if isinstance(value, str):
        return quoted(value)
    if not isinstance(value, (list, dict)) or levels == 0:
        raise ValueError("a value is not a string, or too deep")
    if isinstance(value, list):
        return "[" + ",".join(canonical(item, levels - 1) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(canonical(name) + ":" + canonical(value[name], levels - 1) for name in names) + "}"


def decode(text, encoding):
    """The bytes, if the text is exactly what an encoder writes: decoders accept stray bits and alphabets."""
    url = encoding == "base64url"
    try:
        if encoding == "hex":
            return binascii.unhexlify(text)
        raw = base64.b64decode(text + "=" * (-len(text) % 4 if url else 0), b"-_" if url else None)
    except ValueError as error:
        raise Refused("not in the agreed encoding") from error
    again = base64.b64encode(raw, b"-_" if url else None).decode()
    if text != (again.rstrip("=") if url else again):
        raise Refused("not in the agreed encoding")
    return raw


def store_once(inbox: Path, ipn: dict) -> bool:
    """False if it is there. A table with a unique key on the id, written with the rest of your work, is better."""
    if not re.fullmatch(r"[0-9A-Za-z-]{1,64}", ipn["id"]):
        raise ValueError("the id is no file name")
    with tempfile.NamedTemporaryFile(dir=inbox) as file:
        file.write(json.dumps(ipn, ensure_ascii=False).encode())
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, inbox / f"{ipn['id']}.json")  # Of two at once, one fails.
        except FileExistsError:
            return False
    return True


class Callback(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > BODY_BYTES_MAX:
            return self.answer(413)
        try:
            ipn = verify(self.server.agreed, self.rfile.read(int(length)), self.headers, time.time())
            first = store_once(self.server.inbox, ipn)
        except Refused as reason:
            return self.answer(400, f"refused: {reason}")
        except Exception as error:  # Answered 500, so that the IPN comes again.
            return self.answer(500, f"not stored: {error!r}")
        self.answer(204, f"{'stored' if first else 'had already'} {ipn['transaction_type']} {ipn['id']}")

    def do_GET(self):
        self.answer(405)

    do_HEAD = do_PUT = do_PATCH = do_DELETE = do_GET

    def answer(self, status, log=""):
        self.log_message("%s", log)
        self.send_response(status)
        self.end_headers()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Callback)
    server.agreed, server.inbox = agreement(json.loads(Path(sys.argv[1]).read_text())), Path("inbox")
    server.inbox.mkdir(exist_ok=True)
    print(f"listening on http://127.0.0.1:{server.server_port}/ipn", flush=True)
    server.serve_forever()
