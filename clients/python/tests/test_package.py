"""`python -m unittest` with the package installed."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import tempfile
import threading
import traceback
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import paybell
from paybell import SAMPLE_KEYS, Asgi, KeyFile, Keys, PaybellError, Refused, Wsgi, catch_up, sample

NEW = {"id": "2", "key": "BAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ="}


def code_of(error: unittest.case._AssertRaisesContext[Any]) -> str:
    return error.exception.code


class Samples(unittest.TestCase):
    def test_every_kind_opens_in_every_cipher_encoding_and_way_of_signing(self) -> None:
        for kind in ("sale", "decline", "void", "preauth", "preauth_complete", "cancel", "refund", "settlement"):
            for cipher in ("aes-256-gcm", "aes-256-cbc", "jwe"):
                for encoding in ("base64", "base64url", "hex"):
                    for mode in ("fields", "whole"):
                        how = {"cipher": cipher, "encoding": encoding, "signing": {"mode": mode}}
                        made = sample(kind, {**SAMPLE_KEYS, **how})
                        received = paybell.open(made.body, made.headers, {**SAMPLE_KEYS, **how})
                        self.assertEqual(received.ipn, made.ipn)
                        self.assertEqual(received.kind, "settlement" if kind == "settlement" else "card")

    def test_a_field_that_the_ipn_does_not_have_is_refused(self) -> None:
        with self.assertRaises(PaybellError) as error:
            sample("sale", ammount="1")
        self.assertEqual(code_of(error), "wrong_option")

    def test_headers_may_have_any_case_and_be_pairs(self) -> None:
        made = sample()
        pairs = [(name.title(), value) for name, value in made.headers.items()]
        received = paybell.open(made.body, [*pairs, ("PAYBELL-KEY", "v9")], SAMPLE_KEYS)
        self.assertEqual((received.headers["paybell-command"], received.key_id), ("SALE", "v9"))


class Extended(unittest.TestCase):
    extended = {**SAMPLE_KEYS, "fields": "extended"}

    def test_the_setting_decides_what_is_signed_and_read(self) -> None:
        made = sample("preauth_complete", self.extended)
        ipn = paybell.open(made.body, made.headers, self.extended).ipn
        self.assertEqual((ipn["command"], ipn["originalReqId"]), ("PREAUTH_COMPLETE", ""))
        self.assertEqual(ipn["originalId"], made.headers["paybell-original-transaction"])
        settled = sample("settlement", self.extended)
        self.assertEqual(paybell.open(settled.body, settled.headers, self.extended).ipn["currency"], "VND")
        for sent, accepted in ((self.extended, SAMPLE_KEYS), (SAMPLE_KEYS, self.extended)):
            made = sample("sale", sent)
            with self.assertRaises(Refused) as error:
                paybell.open(made.body, made.headers, accepted)
            self.assertEqual(code_of(error), "wrong_fields")

    def test_both_are_read_while_the_setting_changes(self) -> None:
        both = {**SAMPLE_KEYS, "fields": ["specification", "extended"]}
        for sent, extended in ((SAMPLE_KEYS, False), (self.extended, True)):
            made = sample("sale", sent)
            self.assertEqual("command" in paybell.open(made.body, made.headers, both).ipn, extended)

    def test_an_unknown_field_is_kept(self) -> None:
        made = sample("sale", {**self.extended, "signing": {"mode": "whole"}})
        received = paybell.open(made.body, made.headers, {**SAMPLE_KEYS, "signing": {"mode": "whole"}})
        self.assertNotIn("command", received.ipn)
        self.assertEqual(received.wire["command"], "SALE")


class Refusals(unittest.TestCase):
    def test_the_text_of_every_refusal_is_the_same(self) -> None:
        made = sample()
        cases = {
            "webhook_signature": (made.body.replace(b"A", b"B"), made.headers, SAMPLE_KEYS),
            "missing_headers": (made.body, {}, SAMPLE_KEYS),
            "wrong_cipher": (made.body, made.headers, {**SAMPLE_KEYS, "cipher": "jwe"}),
            "wrong_encoding": (made.body, made.headers, {**SAMPLE_KEYS, "encoding": "hex"}),
            "wrong_signing": (made.body, made.headers, {**SAMPLE_KEYS, "signing": {"mode": "whole"}}),
            "decryption": (made.body, made.headers, {**SAMPLE_KEYS, "encryptionKey": [NEW]}),
            "too_large": (b"x" * (paybell.BODY_BYTES_MAX + 1), made.headers, SAMPLE_KEYS),
            "empty_body": (b"", made.headers, SAMPLE_KEYS),
            "compressed_body": (b"\x1f\x8b\x08\x00", made.headers, SAMPLE_KEYS),
            "rewritten_body": (json.dumps(json.loads(made.body)), made.headers, SAMPLE_KEYS),
        }
        for code, given in cases.items():
            with self.assertRaises(Refused) as error:
                paybell.open(*given)
            self.assertEqual(code_of(error), code)
            self.assertNotEqual(error.exception.remedy, "")
            self.assertEqual(str(error.exception), "The IPN is not authentic.")

    def test_a_wrong_key_is_named_but_never_shown(self) -> None:
        for change, code in (
            ({"signingKey": ""}, "missing_key"),
            ({"signingKey": "QUJD"}, "key_length"),
            ({"signingKey": "é!" * 22}, "key_not_base64"),
            ({"webhookSecret": SAMPLE_KEYS["signingKey"]}, "no_whsec_prefix"),
            ({"signingKey": SAMPLE_KEYS["encryptionKey"]}, "shared_key"),
            ({"signingKey": ["QUJD"]}, "key_length"),
            ({"signingKey": 1}, "missing_key"),
            ({"signingKey": None}, "missing_key"),
            ({"signingKey": [{}]}, "missing_key"),
            ({"signingKey": []}, "missing_key"),
            ({"cipher": "aes-128"}, "wrong_option"),
            ({"cipher": []}, "wrong_option"),
            ({"signing": "whole"}, "wrong_option"),
            ({"fields": 1}, "wrong_option"),
        ):
            with self.assertRaises(PaybellError) as error:
                Keys.of({**SAMPLE_KEYS, **change})
            self.assertEqual(code_of(error), code)
            for key in SAMPLE_KEYS.values():
                self.assertNotIn(key, str(error.exception))


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name) / "paybell.json"
        self.rotation = Path(self.folder.name) / "rotation.json"

    def test_a_changed_file_is_read_again_and_a_broken_one_leaves_the_keys(self) -> None:
        self.path.write_text(json.dumps(SAMPLE_KEYS))
        keys, made = KeyFile(self.path), sample("sale", {**SAMPLE_KEYS, "encryptionKey": [NEW]})
        with self.assertRaises(Refused):
            paybell.open(made.body, made.headers, keys)
        versions = [{"id": "1", "key": SAMPLE_KEYS["encryptionKey"]}, NEW]
        self.path.write_text(json.dumps({**SAMPLE_KEYS, "encryptionKey": versions}))
        self.assertEqual(paybell.open(made.body, made.headers, keys).key_id, "2")
        self.path.write_text(json.dumps({**SAMPLE_KEYS, "encryptionKey": [{**NEW, "id": 2}]}))
        self.assertEqual(paybell.open(made.body, made.headers, keys).key_id, "2")
        # Of the same length, as the next key is.
        self.path.write_text(self.path.read_text().replace('"id": 2', '"id": 3'))
        os.utime(self.path, ns=(0, self.path.stat().st_mtime_ns + 1_000_000_000))
        self.assertEqual(paybell.open(made.body, made.headers, keys).key_id, "3")
        for broken in ("{", "[]", '{"signingKey": [1]}'):
            self.path.write_text(broken)
            with self.assertLogs("paybell", logging.WARNING):
                self.assertEqual(paybell.open(made.body, made.headers, keys).key_id, "3")
        # A folder that may not be entered any more.
        away = {name: mock.Mock(side_effect=PermissionError(13, "Permission denied")) for name in ("stat", "read_text")}
        with mock.patch.multiple(Path, **away), self.assertLogs("paybell", logging.WARNING):
            self.assertEqual(paybell.open(made.body, made.headers, keys).key_id, "3")
        # As one that only root could read, until its rights were changed: that changes no time.
        text = json.dumps({**SAMPLE_KEYS, "encryptionKey": [{**NEW, "id": "4"}]})
        for content, key_id in ((" " * len(text), "3"), (text, "4")):
            self.path.write_text(content)
            os.utime(self.path, ns=(0, 0))
            self.assertEqual(paybell.open(made.body, made.headers, keys).key_id, key_id)

    def test_files_of_older_shapes_are_read_and_rewritten_with_a_warning(self) -> None:
        kinds = ("encryptionKey", "signingKey", "webhookSecret")
        old = {f"{kind}s": [SAMPLE_KEYS[kind]] for kind in kinds}
        old["encryptionKeys"] = [{"id": "", "key": SAMPLE_KEYS["encryptionKey"]}]
        self.path.write_text(json.dumps({"cipher": "jwe", **old}))
        self.path.chmod(0o640)
        times = {"activeFrom": "2026-01-01T00:00:00Z", "expiresOld": "2026-01-02T00:00:00Z"}
        self.rotation.write_text(json.dumps({"id": "2", "kind": "encryptionKey", "secret": NEW["key"], **times}))
        with self.assertLogs("paybell", logging.WARNING) as logs:
            keys = KeyFile(self.path, self.rotation)
        self.assertEqual(len(logs.output), 2)
        self.assertEqual([id for id, _ in keys.current().versions["encryptionKey"]], ["", "2"])
        again = json.loads(self.path.read_text())
        self.assertEqual(again["signingKey"], [{"key": SAMPLE_KEYS["signingKey"]}])
        self.assertNotIn("signingKeys", again)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o640)
        self.assertEqual(json.loads(self.rotation.read_text()), {"encryptionKey": [{**times, **NEW}]})
        rotated = Keys.of({**SAMPLE_KEYS, "apiKey": "pb_old"}, {"kind": "apiKey", "secret": "pb_new", **times})
        self.assertEqual(rotated.api_key, "pb_new")

    def test_what_replaces_an_older_file_is_on_disk_before_and_leaves_nothing_if_it_cannot(self) -> None:
        calls = mock.Mock()
        replaces = mock.patch.object(Path, "replace", lambda file, _: calls.replace(file))
        for outcome in (lambda file: file.rename(self.path), OSError(28, "No space left on device")):
            calls.reset_mock()
            calls.replace.side_effect = outcome
            self.path.write_text(json.dumps({**SAMPLE_KEYS, "signingKeys": [SAMPLE_KEYS["signingKey"]]}))
            with mock.patch.object(os, "fsync", calls.fsync), replaces, self.assertLogs("paybell", logging.WARNING):
                KeyFile(self.path)
            self.assertEqual([name for name, *_ in calls.method_calls], ["fsync", "replace"])
            self.assertEqual(list(self.path.parent.iterdir()), [self.path])

    def test_what_reports_errors_with_their_local_variables_reports_no_key(self) -> None:
        self.path.write_text(json.dumps({**SAMPLE_KEYS, "apiKey": "pb_x"}))
        keys = KeyFile(self.path)
        for other in ({"encryptionKey": [NEW]}, {"webhookSecret": f"whsec_{NEW['key']}"}, {"signingKey": [NEW]}):
            made, shown = sample("sale", {**SAMPLE_KEYS, **other}), ""
            try:
                paybell.open(made.body, made.headers, keys)
            except Refused as refused:
                shown = "".join(traceback.TracebackException.from_exception(refused, capture_locals=True).format())
            self.assertIn("setup = ", shown)
            self.assertNotIn("pb_x", shown)
            for key in keys.current().all("encryptionKey", "signingKey", "webhookSecret"):
                self.assertNotIn(bytes.__repr__(key), shown)


class Handlers(unittest.TestCase):
    def wsgi(self, app: Wsgi, body: bytes, headers: dict[str, str], method: str = "POST") -> str:
        environ: dict[str, Any] = {"REQUEST_METHOD": method, "CONTENT_LENGTH": str(len(body))}
        environ["wsgi.input"] = io.BytesIO(body)
        environ.update({f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()})
        statuses: list[str] = []
        list(app(environ, lambda status, _: statuses.append(status)))
        return statuses[0][:3]

    def asgi(self, app: Asgi, body: bytes, headers: dict[str, str], method: str = "POST") -> str | None:
        parts = [body[:10], body[10:]]
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(app({"type": "http", "method": method, "headers": pairs}, receive, send))
        return str(sent[0]["status"])

    def test_the_answer_is_2xx_only_when_the_function_has_returned(self) -> None:
        made, seen = sample(), []

        async def later(received: paybell.Received) -> None:
            await asyncio.sleep(0)
            seen.append(received.ipn["id"])

        def fails(_: paybell.Received) -> None:
            raise RuntimeError("the database is away")

        for ask, app, other in (
            (self.wsgi, Wsgi(SAMPLE_KEYS, lambda received: seen.append(received.ipn["id"])), Wsgi(SAMPLE_KEYS, fails)),
            (self.asgi, Asgi(SAMPLE_KEYS, later), Asgi(SAMPLE_KEYS, fails)),
            (self.asgi, Asgi(SAMPLE_KEYS, lambda received: seen.append(received.ipn["id"])), Asgi(SAMPLE_KEYS, fails)),
            (self.asgi, Asgi(SAMPLE_KEYS, lambda received: later(received)), Asgi(SAMPLE_KEYS, fails)),
        ):
            self.assertEqual(ask(app, made.body, made.headers), "204")
            self.assertEqual(ask(app, made.body, {}), "400")
            self.assertEqual(ask(app, b"", {}, "GET"), "405")
            self.assertEqual(ask(app, b"x" * (paybell.BODY_BYTES_MAX + 1), {}), "413")
            with self.assertLogs("paybell", logging.ERROR):
                self.assertEqual(ask(other, made.body, made.headers), "500")
        self.assertEqual(seen, [made.ipn["id"]] * 4)
        # Nobody would await it.
        for never in (later, lambda received: later(received)):
            with self.assertLogs("paybell", logging.ERROR) as logs:
                self.assertEqual(self.wsgi(Wsgi(SAMPLE_KEYS, never), made.body, made.headers), "500")
            self.assertIn("use Asgi", logs.output[0])


class Pull(unittest.TestCase):
    def serve(self, *answers: tuple[int, Any]) -> tuple[dict[str, Any], list[str]]:
        left, asked = list(answers), []

        class Service(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                asked.append(f"{self.path} {self.headers['authorization']}")
                status, answer = left.pop(0)
                self.send_response(status)
                self.send_header("location", "/elsewhere")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: Any) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=server.serve_forever).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return {**SAMPLE_KEYS, "baseUrl": f"http://127.0.0.1:{server.server_port}", "apiKey": "pb_x"}, asked

    def test_gives_page_after_page_until_nothing_is_left(self) -> None:
        made = [sample(), sample("settlement")]
        items = [{**json.loads(one.body), "headers": one.headers} for one in made]
        answers = [(200, {"items": [one], "next": str(at)}) for at, one in enumerate(items)]
        keys, asked = self.serve(*answers, *[(200, {"items": [], "next": "1"})] * 2)
        pages = catch_up("start", keys)
        self.assertEqual(next(pages).items[0].ipn, made[0].ipn)
        second = next(pages)
        self.assertEqual((second.items[0].ipn, second.cursor), (made[1].ipn, "1"))
        self.assertEqual(asked[1], "/v1/notifications?limit=100&after=0 Bearer pb_x")
        self.assertEqual([page.items for page in pages], [[]])
        self.assertEqual(len(list(catch_up(None, keys, page_max=5, wait_seconds=30))), 1)
        self.assertEqual(asked[3], "/v1/notifications?limit=5&wait=30 Bearer pb_x")

    def test_a_page_with_an_ipn_that_is_refused_is_not_given(self) -> None:
        keys, _ = self.serve((200, {"items": [{"data": "AAAA", "headers": {}}], "next": "1"}))
        with self.assertRaises(Refused):
            next(catch_up("start", keys))

    def test_the_services_code_and_the_remedy_are_passed_on(self) -> None:
        expired = {"code": "cursor_expired", "detail": "It is gone.", "remedy": "Reconcile."}
        keys, asked = self.serve((410, expired), (502, "?"), (200, "?"), (302, "?"))
        for code in ("cursor_expired", "not_paybell", "not_paybell", "not_paybell"):
            with self.assertRaises(PaybellError) as error:
                next(catch_up("old", keys))
            self.assertEqual(code_of(error), code)
            self.assertNotEqual(error.exception.remedy, "")
        self.assertEqual(len(asked), 4)  # It follows no redirection.

    def test_the_api_key_is_not_sent_in_the_clear(self) -> None:
        for host in ("paybell.example", "localhost.example"):
            with self.assertRaises(PaybellError) as error:
                next(catch_up(None, {**SAMPLE_KEYS, "baseUrl": f"http://{host}", "apiKey": "pb_x"}))
            self.assertEqual(code_of(error), "wrong_option")

    def test_an_api_key_that_cannot_be_sent_is_not_quoted(self) -> None:
        with self.assertRaises(PaybellError) as error:
            next(catch_up(None, {**SAMPLE_KEYS, "baseUrl": "https://localhost", "apiKey": "pb_x\n"}))
        shown = "".join(traceback.format_exception(None, error.exception, error.exception.__traceback__))
        self.assertEqual((code_of(error), "pb_x" in shown), ("wrong_option", False))


if __name__ == "__main__":
    unittest.main()
