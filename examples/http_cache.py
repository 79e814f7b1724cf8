"""An HTTP client's cache on disk, with ETag, max-age, and a limit on its size.

    python examples/http_cache.py [DIRECTORY]

The program starts a small server, and prints where each page came from.

Three kinds of keys: ``meta:URL`` has what HTTP says about a page, ``body:URL`` has the page, and
``time:WHEN:URL`` is in the order of time, so that the page that was fetched or confirmed first goes
first once there is too much.  One more record, ``state``, has the bytes that are kept, and where
the index by time begins.  All that belongs to a change is one transaction, so that any number of
threads may use a cache.

A page that is still fresh costs two lookups and no write; most URLs that are not in the cache cost
no read of the disk, since a filter says so.  To store a page costs as much in a large cache as in a
small one: the size is a record and no sum, and what makes room is found by one seek.  Without a
beginning in ``state``, that seek would pass all pages that went before, as deletions that no
compaction has dropped yet.  Left out: ``Vary``, and what HTTP allows a cache to guess where a page
has no max-age.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import lsmkv

MOST_REMOVED = 16  # the most pages that are removed for a new one

State = dict[str, Any]


class Cache:
    """Pages by their URLs, at most so many bytes of them.  For any number of threads; it has no
    clock."""

    def __init__(self, db: lsmkv.DB, most_bytes: int) -> None:
        self._db = db
        self._most_bytes = most_bytes

    def get(self, url: str, now: int) -> tuple[bytes, str]:
        """The page, and its source."""
        # Both from one moment: another thread may replace or remove the page in between.
        stored, body = self._db.multi_get([b"meta:" + url.encode(), b"body:" + url.encode()])
        meta: dict[str, Any] = json.loads(stored) if stored else {}
        if body is not None and now < meta["fresh_until"]:
            return body, "the cache"
        request = urllib.request.Request(url)
        if body is not None and meta.get("etag"):
            request.add_header("If-None-Match", meta["etag"])
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                body, headers, source = response.read(), response.headers, "the server"
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 304 or body is None:
                    raise
                headers, source = error.headers, "the cache, after a 304"
        control = headers.get("Cache-Control", "")
        age = re.search(r"max-age=(\d+)", control)
        new = {
            "etag": headers.get("ETag"),
            "fresh_until": now + (int(age[1]) if age and "no-cache" not in control else 0),
            "since": now,
            "size": len(body),
        }
        self._store(url, None if "no-store" in control else new, body)
        return body, source

    def size(self) -> int:
        """Bytes of the pages in the cache: one lookup."""
        return int(_state(self._db.get(b"state"))["bytes"])

    def _store(self, url: str, new: dict[str, Any] | None, body: bytes) -> None:
        """Store a page, replacing the old one, and make room for it.

        At most 16 pages are removed for it.  If that is not enough, for example for a large page
        after many small ones, it is not stored, and the room is left for the next one.
        """

        def change(both: lsmkv.Transaction) -> None:
            """Called again if another thread changed the cache in the meantime."""
            state = _state(both.get(b"state"))
            state["bytes"] -= _remove(both, url)
            if new is not None and len(body) <= self._most_bytes:
                self._make_room(both, state, len(body))
                if state["bytes"] + len(body) <= self._most_bytes:
                    key = f"time:{new['since']:012d}:{url}"
                    both.put(f"meta:{url}".encode(), json.dumps(new).encode())
                    both.put(f"body:{url}".encode(), body)
                    both.put(key.encode(), b"")
                    state["bytes"] += len(body)
                    state["first"] = min(state["first"], key)  # a clock may have been set back
            both.put(b"state", json.dumps(state).encode())

        self._db.run(change)

    def _make_room(self, both: lsmkv.Transaction, state: State, size: int) -> None:
        """Remove the oldest pages until this many bytes fit.

        The iterator does not belong to the transaction, and may see newer data.  Then another
        thread has written ``state``, the commit fails, and all of this is repeated.
        """
        with self._db.iterator(
            start=state["first"].encode(), stop=b"time;", include_value=False
        ) as keys:
            for key in itertools.islice(keys, MOST_REMOVED):
                if state["bytes"] + size <= self._most_bytes:
                    break
                state["first"] = key.decode()
                state["bytes"] -= _remove(both, key.decode().split(":", 2)[2])


def _state(stored: bytes | None) -> State:
    """The number of stored bytes, and a key before the first key of the index by time."""
    return json.loads(stored) if stored else {"bytes": 0, "first": "time:"}


def _remove(both: lsmkv.Transaction, url: str) -> int:
    """Remove a page with all its records, if it exists.  Returns its bytes."""
    stored = both.get(f"meta:{url}".encode())
    if stored is None:
        return 0
    meta = json.loads(stored)
    both.delete(f"meta:{url}".encode())
    both.delete(f"body:{url}".encode())
    both.delete(f"time:{meta['since']:012d}:{url}".encode())
    return int(meta["size"])


class Pages(BaseHTTPRequestHandler):
    """Every page has 400 bytes, keeps its ETag, and is fresh for a minute."""

    def do_GET(self) -> None:
        known = self.headers.get("If-None-Match") == '"1"'
        self.send_response(304 if known else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Cache-Control", "no-store" if self.path == "/secret" else "max-age=60")
        self.end_headers()
        if not known:
            self.wfile.write(self.path.encode().ljust(400))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main(path: Path) -> None:
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server,
        lsmkv.DB(path, create_if_missing=True) as db,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cache = Cache(db, most_bytes=1000)
        for now, page in zip((0, 30, 50, 70, 80, 90, 95), "aabacba", strict=True):
            _, source = cache.get(f"http://127.0.0.1:{server.server_port}/{page}", now)
            print(f"second {now}: /{page} from {source}; {cache.size()} bytes kept")
        server.shutdown()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory, "pages"))
