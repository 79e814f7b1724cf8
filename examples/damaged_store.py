"""Damages a store in ten ways, and shows what a repair finds and keeps.

Run it as `python examples/damaged_store.py [entries]`; 10,000 entries by default.  For each way it
prints in how many files damage was found, how many entries were set aside since a lost block may
have replaced them, of how many keys the last value is lost, and how many keys it answers wrongly.
The last column is what a repair is about: a value may be lost, but values of different times must
not be mixed, and no deleted key may come back.  Where the newest writes are lost, the store is as
it was before them (``plan.as_of``), and is compared with that moment.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import lsmkv

Content = dict[bytes, bytes]
Write = tuple[bytes, bytes | None]
"""A key with its new value, or with None if it is deleted."""


def make_store(path: Path, entries: int) -> list[Write]:
    """Make a store with several levels, overwrites, deletions, and writes in its log."""
    writes: list[Write] = []
    rng = random.Random(1)
    with lsmkv.DB(
        path, create_if_missing=True, write_buffer_size=128 * 1024, max_file_size=64 * 1024
    ) as db:
        for number in range(entries):
            if number == entries - min(entries // 20, 1000):
                db.flush()  # the following writes stay in the log
            key = b"user%06d" % rng.randrange(entries // 3)
            if rng.random() < 0.2:
                db.delete(key)
                writes.append((key, None))
            else:
                value = b"%d" % number + rng.randbytes(50)
                db.put(key, value)
                writes.append((key, value))
    return writes


def content_after(writes: list[Write]) -> Content:
    """What a store holds after these writes."""
    return {key: value for key, value in dict(writes).items() if value is not None}


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def tables(path: Path) -> list[Path]:
    return sorted(path.glob("*.ldb"))


def largest(path: Path, pattern: str) -> Path:
    return max(path.glob(pattern), key=lambda file: file.stat().st_size)


def manifest(path: Path) -> Path:
    return path / (path / "CURRENT").read_text(encoding="ascii").strip()


def a_byte_of_each_table(path: Path) -> None:
    for table in tables(path):
        flip(table, table.stat().st_size // 3)


def a_byte_near_the_end_of_each_table(path: Path) -> None:
    for table in tables(path):
        flip(table, table.stat().st_size * 19 // 20)


def the_footers(path: Path) -> None:
    for table in tables(path):
        flip(table, table.stat().st_size - 1)


def half_a_table(path: Path) -> None:
    table = largest(path, "*.ldb")
    os.truncate(table, table.stat().st_size // 2)


def a_page_of_zeros(path: Path) -> None:
    table = largest(path, "*.ldb")
    data = bytearray(table.read_bytes())
    data[8192:12288] = bytes(4096)
    table.write_bytes(data)


def a_table(path: Path) -> None:
    largest(path, "*.ldb").unlink()


def current(path: Path) -> None:
    (path / "CURRENT").unlink()


def current_and_manifest(path: Path) -> None:
    manifest(path).unlink()
    (path / "CURRENT").unlink()


def the_manifests_middle(path: Path) -> None:
    flip(manifest(path), manifest(path).stat().st_size // 2)


def a_byte_of_the_log(path: Path) -> None:
    log = largest(path, "*.log")
    flip(log, log.stat().st_size // 2)


WAYS: list[tuple[str, Callable[[Path], None]]] = [
    ("a byte of each table flipped", a_byte_of_each_table),
    ("a byte near each table's end flipped", a_byte_near_the_end_of_each_table),
    ("every footer spoiled", the_footers),
    ("a table cut in half", half_a_table),
    ("a page of a table zeroed", a_page_of_zeros),
    ("a table missing", a_table),
    ("CURRENT missing", current),
    ("CURRENT and MANIFEST missing", current_and_manifest),
    ("the MANIFEST's middle flipped", the_manifests_middle),
    ("the log's middle flipped", a_byte_of_the_log),
]


def main(entries: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        pristine = Path(place, "pristine")
        writes = make_store(pristine, entries)
        content = content_after(writes)
        print(f"{len(content):,} keys in {len(tables(pristine))} tables and a log")
        print(f"{'damage':<38}{'files damaged':>14}{'set aside':>11}{'lost':>7}{'wrong':>7}")
        for what, damage in WAYS:
            path = Path(place, "store")
            repaired = Path(place, "repaired")
            shutil.copytree(pristine, path)
            damage(path)
            plan = lsmkv.repair_db(path, into=repaired)
            damaged = {problem["file"] for problem in plan.to_dict()["problems"]}
            with lsmkv.DB(repaired) as db:
                db.check()
                after = dict(db)
            then = content_after(writes[: plan.as_of])
            wrong = sum(then.get(key) != value for key, value in after.items())
            lost = sum(after.get(key) != value for key, value in content.items())
            print(f"{what:<38}{len(damaged):>14}{plan.stale:>11,}{lost:>7,}{wrong:>7}")
            shutil.rmtree(path)
            shutil.rmtree(repaired)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
