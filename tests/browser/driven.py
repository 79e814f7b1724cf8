"""Chromium driven by Playwright, and the inspector's server, for tests of the page.

Tests are skipped where one of the two is missing, unless ``LSMKV_EXPECT_BROWSER=1``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from chromium_page import chromium

from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.server import application, listen

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


@contextlib.contextmanager
def launched() -> Iterator[Any]:
    """A browser of Playwright's, with the system's Chromium."""
    try:
        playwright = importlib.import_module("playwright.sync_api")
        program = chromium()
    except (ImportError, FileNotFoundError) as error:
        if os.environ.get("LSMKV_EXPECT_BROWSER") == "1":
            raise
        pytest.skip(str(error))
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=root)
        yield browser
        browser.close()


@contextlib.contextmanager
def running(pages: Any, port: int = 0) -> Iterator[str]:
    """The URL of an ASGI application, on this port or a free one."""
    with listen("127.0.0.1", port) as listener:
        config = uvicorn.Config(pages, log_level="warning", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def served(store: Path | str) -> Iterator[str]:
    """The inspector of a store, on a free port; its URL."""
    with contextlib.closing(Api(str(store))) as api, running(application(api)) as url:
        yield url


@contextlib.contextmanager
def quiet_page(browser: Any, url: str, **context: Any) -> Iterator[Any]:
    """A page that must not complain, nor ask any other server for anything."""
    opened = browser.new_context(**({"viewport": WIDE} | context))
    page = opened.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((url, "data:", "blob:"))
            else complaints.append(f"request: {request.url}")
        ),
    )
    yield page
    opened.close()
    assert complaints == []


def serious_faults(page: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def fits(page: Any) -> bool:
    """Whether nothing sticks out to the right."""
    script = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    return bool(page.evaluate(script))
