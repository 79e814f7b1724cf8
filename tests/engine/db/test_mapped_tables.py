"""``map_tables``: tables that are mapped into memory."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import python

from lsmkv import DB
from lsmkv.errors import CorruptionError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")

PAIRS = [(b"key%05d" % number, b"value%05d" % number * 9) for number in range(2000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of some tables, whose blocks are not compressed."""
    with DB(tmp_path / "db", create_if_missing=True, compression=None) as db:
        for number, (key, value) in enumerate(PAIRS, 1):
            db.put(key, value)
            if number % 500 == 0:
                db.flush()
        assert len(db.tables()) == 4
    return tmp_path / "db"


@pytest.fixture
def db(path: Path) -> Iterator[DB]:
    """Without a block cache: each Get reads its block."""
    with DB(path, map_tables=True, lru_cache_size=0) as db:
        yield db


def mapped(path: Path) -> set[str]:
    """The tables that this process has mapped, by name."""
    maps = Path("/proc/self/maps").read_text()
    return set(re.findall(re.escape(f"{path}/") + r"(\d+\.ldb)", maps))


def test_reads_of_mapped_tables(path: Path, db: DB) -> None:
    assert mapped(path) == set()
    assert [db.get(key) for key, _ in PAIRS] == [value for _, value in PAIRS]
    assert len(mapped(path)) == len(db.tables())
    assert list(db) == PAIRS
    assert list(db.iterator(reverse=True)) == PAIRS[::-1]
    assert db.get(b"key00000+") is None
    assert db.multi_get([b"a", PAIRS[7][0]]) == [None, PAIRS[7][1]]
    db.verify()


def test_tables_are_not_mapped_without_the_option(path: Path) -> None:
    with DB(path) as db:
        assert list(db) == PAIRS
        assert mapped(path) == set()


def test_a_removed_table_is_unmapped_once_no_iterator_needs_it(path: Path, db: DB) -> None:
    before = {f"{table.number:06d}.ldb" for table in db.tables()}
    scan = db.iterator()
    assert next(scan) == PAIRS[0]
    for key, _ in PAIRS[::2]:
        db.delete(key)
    db.compact_range()
    assert mapped(path) & before
    assert list(scan) == PAIRS[1:]
    scan.close()
    db.put(*PAIRS[1])
    db.compact_range()
    assert list(db) == PAIRS[1::2]
    assert not mapped(path) & before


def change(path: Path, old: bytes, new: bytes) -> None:
    """Overwrite bytes of a table, as an error of the disk would."""
    for table in path.glob("*.ldb"):
        at = table.read_bytes().find(old)
        if at >= 0:
            with table.open("r+b") as file:
                file.seek(at)
                file.write(new)
            return
    raise AssertionError("not stored")


def test_the_checksum_of_a_block_is_verified_when_it_is_first_read(path: Path, db: DB) -> None:
    key, value = PAIRS[1000]
    assert db.get(key) == value
    change(path, value, b"other" + value[5:])
    assert db.get(key) == b"other" + value[5:]
    assert ["checksum" in str(damage) for damage in db.verify()] == [True]
    key, value = PAIRS[1500]
    change(path, value, b"other" + value[5:])
    for _ in range(2):
        with pytest.raises(CorruptionError, match="checksum"):
            db.get(key)
    with pytest.raises(CorruptionError, match="checksum"):
        list(db)


def test_a_compaction_verifies_what_it_reads(path: Path, db: DB) -> None:
    key, value = PAIRS[1000]
    assert db.get(key) == value
    change(path, value, b"other" + value[5:])
    db.put(key, b"newer")
    with pytest.raises(CorruptionError, match="checksum"):
        db.compact_range()


CUT = """
import os, sys, lsmkv
db = lsmkv.DB(sys.argv[1], read_only=True, map_tables=sys.argv[2] == "mapped", lru_cache_size=0)
key = bytes.fromhex(sys.argv[3])
assert db.get(key)
for table in os.listdir(sys.argv[1]):
    if table.endswith(".ldb"):
        os.truncate(os.path.join(sys.argv[1], table), 0)
try:
    db.get(key)
except lsmkv.CorruptionError:
    print("refused")
"""


@pytest.mark.parametrize("how", ["mapped", "read"])
def test_a_table_that_is_cut_ends_the_process_if_it_is_mapped(path: Path, how: str) -> None:
    done = python(CUT, os.fspath(path), how, PAIRS[1000][0].hex(), check=False)
    if how == "mapped":
        assert done.returncode == -signal.SIGBUS
    else:
        assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
