"""Firefox, driven over WebDriver BiDi.

Playwright's BiDi driver asks Firefox for a command that Debian's firefox-esr does not have
(``emulation.setMediaFeaturesOverride``) whenever it makes a context, so the few commands that the
tests need are sent here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import connect

PATIENCE = 120.0
"""Seconds for an answer, and for what is waited for."""
_LEFT = "A ServiceWorker intercepted the request and encountered an unexpected error."
"""The end of what Firefox says of a worker that was still loading when its page was left."""
_WAIT = """new Promise((resolve, reject) => {
    const begun = performance.now();
    const look = () => {
        if (%s) resolve(true);
        else if (performance.now() - begun > %d) reject(new Error("not within the time"));
        else setTimeout(look, 50);
    };
    look();
})"""


def firefox() -> str | None:
    """The path of Firefox; ``LSMKV_FIREFOX`` names another."""
    names = (os.environ.get("LSMKV_FIREFOX", ""), "firefox-esr", "firefox")
    return next(filter(None, map(shutil.which, names)), None)


class Firefox:
    """A running Firefox with one page.  What the page complains of is in ``complaints``."""

    def __init__(self, program: str, profile: Path, origin: str) -> None:
        """``origin`` is the only place that the page may ask for anything."""
        self.complaints: list[str] = []
        self._origin = origin
        self._numbers = itertools.count(1)
        profile.mkdir()
        self._process = subprocess.Popen(
            [
                *(program, "--headless", "--no-remote", "--remote-debugging-port=0"),
                *("--profile", str(profile), "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"HOME": str(profile.parent)},
        )

    def _address(self) -> str:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = re.search(rb"WebDriver BiDi listening on (ws://\S+)", line)
            if found:
                return found[1].decode()
        raise RuntimeError("Firefox does not listen")

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command; its result.  Events that come before it are noted."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            found = json.loads(self._socket.recv(PATIENCE + 30))
            if found.get("id") == number:
                break
            self._note(found)
        if found["type"] == "error":
            raise RuntimeError(f"{method}: {found['error']}: {found['message']}")
        return found["result"]

    def _note(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        if event.get("method") == "log.entryAdded" and not told["text"].endswith(_LEFT):
            self.complaints.append(f"{told['level']}: {told['text']}")
        elif event.get("method") == "network.beforeRequestSent":
            url = told["request"]["url"]
            if not url.startswith((self._origin, "data:", "blob:", "about:")):
                self.complaints.append(f"request: {url}")

    def open(self, url: str) -> None:
        """Go to a page; its load event has come when this returns."""
        self.call("browsingContext.navigate", context=self._page, url=url, wait="complete")

    def resize(self, width: int, height: int) -> None:
        """Change the page's size."""
        viewport = {"width": width, "height": height}
        self.call("browsingContext.setViewport", context=self._page, viewport=viewport)

    def value(self, script: str) -> Any:
        """The value of an expression, or of the promise that it gives, as JSON has it."""
        found = self._evaluated(f"(async () => JSON.stringify(await ({script})))()")
        return json.loads(found["value"])

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        try:
            self.value(_WAIT % (condition, PATIENCE * 1000))
        except RuntimeError as error:
            raise TimeoutError(f"{condition}: {error}") from None

    def choose(self, selector: str, files: Sequence[Path]) -> None:
        """Give files to a field for them."""
        element = self._evaluated(f"document.querySelector({json.dumps(selector)})")
        shared = {"sharedId": element["sharedId"]}
        paths = [str(file) for file in files]
        self.call("input.setFiles", context=self._page, element=shared, files=paths)

    def _evaluated(self, script: str) -> Any:
        found = self.call(
            "script.evaluate",
            expression=script,
            target={"context": self._page},
            awaitPromise=True,
        )
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            opened.callback(self._end)
            address = f"{self._address()}/session"
            self._socket = opened.enter_context(connect(address, max_size=None, compression=None))
            self.call("session.new", capabilities={})
            events = ["log.entryAdded", "network.beforeRequestSent"]
            self.call("session.subscribe", events=events)
            self._page = self.call("browsingContext.getTree")["contexts"][0]["context"]
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()
