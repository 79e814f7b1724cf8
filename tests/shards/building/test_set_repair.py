"""Repairing shard sets: the sound shards, and what the damaged ones keep, in a new set."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from damaged_folders import all_bytes
from small_sets import PAIRS, build
from stores import flip

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.bulk import set_repair
from lsmkv.shards.version import ShardEntry


@pytest.fixture
def url(tmp_path: Path) -> Path:
    build(tmp_path / "set")
    return tmp_path / "set"


def shard(url: Path, number: int) -> tuple[ShardEntry, Path]:
    (document,) = lsmkv.bulk.versions(url)
    return document.shards[number], url / document.shards[number].path


def flip_block(folder: Path) -> None:
    flip(min(folder.glob("*.ldb")), 700)


def remove_table(folder: Path) -> None:
    max(folder.glob("*.ldb")).unlink()


def remove_manifest(folder: Path) -> None:
    next(folder.glob("MANIFEST-*")).unlink()


def remove_current(folder: Path) -> None:
    (folder / "CURRENT").unlink()


def remove_meta(folder: Path) -> None:
    (folder / "META").unlink()


def cut_table(folder: Path) -> None:
    table = max(folder.glob("*.ldb"))
    os.truncate(table, table.stat().st_size // 2)


def remove_all(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


KEEP_ALL = [remove_manifest, remove_current, remove_meta]
LOSE_SOME = [flip_block, remove_table, cut_table]


@pytest.mark.parametrize("damage", [*KEEP_ALL, *LOSE_SOME, remove_all])
@pytest.mark.parametrize("number", [0, 2])
def test_a_damaged_shard_keeps_what_can_be_read(
    url: Path, tmp_path: Path, damage: Callable[[Path], None], number: int
) -> None:
    entry, folder = shard(url, number)
    damage(folder)
    before = all_bytes(url)
    planned = lsmkv.bulk.repair(url)
    assert (planned.made, [one.number for one in planned.shards]) == (None, [number])
    assert os.listdir(tmp_path) == ["set"]
    found = lsmkv.bulk.repair(url, tmp_path / "new")
    assert [(one.number, one.stated, one.kept) for one in found.shards] == [
        (one.number, one.stated, one.kept) for one in planned.shards
    ]
    (repaired,) = found.shards
    assert repaired.stated == entry.pairs
    with lsmkv.shards.open(tmp_path / "new") as new:
        assert new.verify().severity == 0
        content = dict(new)
        assert new.get(b"000000") == content.get(b"000000")
    assert content.items() <= PAIRS.items()
    assert len(PAIRS) - len(content) == repaired.stated - repaired.kept
    if damage in KEEP_ALL:
        assert content == PAIRS
    elif damage is remove_all:
        assert (repaired.kept, repaired.plan) == (0, None)
    else:
        assert (repaired.kept > 0) == (damage is not remove_table)  # a shard of one table
        assert repaired.kept < repaired.stated
    assert all_bytes(url) == before


def test_a_sound_set_is_copied(url: Path, tmp_path: Path) -> None:
    found = lsmkv.bulk.repair(url, tmp_path / "new")
    assert found.shards == ()
    assert found.made is not None
    assert found.made.shards == found.source.shards
    assert all_bytes(tmp_path / "new" / "shards") == all_bytes(url / "shards")


def test_a_target_with_objects_is_refused(url: Path, tmp_path: Path) -> None:
    build(tmp_path / "other", {b"a": b"1"}, shards=1)
    before = all_bytes(tmp_path / "other")
    for target in (url, tmp_path / "other"):
        with pytest.raises(FileExistsError):
            lsmkv.bulk.repair(url, target)
    assert all_bytes(tmp_path / "other") == before


def test_a_repair_that_cannot_publish_leaves_no_object(
    url: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip_block(shard(url, 3)[1])

    def interrupted(*_: object, **__: object) -> None:
        assert len(all_bytes(tmp_path / "new")) > 10
        raise KeyboardInterrupt

    monkeypatch.setattr(set_repair, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lsmkv.bulk.repair(url, tmp_path / "new")
    assert all_bytes(tmp_path / "new") == {}
