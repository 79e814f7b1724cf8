"""Several workers of a web server, each with a store of its own, and metrics of all of them: WSGI.

    python examples/web_workers.py

starts gunicorn with two workers in a temporary directory, asks it some questions, and ends it.  To
serve until Ctrl-C:

    cd examples && gunicorn --workers 4 web_workers:application

The stores are caches in ``./cache`` (or ``$CACHE``): what one worker has worked out, another works
out once more.  A store is open in one process, so a worker takes the first of the directories
``worker-0``, ``worker-1``, ... that no other worker has; one that replaces it takes it over, with
all that is in it.  The store is opened at the first request, never before the fork: gunicorn's
``--preload`` is safe.  It needs ``gunicorn`` to run as it is; any WSGI server will do.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

import lsmkv

MOST = 64  # workers, the ones that are about to end included
METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_lock = threading.Lock()
_store: lsmkv.DB | None = None


def claim(directory: str) -> lsmkv.DB:
    """The first store that no other process has open; its counters are published for all."""
    for number in range(MOST):
        with contextlib.suppress(lsmkv.LockedError):
            path = os.path.join(directory, f"worker-{number}")
            return lsmkv.DB(path, create_if_missing=True, publish_stats=True)
    raise RuntimeError(f"{directory}: more than {MOST} workers")


def directory() -> str:
    return os.environ.get("CACHE", "cache")


def store() -> lsmkv.DB:
    """This worker's store, which all of its threads share."""
    global _store  # noqa: PLW0603 - one for each process
    with _lock:
        if _store is None:
            os.makedirs(directory(), exist_ok=True)
            _store = claim(directory())
    return _store


def metrics() -> bytes:
    """The metrics of all workers, whichever of them is asked."""
    names = sorted(name for name in os.listdir(directory()) if name.startswith("worker-"))
    return lsmkv.metrics_text({name: os.path.join(directory(), name) for name in names}).encode()


def largest_factor(number: int) -> int:
    """What is slow, and worth a cache."""
    time.sleep(0.01)
    return next((number // n for n in range(2, int(number**0.5) + 1) if number % n == 0), 1)


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/metrics":
        store()  # so that a worker that was asked for nothing else is seen too
        start_response("200 OK", [("Content-Type", METRICS)])
        return [metrics()]
    if not re.fullmatch(r"/\d{1,9}", path):
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"ask for a number of at most nine digits, or for /metrics\n"]
    db, key = store(), path.encode()
    answer = db.get(key)
    if answer is None:
        answer = b"%d\n" % largest_factor(int(path[1:]))
        db.put(key, answer)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer]


def demonstrate(cache: str) -> None:
    """Start two workers, and ask until both have answered and published what they did."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "gunicorn", "--workers", "2", "--bind", address]
    command += ["--chdir", os.path.dirname(os.path.abspath(__file__)), "web_workers:application"]
    server = subprocess.Popen(
        command,
        env=os.environ | {"CACHE": cache},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with server:
        try:
            written: dict[str, int] = {}
            while len(written) < 2 or 0 in written.values():
                time.sleep(0.05)
                with contextlib.suppress(urllib.error.URLError):
                    ask(f"http://{address}/123456789")
                    text = ask(f"http://{address}/metrics")
                    found = re.findall(r'(?m)^lsmkv_writes_total{store="(.*)"} (\d+)$', text)
                    written = {name: int(number) for name, number in found}
            for name, number in written.items():
                print(f"{name}: {number} write")
        finally:
            server.terminate()


def ask(url: str) -> str:
    with urllib.request.urlopen(url) as reply:
        return str(reply.read().decode())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        demonstrate(temporary)
