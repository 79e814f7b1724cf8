"""lsmkv.engine.db.compact.background_jobs: numbers and levels of what jobs write, and their
failures.
"""

from __future__ import annotations

import pathlib

import pytest
from stores import ENTRIES, GatedEnv, files, files_at, fill, settle
from threads import background_of

import lsmkv
from lsmkv import DB
from lsmkv.engine.format.filenames import FileType


def test_files_have_the_same_numbers_whenever_flushes_are_computed() -> None:
    numbered: list[set[int]] = []
    for stalls in (False, True):
        env = GatedEnv()
        with DB("/db", create_if_missing=True, env=env, write_buffer_size=1024) as db:
            made = env.logs_made

            def write(db: DB = db, stalls: bool = stalls) -> None:
                for n in range(40):
                    db.put(b"%05d" % n, b"v" * 100)
                    if not stalls:
                        settle(db)

            if stalls:
                env.open.clear()
            thread, errors = background_of(write)
            while stalls and env.logs_made < made + 2:
                assert thread.is_alive()
            env.open.set()
            thread.join(60)
            assert errors == []
            settle(db)
            assert db.stats().flushes > 3
            numbered.append({table.number for table in db.tables()})
    assert numbered[0] == numbered[1]


def test_a_flush_in_the_middle_of_a_compaction() -> None:
    """It must not place its table where an output of the compaction will lie."""
    env = GatedEnv()
    low = {b"a%03d" % n: b"v" * 50 for n in range(300)}
    high = {b"x%03d" % n: b"v" for n in range(9)}
    with DB("/db", create_if_missing=True, env=env) as db:
        for entries in (low, high, low, high):  # two tables on level 2, two on level 1
            fill(db, entries)
            db.flush()
        assert files_at(db) == [0, 2, 2, 0, 0, 0, 0]
        env.open.clear()
        env.waiting.clear()
        compacting, errors = background_of(db.compact_range)
        assert env.waiting.wait(60)  # its output will reach from a to x
        db.put(b"m", b"1")
        flushing, more_errors = background_of(db.flush)
        while db._store.view.immutable is None:
            pass
        env.open.set()
        compacting.join()
        flushing.join()
        assert errors == more_errors == []
        assert dict(db) == {**low, **high, b"m": b"1"}
        db.put(b"after", b"1")
        db.check()
    with DB("/db", env=env) as db:
        assert dict(db) == {**low, **high, b"m": b"1", b"after": b"1"}
        db.check()


def test_compaction_stops_at_damage_and_loses_nothing(path: str) -> None:
    with DB(path, create_if_missing=True) as db:
        for _ in range(2):
            fill(db)
            db.flush()
    names = sorted(files(path, FileType.TABLE))
    table = pathlib.Path(path, names[0])
    sound = table.read_bytes()
    table.write_bytes(sound[:20] + bytes([sound[20] ^ 1]) + sound[21:])
    with DB(path) as db:
        db.put(b"fresh", b"1")
        with pytest.raises(lsmkv.CorruptionError) as caught:
            db.compact_range()
        assert caught.value.path == str(table)
        assert db.get(b"fresh") == b"1"
        with pytest.raises(lsmkv.CorruptionError) as caught:
            db.put(b"refused", b"1")  # kept, and raised by every later write
        assert caught.value.path == str(table)
        with pytest.raises(lsmkv.CorruptionError):
            db.sync()
        with pytest.raises(lsmkv.CorruptionError):
            db.flush()
        assert set(names) <= files(path, FileType.TABLE)
    table.write_bytes(sound)
    with DB(path) as db:
        assert dict(db) == {**ENTRIES, b"fresh": b"1"}
        db.compact_range()
        db.check()


@pytest.mark.parametrize("background", ["thread", "process", "inline"])
def test_flush_prefix_cuts_tables_twice(background: str, tmp_path: pathlib.Path) -> None:
    """Each goes as deep as nothing overlaps it."""
    options: lsmkv.OptionArguments = {"background": background, "flush_prefix": "v"}  # type: ignore[typeddict-item]
    with DB(tmp_path / "db", create_if_missing=True, **options) as db:
        for group in (1, 2):
            for number in range(600):
                db.put(b"h%03d" % number, b"")
                db.put(b"v%05d%03d" % (group, number), bytes(9))
            db.put(b"w%d" % group, b"")
            db.flush()
        tables = [(table.level, table.smallest, table.largest) for table in db.tables()]
        assert sorted(tables) == [
            (1, b"h000", b"h599"),
            (2, b"h000", b"h599"),
            (2, b"v00001000", b"v00001599"),
            (2, b"v00002000", b"v00002599"),
            (2, b"w1", b"w1"),
            (2, b"w2", b"w2"),
        ]
        numbers = [table.number for table in db.tables()]
        assert len(set(numbers)) == len(numbers)
        db.check()
        assert len(list(db)) == 1802
