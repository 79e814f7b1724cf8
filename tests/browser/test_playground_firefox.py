"""The playground in Firefox: what runs in Chromium runs there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

firefox = pytest.importorskip("firefox", reason="needs the package websockets")

PAGES = {
    "": "document.querySelector('#lookups .sentence strong')",
    "bloom.html": "document.querySelectorAll('.rate-curve circle').length > 11",
    "folder.html": "document.querySelector('#zone button')",
    "console.html": "document.querySelector('.examples .card')",
}
"""The pages, and when each is whole."""
READY = "document.documentElement.dataset.engine === 'ready'"
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def page(playground_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = firefox.firefox()
    if program is None:
        pytest.skip("no firefox-esr, and no firefox")
    profile = tmp_path_factory.mktemp("firefox") / "profile"
    with firefox.Firefox(program, profile, playground_url) as page:
        yield page


@pytest.mark.parametrize("path", PAGES)
def test_every_page_runs_without_a_complaint(page: Any, playground_url: str, path: str) -> None:
    page.open(playground_url + path)
    page.wait(READY)
    page.wait(PAGES[path])
    for size in ((390, 844), (1280, 860)):
        page.resize(*size)
        assert page.value(FITS)
    assert page.complaints == []
