"""What users do with versions: list them, remove old ones, compare them."""

from __future__ import annotations

import errno
from contextlib import closing
from pathlib import Path

import pytest

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.building.diff import Change, PairChange

OLD = [(b"ant", b"1"), (b"bee", b"2"), (b"cat", b"3")]
NEW = [(b"ant", b"1"), (b"cat", b"4"), (b"dog", b"5")]


@pytest.fixture
def url(tmp_path: Path) -> Path:
    for pairs in (OLD, NEW, NEW):
        lsmkv.bulk.build(pairs, tmp_path / "set", shards=2)
    return tmp_path / "set"


def test_versions_are_listed_from_the_oldest(url: Path) -> None:
    found = lsmkv.bulk.versions(url)
    assert [version.number for version in found] == [1, 2, 3]
    with lsmkv.shards.open(url) as s:
        assert s.document == found[-1]


def test_nothing_published_is_an_empty_list(tmp_path: Path) -> None:
    assert lsmkv.bulk.versions(tmp_path) == []


def test_a_missing_directory_is_a_typed_error(tmp_path: Path) -> None:
    for call in (lsmkv.bulk.versions, lsmkv.bulk.prune, lsmkv.bulk.diff):
        with pytest.raises(lsmkv.IOError) as caught:
            list(call(tmp_path / "nothing"))
        assert caught.value.errno == errno.ENOENT


def test_a_damaged_version_is_named(url: Path) -> None:
    document = url / "versions" / "00000002.json"
    document.write_bytes(document.read_bytes()[:-1])
    with pytest.raises(lsmkv.CorruptionError, match=r"00000002\.json"):
        lsmkv.bulk.versions(url)


def test_prune_keeps_the_newest_and_their_files(url: Path) -> None:
    planned = lsmkv.bulk.prune(url, keep=1, grace=0, dry_run=True)
    assert len(lsmkv.bulk.versions(url)) == 3
    assert lsmkv.bulk.prune(url, keep=1, grace=0) == planned
    assert (planned.versions, planned.kept_versions) == ((1, 2), (3,))
    with lsmkv.shards.open(url) as s:
        assert dict(s) == dict(NEW)
        assert s.verify().severity == 0
        assert s.versions() == [3]


def test_prune_leaves_what_is_young(url: Path) -> None:
    assert lsmkv.bulk.prune(url, keep=1).versions == ()
    assert len(lsmkv.bulk.versions(url)) == 3


def test_prune_sweeps_what_a_killed_worker_was_writing(url: Path) -> None:
    cut = url / "shards" / "killed" / "0000-1" / ".put-1"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(b"part of a table")
    lsmkv.bulk.prune(url, grace=3600)
    lsmkv.bulk.prune(url, grace=0, dry_run=True)
    assert cut.exists()
    lsmkv.bulk.prune(url, grace=-1)
    assert not (url / "shards" / "killed").exists()


def test_diff_tells_what_became_of_each_key(url: Path) -> None:
    assert list(lsmkv.bulk.diff(url, 1, 2)) == [
        PairChange(Change.REMOVED, b"bee", b"2", None),
        PairChange(Change.CHANGED, b"cat", b"3", b"4"),
        PairChange(Change.ADDED, b"dog", None, b"5"),
    ]
    assert [change.kind for change in lsmkv.bulk.diff(url, 2, 1)] == [
        Change.ADDED,
        Change.CHANGED,
        Change.REMOVED,
    ]


def test_diff_compares_the_two_newest_by_default(url: Path) -> None:
    assert list(lsmkv.bulk.diff(url)) == []
    assert len(list(lsmkv.bulk.diff(url, 1))) == 3
    assert len(list(lsmkv.bulk.diff(url, None, 2))) == 3
    assert list(lsmkv.bulk.diff(url, 2, 2)) == []


def test_diff_can_be_left_early(url: Path) -> None:
    with closing(lsmkv.bulk.diff(url, 1, 2)) as changes:
        assert next(changes).key == b"bee"


def test_diff_needs_two_versions(url: Path, tmp_path: Path) -> None:
    with pytest.raises(lsmkv.NotFoundError, match="no version before 1"):
        next(lsmkv.bulk.diff(url, None, 1))
    with pytest.raises(lsmkv.NotFoundError, match="there is no version 9"):
        next(lsmkv.bulk.diff(url, 9, 1))
    with pytest.raises(lsmkv.NotFoundError, match="no version of a shard set"):
        next(lsmkv.bulk.diff(tmp_path))
