"""lsmkv.engine.db.handles.readable: what snapshots and parts of a store read by."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsmkv import DB, PrefixedDB, Snapshot


@pytest.fixture(params=["snapshot", "part"])
def readable(request: pytest.FixtureRequest) -> Iterator[Snapshot | PrefixedDB]:
    """A snapshot, and a part, with the one key ``k``."""
    with DB(":memory:") as db:
        if request.param == "part":
            db.put(b"p:k", b"v")
            db.put(b"z", b"outside")
            yield db.prefixed_db(b"p:")
        else:
            db.put(b"k", b"v")
            with db.snapshot() as snapshot:
                db.put(b"later", b"")
                yield snapshot


def test_get_returns_the_value_or_the_default(readable: Snapshot | PrefixedDB) -> None:
    assert readable.get(b"k") == readable.get(bytearray(b"k"), 5, fill_cache=False) == b"v"
    assert readable.get(b"later") is None
    assert readable.get(b"z", 5) == 5
    with pytest.raises(TypeError, match="key"):
        readable.get("k")  # type: ignore[call-overload]


def test_membership_and_raw_iterators_are_of_the_same_keys(readable: Snapshot | PrefixedDB) -> None:
    assert b"k" in readable
    assert b"later" not in readable
    assert b"z" not in readable
    with readable.raw_iterator() as cursor:
        cursor.seek_to_first()
        assert (cursor.key(), cursor.value()) == (b"k", b"v")
        cursor.next()
        assert not cursor.valid()
