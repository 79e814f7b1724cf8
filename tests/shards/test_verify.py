"""Verifying a version: sound shards are called sound, and any damage is found and named."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from verified import PAIRS, files_of, make_set, reasons_of, restate, verify

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.shards.remote.objects.local import LocalObjects


@pytest.fixture
def url(tmp_path: Path) -> Path:
    return make_set(tmp_path / "set")


def test_a_sound_version_is_sound(url: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    with lsmkv.shards.open(url) as s:
        before = s.stats().requests.total.requests
        found = s.verify(lambda *call: calls.append(call))
        objects = list(s.document.objects())
        # One for each object, and a listing for each shard.
        assert s.stats().requests.total.requests - before == len(objects) + 2
        assert calls[-1] == (s.document.bytes, s.document.bytes, "shard 1")
    assert found.severity == 0
    assert [shard.severity for shard in found.shards] == [0, 0]
    tables = [table for shard in found.shards for table in shard.tables]
    assert len(tables) > 4
    assert sum(table.entries for table in tables) == len(PAIRS)


def test_every_flipped_byte_is_found_in_its_file(url: Path) -> None:
    rng = random.Random(1)
    for file in files_of(url, 1, "*"):
        sound = file.read_bytes()
        for at in {0, len(sound) - 1, rng.randrange(len(sound))}:
            damaged = bytearray(sound)
            damaged[at] ^= 1 << rng.randrange(8)
            file.write_bytes(damaged)
            with lsmkv.shards.open(url) as s:
                found = s.verify()
            assert found.severity == 2
            assert found.shards[0].severity == 0
            assert any("SHA-256" in reason for reason in reasons_of(found, 1)[file.name])
        file.write_bytes(sound)
    assert verify(url).severity == 0


@pytest.mark.parametrize("name", ["META", "CURRENT", "MANIFEST-000001", "000002.ldb"])
def test_a_missing_object_is_named(url: Path, name: str) -> None:
    (file,) = files_of(url, 0, name)
    file.unlink()
    found = verify(url)
    assert (found.shards[0].severity, found.shards[1].severity) == (2, 0)
    assert reasons_of(found, 0)[name] == ["missing"]


def test_a_leftover_is_a_remark(url: Path) -> None:
    (files_of(url, 0, "META")[0].parent / "note.txt").write_bytes(b"?")
    found = verify(url)
    assert found.severity == 1
    assert reasons_of(found, 0) == {"note.txt": ["left over: the version does not name it"]}


def test_the_number_of_pairs_must_be_what_the_version_states(url: Path) -> None:
    restate(url, lambda entry: entry._replace(pairs=entry.pairs + 1))
    found = verify(url)
    assert found.severity == 2
    (problem,) = found.shards[1].problems
    assert "but the version states" in problem


def test_keys_must_be_in_the_range_of_their_shard(url: Path) -> None:
    restate(url, lambda entry: entry._replace(first=entry.first + b"x"))
    (problem,) = verify(url).shards[1].problems
    assert "outside the shard's range" in problem
    restate(url, lambda entry: entry._replace(first=b"000001"))
    (problem, *_) = verify(url).shards[0].problems
    assert "outside the shard's range" in problem


def test_a_failing_store_is_no_verdict(url: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, name: str) -> bytes:
        raise OSError(22, "refused", name)

    with lsmkv.shards.open(url) as s:
        monkeypatch.setattr(LocalObjects, "get", fail)
        with pytest.raises(lsmkv.IOError, match="refused"):
            s.verify()


def test_a_closed_reader_verifies_nothing(url: Path) -> None:
    with lsmkv.shards.open(url) as s:
        pass
    with pytest.raises(lsmkv.ClosedError):
        s.verify()


def test_an_empty_version_is_sound(tmp_path: Path) -> None:
    lsmkv.bulk.build([], tmp_path / "empty")
    assert verify(tmp_path / "empty").severity == 0
