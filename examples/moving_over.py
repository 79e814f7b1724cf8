"""Moving over to lsmkv from plyvel, sqlite3 and dbm, with every value compared afterwards.

    python examples/moving_over.py [plyvel|sqlite3|dbm SOURCE TARGET]

Without arguments it makes a small source of each kind and moves all three.  ``from_sqlite`` expects
the table of this sample, ``person``: replace it with yours.  (A shelf of ``shelve`` is a dbm file:
move it as dbm, and open it as in examples/shelf.py.)
"""

from __future__ import annotations

import dbm
import dbm.dumb
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lsmkv

try:
    import plyvel
except ImportError:
    plyvel = None

Pairs = Iterable[tuple[bytes, bytes]]


def from_plyvel(source: Path, target: Path) -> int:
    """Nothing has to move: the files are LevelDB's.  Here lsmkv opens them, and makes a copy.

    In the program, ``import plyvel`` becomes ``from lsmkv import plyvel`` (docs/plyvel.md), or
    ``plyvel.DB(name)`` becomes ``lsmkv.DB(name)``, which takes the same options.  LevelDB can open
    the directory again afterwards.
    """
    with lsmkv.DB(source) as db:
        db.check()  # reads every block
        db.checkpoint(target)  # tables are shared by hard links: no time, no room
        return compare(target, iter(db))


def from_dbm(source: Path, target: Path) -> int:
    """Bytes to bytes, so all that changes is the order: dbm has none."""
    with dbm.open(str(source), "r") as old:
        keys: list[Any] = list(old.keys())  # not every dbm can be iterated over
        with lsmkv.open(target, "n") as new:
            new.update((key, old[key]) for key in keys)
        return compare(target, ((key, old[key]) for key in keys))


def from_sqlite(source: Path, target: Path) -> int:
    """A table with a primary key and one index becomes two kinds of keys.

    ``person/ID`` has the row as JSON; the number has 19 digits, so that keys sort as ids do (all
    ids must be 0 or more).  ``person.city/CITY NUL ID`` is the index: its keys with one city are
    a range.  Whatever changes a person changes both in one batch.
    """

    def pairs() -> Iterator[tuple[bytes, bytes]]:
        for number, name, city in old.execute("SELECT id, name, city FROM person ORDER BY id"):
            row = json.dumps({"name": name, "city": city}, ensure_ascii=False)
            yield b"person/%019d" % number, row.encode()
            yield b"person.city/%b\0%019d" % (city.encode(), number), b""

    with closing(sqlite3.connect(source.resolve().as_uri() + "?mode=ro", uri=True)) as old:
        with lsmkv.open(target, "n") as new:
            new.update(pairs())
        return compare(target, pairs())


def compare(target: Path, expected: Pairs) -> int:
    """Every pair is in the store, and nothing else; how many there are."""
    count = 0
    with lsmkv.open(target) as new:
        for key, value in expected:
            if new.get(key) != value:
                raise SystemExit(f"{target}: {key!r} differs")
            count += 1
        if len(new) != count:
            raise SystemExit(f"{target}: {len(new)} keys instead of {count}")
    return count


def make_plyvel(path: Path) -> None:
    with closing(plyvel.DB(str(path), create_if_missing=True)) as db:
        for number in range(1000):
            db.put(b"key %04d" % number, b"value %d" % number)


def make_dbm(path: Path) -> None:
    with dbm.dumb.open(str(path), "n") as db:
        for number in range(1000):
            db[b"key %04d" % number] = b"value %d" % number


def make_sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, city TEXT NOT NULL)")
        db.execute("CREATE INDEX by_city ON person (city)")
        people = [("Ana", "Porto"), ("Bo", "Oslo"), ("Çelik", "İzmir"), ("Dora", "Oslo")]
        db.executemany("INSERT INTO person (name, city) VALUES (?, ?)", people)


MOVES = {"plyvel": from_plyvel, "sqlite3": from_sqlite, "dbm": from_dbm}


def main(place: Path) -> None:
    for kind, make in (("plyvel", make_plyvel), ("sqlite3", make_sqlite), ("dbm", make_dbm)):
        if kind == "plyvel" and plyvel is None:
            print("plyvel: not installed")
            continue
        make(place / kind)
        print(f"{kind}: {MOVES[kind](place / kind, place / f'from {kind}'):,} pairs, all the same")
    with lsmkv.DB(place / "from sqlite3", read_only=True) as db:
        # SELECT name FROM person WHERE city = 'Oslo'
        for key in db.iterator(prefix=b"person.city/Oslo\0", include_value=False):
            row = json.loads(db.get(b"person/" + key.partition(b"\0")[2], b"null"))
            print("in Oslo:", row["name"])


if __name__ == "__main__":
    if len(sys.argv) > 3:
        count = MOVES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
        print(f"{count:,} pairs, all the same")
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory))
