from __future__ import annotations

import re
from pathlib import Path

import pytest
from inspected import request
from page_frame import framed

import lsmkv
from lsmkv.tools.playground.server import POLICY, NotBuiltError, application, built

PAGES = Path(lsmkv.__file__).parent / "tools" / "playground" / "static"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "files.json").write_text("{}")
    (tmp_path / "index.html").write_text("the page")
    (tmp_path / "engine.wasm").write_bytes(b"\0asm")
    (tmp_path / "module.mjs").write_text("export {}")
    return tmp_path


def test_files_have_the_policy_and_their_types(made: Path) -> None:
    app = application(str(made))
    types = {"/": "text/html", "/engine.wasm": "application/wasm", "/module.mjs": "text/javascript"}
    for path, kind in types.items():
        answer = request(app, path)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["content-security-policy"].startswith(POLICY)
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_file_that_has_not_changed_is_not_sent_again(made: Path) -> None:
    app = application(str(made))
    tag = request(app, "/engine.wasm").headers["etag"]
    again = request(app, "/engine.wasm", if_none_match=tag)
    assert (again.status, again.body) == (304, b"")


def test_only_pages_of_this_machine_are_answered(made: Path) -> None:
    app = application(str(made))
    assert request(app, "/", host="evil.example").status == 403
    assert request(app, "/", origin="http://evil.example").status == 403
    for path in ("/../secret", "/..%2fsecret", "/nothing"):
        assert request(app, path).status == 404


def test_every_page_states_the_policy() -> None:
    pages = list(PAGES.glob("*.html"))
    assert pages
    for page in pages:
        source = framed(page.name, page.read_text(encoding="utf-8"))
        (stated,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', source)
        assert stated == POLICY
        assert not re.search(r"<script(?![^>]* src=)|\son\w+=|\sstyle=|https?://", source)


def test_the_first_place_that_is_built_is_served(made: Path, tmp_path: Path) -> None:
    empty = str(tmp_path / "empty")
    assert built(None, (empty, str(made))) == str(made)
    assert built(str(made), (empty,)) == str(made)
    for given, places in ((None, (empty,)), (empty, (str(made),))):
        with pytest.raises(NotBuiltError, match=r"empty: there is no playground. 'make play"):
            built(given, places)
