"""An HTTP client's cache on disk: ETag and max-age, and a bound on its size.

    python examples/http_cache.py [DIRECTORY]

The program starts a small server of its own and says for each page where it came from.

Three kinds of keys: ``meta:URL`` has what HTTP says about a page, ``body:URL`` has the page, and
``time:WHEN:URL`` its size.  The last is in the order of time, so that the page that was fetched or
confirmed first is the first key, and goes first once there is too much.  All that belongs to one
page changes in one batch.  A page that is still fresh costs two Gets and no write; most URLs that
are not in the cache cost no read of the disk, since a filter says so.  Left out: ``Vary``, and what
HTTP allows a cache to guess where a page has no max-age.
"""

from __future__ import annotations

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


class Cache:
    """Pages by their URLs, at most so many bytes of them.  For one thread; it has no clock."""

    def __init__(self, db: lsmkv.DB, most_bytes: int) -> None:
        self._db = db
        self._most_bytes = most_bytes

    def get(self, url: str, now: int) -> tuple[bytes, str]:
        """The page, and where it came from."""
        stored = self._db.get(b"meta:" + url.encode())
        meta: dict[str, Any] = json.loads(stored) if stored else {}
        if meta and now < meta["fresh_until"]:
            return self._db.get(b"body:" + url.encode(), b""), "the cache"
        request = urllib.request.Request(url)
        if meta.get("etag"):
            request.add_header("If-None-Match", meta["etag"])
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                body, headers, source = response.read(), response.headers, "the server"
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 304:
                    raise
                headers, source = error.headers, "the cache, after a 304"
            body = self._db.get(b"body:" + url.encode(), b"")
        control = headers.get("Cache-Control", "")
        age = re.search(r"max-age=(\d+)", control)
        new = {
            "etag": headers.get("ETag"),
            "fresh_until": now + (int(age[1]) if age and "no-cache" not in control else 0),
            "since": now,
            "size": len(body),
        }
        self._store(url, meta, None if "no-store" in control else new, body)
        return body, source

    def size(self) -> int:
        """Bytes of pages in the cache, added up from the time index: no page is read for it."""
        return sum(int(size) for _, size in self._db.iterator(prefix=b"time:"))

    def _store(
        self, url: str, old: dict[str, Any], new: dict[str, Any] | None, body: bytes
    ) -> None:
        """Put a page in the place of what was there, and make room for it."""
        with self._db.write_batch() as batch:
            self._remove(batch, url, old)
            room = self._most_bytes - self.size() + old.get("size", 0) - len(body)
            if new is None or len(body) > self._most_bytes:
                return
            for key, size in self._db.iterator(prefix=b"time:"):
                other = key.decode().split(":", 2)[2]
                if room >= 0:
                    break
                if other != url:
                    self._remove(batch, other, {"since": int(key.split(b":", 2)[1])})
                    room += int(size)
            batch.put(f"meta:{url}".encode(), json.dumps(new).encode())
            batch.put(f"body:{url}".encode(), body)
            batch.put(f"time:{new['since']:012d}:{url}".encode(), b"%d" % len(body))

    @staticmethod
    def _remove(batch: lsmkv.WriteBatch, url: str, meta: dict[str, Any]) -> None:
        if meta:
            batch.delete(f"meta:{url}".encode())
            batch.delete(f"body:{url}".encode())
            batch.delete(f"time:{meta['since']:012d}:{url}".encode())


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
