from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.files.programs.storage import Storage, is_local, is_session, storage_text

DATA = Path(__file__).parents[2] / "data"


def test_local_storage() -> None:
    storage = Storage()
    assert storage.key(b"_https://a.org\x00\x00" + "ключ".encode("utf-16-le")) == (
        "https://a.org: ключ"
    )
    assert storage.key(b"META:https://a.org") == "facts about https://a.org"
    assert storage.key(b"METAACCESS:https://a.org") == "the last access to https://a.org"
    assert storage.key(b"VERSION") == "the version of this format"
    assert storage.key(b"_no zero byte") is storage.key(b"other") is None
    assert storage.value(b"VERSION", b"1") == "1"
    assert storage.value(b"_a\x00\x01k", b"\x01x") == "x"
    facts = bytes.fromhex("08 e7cab5bdfcffef17 10 ec5d")
    assert storage.value(b"META:https://a.org", facts) == "2026-11-29 12:33:12 UTC, 12,012 bytes"
    assert storage.value(b"METAACCESS:https://a.org", facts[:9]) == "2026-11-29 12:33:12 UTC"
    assert (
        storage.value(b"META:a", b"\x01") is storage.value(b"META:a", b"\x08" + b"\xff" * 8) is None
    )
    year_100000 = b"\x08" + b"\xff" * 8 + b"\x7f"
    assert storage.value(b"META:https://a.org", year_100000) is None
    assert storage_text(b"\x00odd") is None
    assert storage_text(b"") is None


def test_session_storage() -> None:
    storage = Storage()
    assert storage.key(b"map-3-a-b") == "map 3: a-b"
    assert storage.key(b"map-3-") == "map 3"
    assert storage.key(b"version") is None
    assert storage.value(b"map-3-a", "é€".encode("utf-16-le")) == "é€"
    assert storage.value(b"namespace-", b"33") is None


def test_the_items_that_chromium_wrote() -> None:
    """Its page saw them, too: tests/data/chromium-seen.json."""
    seen = json.loads((DATA / "chromium-seen.json").read_text(encoding="utf-8"))
    storage = Storage()
    found = {}
    with lsmkv.DB(DATA / "localstorage-chromium", read_only=True) as db:
        for key, value in db.iterator(prefix=b"_"):
            name, text = storage.key(key), storage.value(key, value)
            assert name is not None
            found[name.removeprefix(f"{seen['origin']}: ")] = text
        facts = storage.value(b"META:", db.get(b"META:" + seen["origin"].encode(), b""))
    assert found == seen["local"]
    assert facts is not None
    assert facts.startswith("2026-")


@pytest.mark.parametrize(
    ("key", "local", "session"),
    [
        (b"_https://a.org\x00\x01k", True, False),
        (b"_https://a.org\x00\x02k", False, False),
        (b"_https://a.org", False, False),
        (b"META:app://notes", True, False),
        (b"META", False, False),
        (b"map-12-key", False, True),
        (b"map-key", False, False),
        (b"namespace-dabc53e1_8291_4de5_824f_dab8aa69c846-https://a.org/", False, True),
        (b"namespaces", False, False),
    ],
)
def test_the_form_of_a_key(key: bytes, local: bool, session: bool) -> None:
    assert is_local(key) is local
    assert is_session(key) is session


@given(st.binary(), st.binary(), st.sampled_from([b"", b"_a\x00", b"META:", b"map-1-", b"VERSION"]))
def test_any_bytes_have_texts_or_none(key: bytes, value: bytes, start: bytes) -> None:
    storage = Storage()
    for text in (storage.key(start + key), storage.value(start + key, value)):
        assert text is None or isinstance(text, str)
