"""Files of tables that were exchanged: no read answers from the wrong one.

The tables overlap, so a table that answers for another shows values that were overwritten, or
hides keys.  ``docs/how/read.md`` says how an exchange is found.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stores import settle

import lsmkv
from lsmkv import DB, CorruptionError, SharedDB

Handle = DB | SharedDB
KEYS = [b"key%03d" % number for number in range(120)]
ABSENT = [key + b"x" for key in KEYS[::7]]
NEWEST = dict.fromkeys(KEYS, b"value 2")
TABLES = 3
LAYOUTS: dict[str, dict[str, Any]] = {
    "block": {"filter_layout": "block"},
    "table": {"filter_policy": lsmkv.Bloom64Policy(10), "filter_layout": "table"},
    "both": {"filter_layout": "both"},
    "none": {"bloom_filter_bits": 0},
}
PAIRS = list(itertools.combinations(range(TABLES), 2))


def fill(db: DB, *, equal: bool) -> None:
    """Three tables with the same keys, whose files are of equal size or all differ."""
    for turn in range(TABLES):
        for key in KEYS:
            db.put(key, b"value %d" % turn)
        if not equal:
            for more in range(turn):
                db.put(b"more %d" % more, bytes(500))
        db.flush()
    settle(db)


def table_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.ldb"))


def exchange(one: Path, other: Path) -> None:
    aside = one.with_suffix(".aside")
    os.rename(one, aside)
    os.rename(other, one)
    os.rename(aside, other)


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param] | {"compression": None, "seek_compaction": False}


@pytest.fixture(scope="module", params=[True, False], ids=["equal sizes", "different sizes"])
def equal(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, layout: dict[str, Any], equal: bool) -> Path:
    path = tmp_path_factory.mktemp("exchanged") / "db"
    with DB(path, create_if_missing=True, **layout) as db:
        fill(db, equal=equal)
    sizes = [file.stat().st_size for file in table_files(path)]
    assert (len(sizes), len(set(sizes))) == (TABLES, 1 if equal else TABLES)
    return path


READS: dict[str, Callable[[Handle], object]] = {
    "absent": lambda db: [db.get(key) for key in ABSENT],
    "may_contain": lambda db: [db.may_contain(key) for key in KEYS],
    "get": lambda db: {key: db.get(key) for key in KEYS},
    "multi_get": lambda db: db.multi_get(KEYS),
    "scan": lambda db: dict(db.iterator(prefix=b"key")),
    "scan back": lambda db: dict(db.iterator(prefix=b"key", reverse=True)),
    "seek": lambda db: next(iter(db.iterator(start=KEYS[50]))),
}
RIGHT: dict[str, object] = {
    "absent": [None] * len(ABSENT),
    "may_contain": [True] * len(KEYS),
    "get": NEWEST,
    "multi_get": list(NEWEST.values()),
    "scan": NEWEST,
    "scan back": NEWEST,
    "seek": (KEYS[50], NEWEST[KEYS[50]]),
}


def damage_found(db: Handle, names: list[str]) -> set[str]:
    """The tables that reads refuse; whatever they return is right."""
    found: set[str] = set()
    for name in names:
        try:
            assert (name, READS[name](db)) == (name, RIGHT[name])
        except CorruptionError as error:
            found.add(os.path.basename(error.path or ""))
    return found


@pytest.mark.parametrize("pair", PAIRS)
def test_an_exchange_before_opening_is_found(
    filled: Path,
    tmp_path: Path,
    layout: dict[str, Any],
    opening: Callable[..., Handle],
    pair: tuple[int, int],
) -> None:
    """By the first read that asks one of the tables, whichever read that is."""
    path = tmp_path / "db"
    shutil.copytree(filled, path)
    files = table_files(path)
    exchange(files[pair[0]], files[pair[1]])
    wrong = {files[at].name for at in pair}
    with opening(path, **layout) as db:
        for name in READS:
            assert damage_found(db, [name]) <= wrong
        assert damage_found(db, ["absent"])
        assert damage_found(db, ["scan"])
        assert {os.path.basename(one.path or "") for one in db.verify()} == wrong


@pytest.mark.parametrize("pair", PAIRS)
def test_an_exchange_of_tables_that_this_process_wrote_is_found(
    tmp_path: Path, layout: dict[str, Any], equal: bool, pair: tuple[int, int]
) -> None:
    """Before it has opened them."""
    path = tmp_path / "db"
    with DB(path, create_if_missing=True, **layout) as db:
        fill(db, equal=equal)
        assert db.stats().tables_opened == 0
        files = table_files(path)
        exchange(files[pair[0]], files[pair[1]])
        assert damage_found(db, list(READS)) <= {files[at].name for at in pair}
        assert damage_found(db, ["scan"])


@pytest.mark.parametrize("pair", PAIRS)
def test_tables_that_are_open_answer_after_an_exchange(
    filled: Path, tmp_path: Path, layout: dict[str, Any], pair: tuple[int, int]
) -> None:
    """From the files that they were opened from; a table that is opened later is checked."""
    path = tmp_path / "db"
    shutil.copytree(filled, path)
    files = table_files(path)
    with DB(path, **layout) as db:
        assert damage_found(db, list(READS)) == set()
        exchange(files[pair[0]], files[pair[1]])
        assert damage_found(db, list(READS)) == set()
    with DB(path, **layout) as db:
        assert damage_found(db, ["scan"])
