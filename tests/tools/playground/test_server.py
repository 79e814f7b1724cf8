from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
from inspected import request
from page_frame import framed

import lsmkv
from lsmkv.tools.playground.server import POLICY, NotBuiltError, accepts_gzip, application, built

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


TEXT = b"export const words = 'the same again and again';\n" * 400


def test_files_are_compressed_for_those_who_accept_it(made: Path) -> None:
    (made / "long.js").write_bytes(TEXT)
    (made / "stdlib.zip").write_bytes(TEXT)
    app = application(str(made))
    plain = request(app, "/long.js")
    packed = request(app, "/long.js", accept_encoding="gzip, deflate, br")
    assert (plain.body, gzip.decompress(packed.body)) == (TEXT, TEXT)
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(packed.body) < len(TEXT) / 20
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert packed.headers["content-security-policy"].startswith(POLICY)
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    for unchanged, accepted in (
        ("/long.js", "gzip;q=0"),
        ("/stdlib.zip", "gzip"),
        ("/module.mjs", "gzip"),
    ):
        answer = request(app, unchanged, accept_encoding=accepted)
        assert (answer.status, "content-encoding" in answer.headers) == (200, False)
        assert answer.body == (made / unchanged[1:]).read_bytes()
    missing = request(app, "/nothing", accept_encoding="gzip")
    assert (missing.status, "content-encoding" in missing.headers) == (404, False)


def test_each_encoding_has_its_own_etag(made: Path) -> None:
    (made / "long.js").write_bytes(TEXT)
    app = application(str(made))
    tags = [
        request(app, "/long.js", accept_encoding=one).headers["etag"]
        for one in ("gzip", "identity")
    ]
    assert len(set(tags)) == 2
    for tag in (*tags, f'W/{tags[0]}, "other"'):
        again = request(app, "/long.js", accept_encoding="gzip", if_none_match=tag)
        assert (again.status, again.body) == (304, b"")
        assert "content-encoding" not in again.headers
        assert again.headers["vary"] == "Accept-Encoding"
    other = request(app, "/long.js", if_none_match=tags[0])
    assert (other.status, other.body) == (200, TEXT)
    changed = TEXT.replace(b"again", b"twice")
    (made / "long.js").write_bytes(changed)
    os.utime(made / "long.js", (1, 1))
    newer = request(app, "/long.js", accept_encoding="gzip", if_none_match=tags[0])
    assert (newer.status, gzip.decompress(newer.body)) == (200, changed)


def test_a_range_is_one_of_the_file(made: Path) -> None:
    (made / "long.js").write_bytes(TEXT)
    app = application(str(made))
    part = request(app, "/long.js", accept_encoding="gzip", range="bytes=10-19")
    assert (part.status, part.body) == (206, TEXT[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(TEXT)}"
    assert "content-encoding" not in part.headers
    packed = request(app, "/long.js", accept_encoding="gzip").headers["etag"]
    whole = request(app, "/long.js", accept_encoding="gzip", range="bytes=10-19", if_range=packed)
    assert (whole.status, whole.body) == (200, TEXT)


def test_a_weight_of_an_encoding_that_is_no_number_refuses_it() -> None:
    assert accepts_gzip("deflate, GZIP;q=0.001")
    assert not accepts_gzip("gzip;q=much")


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
