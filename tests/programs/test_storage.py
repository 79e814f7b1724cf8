from __future__ import annotations

import pytest

from lsmkv.programs.storage import Storage, is_local, is_session, storage_text


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
    assert storage.value(b"META:a", b"\x01x") is None
    assert storage_text(b"\x00odd") is None
    assert storage_text(b"") is None


def test_session_storage() -> None:
    storage = Storage()
    assert storage.key(b"map-3-a-b") == "map 3: a-b"
    assert storage.key(b"map-3-") == "map 3"
    assert storage.key(b"version") is None
    assert storage.value(b"map-3-a", "é€".encode("utf-16-le")) == "é€"
    assert storage.value(b"namespace-", b"33") is None


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
