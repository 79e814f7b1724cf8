"""``lsmkv export --skip-damaged``: what can be read, and never an old value as if it were new."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from commands import Done, fails, lsm
from stores import flip, log_of, put_numbered

import lsmkv
from lsmkv.tools.salvaged import open_salvaged

SMALL: dict[str, Any] = {"block_size": 512, "compression": None}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A table of old values on a deep level, one of newer values over its middle, and a log."""
    path = tmp_path / "store"
    with lsmkv.DB(path, create_if_missing=True, **SMALL) as db:
        put_numbered(db, b"k%04d", range(300), b"old" * 10)
        db.flush()
        db.compact_range()
        put_numbered(db, b"k%04d", range(100, 200), b"new" * 10)
        db.flush()
        db.put(b"x", b"1")
    return path


def exported(done: Done[str]) -> dict[str, str]:
    records = [json.loads(line) for line in done.out.splitlines()]
    return {record["key"]: record["value"] for record in records}


def newest_table(path: Path) -> Path:
    return sorted(path.glob("*.ldb"))[-1]


def export(path: Path, *options: str | Path) -> Done[str]:
    return lsm("export", path, "--skip-damaged", *options)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, which is empty at the end."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_a_sound_store_is_exported_as_without(store: Path, temporary: Path) -> None:
    done = export(store)
    assert (done.status, done.out) == (0, lsm("export", store).out)
    assert "skipped" not in done.err
    assert os.listdir(temporary) == []


def test_what_can_be_read_is_exported_and_the_rest_is_named(store: Path, temporary: Path) -> None:
    before = exported(lsm("export", store))
    flip(newest_table(store), 600)
    fails(lsm("export", store, "--output", store.parent / "none"), "next: lsmkv rescue")
    done = export(store)
    assert done.status == 3
    after = exported(done)
    assert 270 < len(after) < len(before)
    assert after.items() <= before.items()
    (line,) = [line for line in done.err.splitlines() if "ldb" in line]
    name = newest_table(store).name
    assert line.startswith(f"lsmkv: skipped: {name}: block checksum mismatch, keys from 'k01")
    assert "entries that what is lost may have replaced" in done.err
    assert os.listdir(temporary) == []


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_no_old_value_takes_the_place_of_a_lost_one(store: Path, share: float) -> None:
    table = newest_table(store)
    whole = table.read_bytes()
    kept = int(share * len(whole))
    table.write_bytes(whole[:kept] + bytes(len(whole) - kept))
    found = exported(export(store))
    assert all(found.get(f"k{n:04d}", "new" * 10) == "new" * 10 for n in range(110, 190))
    assert found["k0299"] == "old" * 10
    assert found["x"] == "1"


def test_a_store_of_which_nothing_is_lost_is_complete(store: Path) -> None:
    before = lsm("export", store).out
    (store / "CURRENT").unlink()
    done = export(store)
    assert (done.status, done.out) == (0, before)


def test_a_lost_part_of_a_log_never_leaves_an_old_value(store: Path) -> None:
    with lsmkv.DB(store) as db:
        for number in range(20):
            db.put(b"k0001", b"%d" % number)
            db.put(b"log%04d" % number, b"v")
    log = log_of(store)
    broken = bytearray(log.read_bytes())
    broken[300:303] = b"???"  # more than one bit, which a checksum would show
    log.write_bytes(broken)
    done = export(store)
    assert done.status == 3
    assert f"skipped: {log.name}: " in done.err
    assert "are missing" in done.err
    assert "entries that what is lost may have replaced" in done.err
    found = exported(done)
    assert ("log0019" in found) != ("k0299" in found)


def test_a_flipped_bit_loses_nothing(store: Path) -> None:
    before = lsm("export", store).out
    flip(newest_table(store), 600, 1)
    assert lsm("export", store, "--output", store.parent / "none").status == 2
    done = export(store)
    assert (done.status, done.out) == (0, before)
    assert "skipped" not in done.err


def test_without_a_manifest_deleted_keys_may_be_back(store: Path) -> None:
    for manifest in store.glob("MANIFEST-*"):
        manifest.unlink()
    done = export(store)
    assert done.status == 3
    assert "keys that were deleted may be in the export" in done.err
    assert exported(done)["k0150"] == "new" * 10


def test_neighboring_ranges_are_one_and_many_are_counted(store: Path) -> None:
    with lsmkv.DB(store, **SMALL) as db:
        db.compact_range()
    table = newest_table(store)
    with lsmkv.files.Table(table) as read:
        places = [block.place for block in read.data_blocks()]
    assert len(places) > 20
    broken = bytearray(table.read_bytes())
    for at in (2, 3, 4, 9):
        broken[places[at].offset + 20] ^= 0xFF
    table.write_bytes(broken)
    done = export(store)
    assert done.status == 3
    assert done.err.count("block checksum mismatch, keys from ") == 2
    with open_salvaged(str(store)) as (_, skipped):
        assert len(skipped.ranges) == 4


def test_json_has_all_of_it(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.raw"
    done = export(store, "--output", file, "--format", "raw", "--json")
    assert json.loads(done.out)["skipped"] == {
        "ranges": [],
        "stale": 0,
        "logs": [],
        "guessed": False,
    }
    flip(newest_table(store), 600)
    done = export(store, "--output", file, "--format", "raw", "--json", "--force")
    assert done.status == 3
    skipped = json.loads(done.out)["skipped"]
    assert skipped["ranges"][0]["file"] == newest_table(store).name
    assert skipped["stale"] > 0
    records = json.loads(done.out)["records"]
    assert lsm("import", tmp_path / "new", file, "--create").status == 0
    assert lsm("count", tmp_path / "new").out == f"{records}\n"
    assert "skipped" not in json.loads(
        lsm("export", tmp_path / "new", "-o", file, "--force", "--json").out
    )


def test_the_damaged_store_is_not_changed(store: Path) -> None:
    flip(newest_table(store), 600)
    before = {one.name: one.read_bytes() for one in store.iterdir()}
    export(store)
    assert {one.name: one.read_bytes() for one in store.iterdir()} == before


def test_a_shard_set_is_refused(url: Path) -> None:
    fails(export(url), "--skip-damaged is for stores")


def test_a_store_that_is_open_is_refused(store: Path) -> None:
    with lsmkv.DB(store):
        fails(export(store), "in use")
