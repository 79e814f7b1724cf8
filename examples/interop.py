"""The same directory, opened in turn by lsmkv and by C++ LevelDB (through plyvel).

    python examples/interop.py [keys]

Shows three things: LevelDB reads what lsmkv wrote and compacted; lsmkv reads what LevelDB wrote;
and for the same writes, uncompressed, both write the same table, byte for byte.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lsmkv

try:
    import plyvel
except ImportError:
    sys.exit("this example compares with LevelDB: pip install plyvel")


def pairs(count: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys in random order, with values that compress to about a half."""
    for number in range(count):
        scattered = number * 7919 % count
        yield b"key-%012d" % scattered, (b"%d " % number) * 6 + bytes(50)


def check(db: lsmkv.DB | plyvel.DB, expected: dict[bytes, bytes]) -> None:
    """Compare everything: forward, backward and one by one."""
    in_order = sorted(expected.items())
    assert list(db.iterator()) == in_order
    assert list(db.iterator(reverse=True)) == in_order[::-1]
    assert all(db.get(key) == value for key, value in expected.items())
    assert db.get(b"key-no-such") is None


def main(count: int, work: Path) -> None:
    """Write with one, read with the other."""
    expected = dict(pairs(count))

    with lsmkv.DB(work / "ours", create_if_missing=True) as db:
        for key, value in pairs(count):
            db.put(key, value)
        db.compact_range()
    theirs = plyvel.DB(str(work / "ours"), bloom_filter_bits=10)
    check(theirs, expected)
    theirs.close()
    print(f"LevelDB read {count:,} keys that lsmkv wrote and compacted")

    theirs = plyvel.DB(str(work / "theirs"), create_if_missing=True, bloom_filter_bits=10)
    for key, value in pairs(count):
        theirs.put(key, value)
    theirs.compact_range()
    theirs.close()
    with lsmkv.DB(work / "theirs") as db:
        db.check()
        check(db, expected)
    print(f"lsmkv read {count:,} keys that LevelDB wrote and compacted")

    with lsmkv.DB(work / "a", create_if_missing=True, compression=None) as db:
        for key, value in sorted(expected.items())[:10_000]:
            db.put(key, value)
        db.compact_range()
    theirs = plyvel.DB(
        str(work / "b"), create_if_missing=True, compression=None, bloom_filter_bits=10
    )
    for key, value in sorted(expected.items())[:10_000]:
        theirs.put(key, value)
    theirs.compact_range()
    theirs.close()
    (table_a,) = (work / "a").glob("*.ldb")
    (table_b,) = (work / "b").glob("*.ldb")
    assert table_a.read_bytes() == table_b.read_bytes()
    print(f"the same writes, uncompressed: both made the same {table_a.stat().st_size:,} bytes")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, Path(directory))
