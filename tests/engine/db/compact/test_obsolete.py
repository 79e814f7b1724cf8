"""lsmkv.engine.db.compact.obsolete: files stay while a version or an iterator needs them, and go
then.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from stores import ENTRIES, TINY, files, files_at, fill, settle

from lsmkv import DB
from lsmkv.engine.db.compact.obsolete import PendingOutputs, remove_obsolete_files
from lsmkv.engine.format.filenames import FileType, table_name, worker_table_name
from lsmkv.testing.faulty import FaultyEnv


def test_an_iterator_outlives_compaction(path: str) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        db.flush()
        iterator = iter(db)
        backward = db.iterator(reverse=True)
        got = [next(iterator) for _ in range(5)]
        held = files(path, FileType.TABLE)
        for key in ENTRIES:
            db.put(key, b"new")
        db.compact_range()
        assert held <= files(path, FileType.TABLE)  # in use: kept
        assert got + list(iterator) == list(ENTRIES.items())
        assert list(backward) == list(ENTRIES.items())[::-1]
        assert dict(db) == dict.fromkeys(ENTRIES, b"new")
        iterator.close()
        del backward
        db.put(b"one more", b"write")
        db.flush()  # a commit removes what is not in use any more
        settle(db)
        now = files(path, FileType.TABLE)
        assert not held & now
        assert len(now) == sum(files_at(db))


@pytest.mark.parametrize(
    ("make", "is_open"),
    [
        (DB.snapshot, True),  # it keeps versions of keys, which later tables have
        (DB.snapshot, False),
        (lambda db: db.snapshot().iterator(), False),
        (DB.iterator, False),
        (DB.raw_iterator, False),
        (DB.transaction, True),
        (DB.write_batch, True),
    ],
)
def test_a_handle_keeps_no_table_but_those_that_it_reads(
    path: str, make: Callable[[DB], Any], is_open: bool
) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        fill(db)
        db.flush()
        handle = make(db)
        if not is_open:
            handle.close()
        before = files(path, FileType.TABLE)
        for key in ENTRIES:
            db.put(key, b"new")
        db.compact_range()
        settle(db)
        now = files(path, FileType.TABLE)
        assert not before & now
        assert len(now) == sum(files_at(db))
        del handle  # till here


def test_obsolete_files_go(path: str) -> None:
    with DB(path, create_if_missing=True, **TINY) as db:
        for _ in range(5):
            fill(db)
        db.compact_range()
        settle(db)
        assert len(files(path, FileType.TABLE)) == sum(files_at(db))
        assert len(files(path, FileType.LOG)) == 1
        assert len(files(path, FileType.MANIFEST)) == 1
        assert not files(path, FileType.TEMPORARY)
    for _ in range(3):
        DB(path).close()
    assert len(files(path, FileType.LOG)) == 1
    assert len(files(path, FileType.MANIFEST)) == 1


# Tables that no version names yet


def test_a_lease_spares_the_numbers_of_its_set_while_the_set_lives() -> None:
    pending = PendingOutputs()
    numbers = {7}
    pending.lease(numbers)
    assert 7 in pending
    assert 8 not in pending
    numbers.add(8)
    assert 8 in pending
    del numbers
    assert 7 not in pending
    assert 8 not in pending


def test_a_pending_output_is_not_removed() -> None:
    with DB(":memory:") as db:
        store = db._store
        assert store is not None
        directory = store.directory
        token = "0123456789abcdef"
        other = "f" * 16
        names = [table_name(700), table_name(701), table_name(702)]
        names += [worker_table_name(token, 5), worker_table_name(other, 5)]
        for name in [*names, "notes.txt"]:
            directory.create(name).close()
        pending = PendingOutputs()
        pending.outputs.add(700)
        numbers = {701}
        pending.lease(numbers)
        pending.tokens.add(token)
        remove_obsolete_files(store, pending)
        left = [name for name in [*names, "notes.txt"] if directory.exists(name)]
        assert left == [names[0], names[1], names[3], "notes.txt"]


def test_a_file_that_cannot_be_removed_is_removed_next_time() -> None:
    env = FaultyEnv()
    with DB("/db", create_if_missing=True, env=env) as db:
        store = db._store
        assert store is not None
        store.directory.create(table_name(700)).close()
        env.fail_at(1, OSError(errno.EIO, "bad disk"), calls={"remove"})
        remove_obsolete_files(store, PendingOutputs())
        assert store.directory.exists(table_name(700))
        remove_obsolete_files(store, PendingOutputs())
        assert not store.directory.exists(table_name(700))
