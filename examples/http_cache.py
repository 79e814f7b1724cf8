"""An HTTP client's cache on disk, with ETag, max-age, and a limit on its size.

    python examples/http_cache.py [DIRECTORY]

The program starts a small server, and prints where each page came from.

A page, its ETag, and the moment until which it is fresh are one value of an ``lsmkv.Cache``, so
that they change together.  The cache sees to the rest: it removes what was stored or confirmed
first once there is too much, without a walk over all pages, and it may be shared by any number of
threads and processes.  A page that is still fresh costs one lookup and no write; most URLs that are
not in the cache cost no read of the disk, since a filter says so.

Left out: ``Vary``, and what HTTP allows a cache to guess where a page has no max-age.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import lsmkv

KEEP = 30 * 24 * 3600
"""Seconds for which a page is kept, to be confirmed by its ETag."""


class Client:
    """Gets pages, by way of a cache.  For any number of threads."""

    def __init__(self, cache: lsmkv.Cache, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._clock = clock

    def get(self, url: str) -> tuple[bytes, str]:
        """The page, and its source."""
        now = self._clock()
        body, etag, fresh_until = self._cache.get(url, (None, None, 0.0))
        if body is not None and now < fresh_until:
            return body, "the cache"
        request = urllib.request.Request(url)
        if etag is not None:
            request.add_header("If-None-Match", etag)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                body, headers, source = response.read(), response.headers, "the server"
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 304 or body is None:
                    raise
                headers, source = error.headers, "the cache, after a 304"
        control = headers.get("Cache-Control", "")
        if "no-store" in control:
            self._cache.delete(url)
        else:
            age = re.search(r"max-age=(\d+)", control)
            fresh = now + (int(age[1]) if age and "no-cache" not in control else 0)
            self._cache.set(url, (body, headers.get("ETag"), fresh), expire=KEEP)
        return body, source


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
    now = 0.0

    def clock() -> float:
        return 1_700_000_000.0 + now

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server,
        lsmkv.Cache(
            path, size_limit=1700, eviction="least-recently-stored", cull_limit=1, clock=clock
        ) as cache,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Client(cache, clock)
        for now, page in zip((0, 30, 50, 70, 80, 90, 95), "aabacba", strict=True):
            _, source = client.get(f"http://127.0.0.1:{server.server_port}/{page}")
            print(f"second {now}: /{page} from {source}; {len(cache)} pages kept")
        server.shutdown()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory, "pages"))
