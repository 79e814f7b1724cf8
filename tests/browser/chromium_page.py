"""Chromium, and a page on localhost that obeys a test.

Nothing is installed: ``chromium`` is looked for in the path, or taken from ``LSMKV_CHROMIUM``.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

PAGE = Path(__file__).with_name("page.html")
PATIENCE = 120.0
"""Seconds after which a browser that says nothing is given up."""
FLAGS = (
    *("--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-features=IdbSqliteOnDiskRollout,IdbSqliteBackingStore",
)
"""The features would put IndexedDB into SQLite."""


def chromium() -> str:
    """The browser's program; ``FileNotFoundError`` says what to do if there is none."""
    wanted = os.environ.get("LSMKV_CHROMIUM") or "chromium"
    found = shutil.which(wanted)
    if found is None:
        raise FileNotFoundError(
            f"make test-browser needs Chromium, and there is no program {wanted!r}: on Debian"
            " 'apt-get install chromium', elsewhere LSMKV_CHROMIUM=/path/to/chromium"
        )
    return found


class Page:
    """The server's side of ``page.html``: one command at a time, and its answer."""

    def __init__(self) -> None:
        commands: queue.Queue[dict[str, Any]] = queue.Queue()
        answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._commands, self._answers = commands, answers

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply(PAGE.read_bytes(), "text/html")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                if self.path == "/answer":
                    answers.put(json.loads(body))
                    self.reply(b"{}", "application/json")
                else:
                    self.reply(json.dumps(commands.get()).encode(), "application/json")

            def reply(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # the browser has quit
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://localhost:{self.port}/"
        self._running = threading.Thread(target=self._server.serve_forever)
        self._running.start()

    def tell(self, name: str, argument: object = None) -> None:
        self._commands.put({"name": name, "argument": argument})

    def answer(self) -> dict[str, Any]:
        try:
            found = self._answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise TimeoutError(f"the page has not answered in {PATIENCE:.0f} s") from None
        if "result" not in found:
            raise RuntimeError(f"the page failed: {found}")
        result: dict[str, Any] = found["result"]
        return result

    @property
    def has_answered(self) -> bool:
        return not self._answers.empty()

    def ask(self, name: str, argument: object = None) -> dict[str, Any]:
        self.tell(name, argument)
        return self.answer()

    def hang_up(self) -> None:
        """End the request for a command that a browser left behind when it quit."""
        self._commands.put({})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._running.join()


class Browser:
    """A running Chromium with one profile and one page; what it prints goes beside the profile."""

    def __init__(self, program: str, profile: Path, url: str) -> None:
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        with profile.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen(
                [program, *FLAGS, *root, f"--user-data-dir={profile}", url],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that signals reach all of its processes
            )

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """It writes nothing meanwhile."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)

    def quit(self) -> None:
        """Quit as when the user closes it."""
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        if status:
            raise RuntimeError(f"Chromium ended with {status}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has quit
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
