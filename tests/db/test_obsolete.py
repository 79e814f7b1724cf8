"""lsmkv.db.obsolete: files stay while a version or an iterator needs them, and go then."""

from __future__ import annotations

from stores import ENTRIES, TINY, files, files_at, fill, settle

from lsmkv import DB
from lsmkv.format.filenames import FileType


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
