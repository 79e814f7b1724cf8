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
from typing import Any, NoReturn

import pytest
import uvicorn
from chromium_page import chromium

from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.server import application, listen

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


@contextlib.contextmanager
def driving() -> Iterator[Any]:
    """Playwright.  There may be only one at a time."""
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError as error:
        _skip(error)
    with playwright.sync_playwright() as driver:
        yield driver


@contextlib.contextmanager
def launched(driver: Any) -> Iterator[Any]:
    """The system's Chromium."""
    try:
        program = chromium()
    except FileNotFoundError as error:
        _skip(error)
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = driver.chromium.launch(executable_path=program, args=root)
    yield browser
    browser.close()


def _skip(error: Exception) -> NoReturn:
    if os.environ.get("LSMKV_EXPECT_BROWSER") == "1":
        raise error
    pytest.skip(str(error))


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
    try:
        with quiet_on(opened, url) as page:
            yield page
    finally:
        opened.close()


@contextlib.contextmanager
def quiet_on(context: Any, url: str) -> Iterator[Any]:
    """The same in a context that there is."""
    page = context.new_page()
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
    page.close()
    assert not complaints, "\n".join(complaints)


def open_page(page: Any, url: str) -> None:
    """Go to a page of the playground, and wait for its engine."""
    page.goto(url, timeout=120_000)
    page.wait_for_selector("html[data-engine=ready]", state="attached", timeout=120_000)


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
