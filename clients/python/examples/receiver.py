"""Stores each IPN once, as a file in the folder inbox: `PORT=8080 python receiver.py paybell.json`."""

import json
import os
import re
import sys
from tempfile import NamedTemporaryFile
from wsgiref.simple_server import make_server

from paybell import KeyFile, Received, Wsgi


def store(received: Received) -> None:
    """A table with a unique key on the id, written with the rest of your work, is better."""
    if not re.fullmatch("[0-9A-Za-z-]{1,64}", received.ipn["id"]):
        raise ValueError("the id is no file name")
    path = f"inbox/{received.ipn['id']}.json"
    with NamedTemporaryFile("w", dir="inbox", encoding="utf-8") as file:
        json.dump(received.ipn, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
        if not os.path.exists(path):
            os.link(file.name, path)  # Of two at once, one fails, and comes again.


os.makedirs("inbox", exist_ok=True)
with make_server("127.0.0.1", int(os.environ.get("PORT", "8080")), Wsgi(KeyFile(sys.argv[1]), store)) as server:
    print(f"listening on http://127.0.0.1:{server.server_port}/ipn", flush=True)
    server.serve_forever()
