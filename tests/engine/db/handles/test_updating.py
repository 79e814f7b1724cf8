"""lsmkv.engine.db.handles.updating: attempts of ``update``; who loses them is for its turns."""

from __future__ import annotations

from lsmkv import DB


def test_what_is_returned_as_it_came_is_not_written(db: DB) -> None:
    """It would be with ``sync``, so that it is durable when ``update`` returns."""
    db.put(b"k", b"v")
    before = db.sequence
    assert db.update(b"k", lambda old: old) == b"v"
    assert db.update(b"none", lambda old: old) is None
    assert db.sequence == before
    syncs = db.stats().log_syncs
    assert db.update(b"k", lambda old: old, sync=True) == b"v"
    assert db.stats().log_syncs > syncs


def test_an_update_starts_over_when_a_flush_has_ended_meanwhile(db: DB) -> None:
    """Where the key was last written cannot be told from memory any more."""
    seen: list[bytes | None] = []

    def change(old: bytes | None) -> bytes:
        seen.append(old)
        if len(seen) == 1:
            db.put(b"other", b"v")
            db.flush()
        return b"new"

    assert db.update(b"k", change) == b"new"
    assert (seen, db.get(b"k")) == ([None, None], b"new")


def test_what_comes_back_unchanged_is_not_written_after_a_conflict(db: DB) -> None:
    db.put(b"k", b"v")
    seen: list[bytes | None] = []

    def change(old: bytes | None) -> bytes | None:
        seen.append(old)
        if len(seen) > 1:
            return old
        db.put(b"k", b"w")
        return b"lost"

    assert db.update(b"k", change) == b"w"
    assert seen == [b"v", b"w"]
    assert db.sequence == 2
