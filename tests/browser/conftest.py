"""One browser for all tests, and the playground: built and served once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driven import WIDE, driving, launched, running
from make_playground import build
from pyodide_files import found

from lsmkv.tools.playground.server import application


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """Playwright."""
    with driving() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(driver: Any) -> Iterator[Any]:
    """Chromium."""
    with launched(driver) as started:
        yield started


@pytest.fixture(scope="session")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a playground; tests are skipped without npm, with which it is built."""
    try:
        found("npm")
    except SystemExit as missing:
        pytest.skip(str(missing))
    target = tmp_path_factory.mktemp("playground") / "built"
    build(target)
    return target


@pytest.fixture(scope="session")
def playground_url(playground: Path) -> Iterator[str]:
    """Where it is served."""
    with running(application(str(playground))) as address:
        yield address


@pytest.fixture(scope="session")
def shared(browser: Any) -> Iterator[Any]:
    """A context whose service worker keeps the playground's files, so that pages open fast."""
    context = browser.new_context(viewport=WIDE)
    yield context
    context.close()
