"""Transactions of several processes on one store."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from others import Other, new

import lsmkv
from lsmkv.errors import ConflictError
from lsmkv.shared.writing import DeniedWriter

Start = Callable[..., Other]


def test_updates_of_several_processes_lose_nothing(path: Path, other: Start) -> None:
    with new(path) as db:
        others = [other() for _ in range(3)]
        code = "for _ in range(50): db.update(b'n', lambda old: b'%d' % (int(old or 0) + 1))"
        for one in others:
            one.ask(code)
        for _ in range(50):
            db.update(b"n", lambda old: b"%d" % (int(old or 0) + 1))
        for one in others:
            assert one.answer() is None
        assert db.get(b"n") == b"200"


@pytest.mark.parametrize("at_the_owner", [False, True])
def test_a_transaction_that_read_what_another_process_wrote(
    path: Path, other: Start, at_the_owner: bool
) -> None:
    with new(path) as db:
        first = other()
        first("t = db.transaction(); t.get(b'k'); t.put(b'mine', b'1')")
        if at_the_owner:
            db.put(b"k", b"theirs")
        else:
            other()("db.put(b'k', b'theirs')")
        assert first("t.commit()").startswith("ConflictError: b'k' was written")
        assert db.get(b"mine") is None


def test_a_deletion_that_compaction_has_dropped_is_still_a_conflict(
    path: Path, other: Start
) -> None:
    with new(path) as db:
        db.put(b"k", b"v")
        first = other()
        first("t = db.transaction(); t.get(b'k'); t.put(b'mine', b'1')")
        db.delete(b"k")
        db.compact_range()
        assert first("t.commit()").startswith("ConflictError")


def test_a_range_that_a_transaction_has_read(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        first("t = db.transaction(); list(t.iterator(prefix=b'a')); t.put(b'z', b'1')")
        db.put(b"a1", b"phantom")
        assert first("t.commit()").startswith("ConflictError: b'a1' was written")
        first("t = db.transaction(); list(t.iterator(prefix=b'a')); t.put(b'z', b'1')")
        db.put(b"b1", b"none of its business")
        assert first("t.commit()") is None
        first("t = db.transaction(isolation='snapshot'); t.get(b'a1'); t.put(b'z', b'2')")
        db.put(b"a1", b"x")
        assert first("t.commit()") is None


def test_what_a_transaction_pins_ends_with_it(path: Path, other: Start) -> None:
    with new(path) as db:
        first = other()
        pinned = db._open_store().pinned.all

        def none_is_left() -> bool:
            while pinned():
                time.sleep(0.001)
            return True

        first("t = db.transaction()")
        assert pinned() != []
        first("t.rollback()")
        assert none_is_left()
        first("t = db.transaction(); del t")
        first("with db.transaction() as t: t.put(b'k', b'v')")
        assert none_is_left()
        first("t = db.transaction()")
        first.kill()
        assert none_is_left()


# A write that depends on keys which were read just before


_WRITE = "db._open_writer().write_unless_changed([(b'mine', b'1')], {}, [b'absent', b'k'])"


@pytest.mark.parametrize("at_the_owner", [False, True])
def test_a_write_of_a_member_unless_its_keys_were_written(
    path: Path, other: Start, at_the_owner: bool
) -> None:
    with new(path) as db:
        db.put(b"k", b"v")
        first, second = other(), other()
        sequence = first("db.sequence")
        assert second("db.put(b'other', b'1')") is None
        assert first(_WRITE.format(sequence)) is None
        if at_the_owner:
            db.put(b"k", b"theirs")
        else:
            second("db.put(b'k', b'theirs')")
        db.delete(b"mine")
        assert first(_WRITE.format(sequence)) == (
            "ConflictError: b'k' was written since it was read"
        )
        assert db.get(b"mine") is None
        assert first(_WRITE.format("db.sequence")) is None
        assert db.get(b"mine") == b"1"


def test_a_write_of_a_member_after_a_flush_at_the_owner(path: Path, other: Start) -> None:
    with new(path) as db:
        db.put(b"k", b"v")
        first = other()
        sequence = first("db.sequence")
        db.delete(b"k")
        db.compact_range()
        assert first(_WRITE.format(sequence)).startswith("ConflictError: a table has appeared")


def test_a_write_of_a_member_under_another_owner(path: Path, other: Start) -> None:
    """Its sequence may count other writes there, so the caller has to read again."""
    owner = other(create_if_missing=True)
    with new(path) as db:
        writer, sequence = db._open_writer(), db.sequence
        owner.kill()
        with pytest.raises(ConflictError, match="the owner of the store has gone"):
            writer.write_unless_changed([(b"mine", b"1")], sequence, [b"k"])
        assert db.get(b"mine") is None


def test_a_process_that_may_not_write(tmp_path: Path) -> None:
    writer = DeniedWriter(str(tmp_path))
    with pytest.raises(lsmkv.PermissionDeniedError):
        writer.write_unless_changed([(b"mine", b"1")], 0, [b"k"])
