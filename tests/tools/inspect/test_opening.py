from __future__ import annotations

import html
import os
import re
import stat
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest

from lsmkv.tools.inspect.opening import opened_page
from lsmkv.tools.inspect.server import announced

TOKEN = "correct horse & battery"


class Browser(webbrowser.BaseBrowser):
    """Notes what it is started with, and reads the file as a browser does."""

    def __init__(self) -> None:
        super().__init__("noting")
        self.started: list[str] = []
        self.led_to = ""
        self.modes: list[int] = []

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        self.started.append(url)
        if url.startswith("file:"):
            file = Path(url.removeprefix("file://"))
            found = re.search(r'content="0;url=([^"]*)"', file.read_text(encoding="utf-8"))
            assert found is not None
            self.led_to = html.unescape(found[1])
            self.modes = [stat.S_IMODE(os.stat(one).st_mode) for one in (file, file.parent)]
        return True


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Browser:
    made = Browser()
    monkeypatch.setattr(webbrowser, "open", made.open)
    return made


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_a_token_is_not_on_the_command_line(browser: Browser, tmp_path: Path) -> None:
    given: dict[str, Any] = {"token": TOKEN, "open_page": True}
    before = os.umask(0)
    try:
        with announced("127.0.0.1", 0, "store", "is shown at", **given) as listener:
            port = listener.getsockname()[1]
            (started,) = browser.started
            assert started.startswith("file:///")
            assert "correct" not in started
            file = Path(started.removeprefix("file://"))
            assert file.exists()
    finally:
        os.umask(before)
    assert browser.led_to == f"http://127.0.0.1:{port}/?token=correct%20horse%20%26%20battery"
    assert browser.modes == [0o600, 0o700]
    assert not file.parent.exists()


def test_a_url_without_a_token_is_opened_itself(browser: Browser) -> None:
    with opened_page("http://127.0.0.1:1/", has_token=False):
        pass
    assert browser.started == ["http://127.0.0.1:1/"]
