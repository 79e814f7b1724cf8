"""Verifying a version: sound shards are called sound, and any damage is found and named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.env.local import LocalEnv
from lsmkv.options import KIB
from lsmkv.shards import ShardEntry, VersionDocument
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.retrying import RetryingObjects
from lsmkv.shards.verify import VersionSurvey, verify_version
from lsmkv.shards.version import version_name

PAIRS = [(b"%06d" % n, b"value %d" % n * 10) for n in range(3000)]


@pytest.fixture
def url(tmp_path: Path) -> Path:
    path = tmp_path / "set"
    lsmkv.bulk.build(
        PAIRS, path, shards=2, table_bytes=64 * KIB, block_size=4 * KIB, compression="none"
    )
    return path


def verify(url: Path) -> VersionSurvey:
    with lsmkv.shards.open(url) as s:
        return s.verify()


def files_of(url: Path, shard: int, pattern: str) -> list[Path]:
    with lsmkv.shards.open(url) as s:
        return sorted((url / s.document.shards[shard].path).glob(pattern))


def told(found: VersionSurvey, shard: int) -> dict[str, list[str]]:
    """The problems and remarks of a shard's files."""
    return {
        file.name: [problem.reason for problem in file.problems] + file.remarks
        for file in found.shards[shard].files
        if file.problems or file.remarks
    }


def restate(url: Path, change: Callable[[ShardEntry], ShardEntry]) -> None:
    """Have the version say something else of its second shard."""
    with lsmkv.shards.open(url) as s:
        document: VersionDocument = s.document
    shards = (document.shards[0], change(document.shards[1]))
    name = version_name(document.number)
    (url / name).write_bytes(document._replace(shards=shards).encode())


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
            assert any("SHA-256" in reason for reason in told(found, 1)[file.name])
        file.write_bytes(sound)
    assert verify(url).severity == 0


@pytest.mark.parametrize("name", ["META", "CURRENT", "MANIFEST-000001", "000002.ldb"])
def test_a_missing_object_is_named(url: Path, name: str) -> None:
    (file,) = files_of(url, 0, name)
    file.unlink()
    found = verify(url)
    assert (found.shards[0].severity, found.shards[1].severity) == (2, 0)
    assert told(found, 0)[name] == ["missing"]


def test_an_object_of_another_size_is_named(url: Path) -> None:
    table = files_of(url, 0, "*.ldb")[0]
    data = table.read_bytes()
    table.write_bytes(data + b"more")
    (reason, *_) = [r for r in told(verify(url), 0)[table.name] if "version states" in r]
    assert f"{len(data) + 4} bytes, but the version states {len(data)}" in reason


def test_a_leftover_is_a_remark(url: Path) -> None:
    (files_of(url, 0, "META")[0].parent / "note.txt").write_bytes(b"?")
    found = verify(url)
    assert found.severity == 1
    assert told(found, 0) == {"note.txt": ["left over: the version does not name it"]}


def test_meta_must_repeat_what_the_files_hold(url: Path) -> None:
    """META of another shard, as the version states it: each is sound by itself."""
    with lsmkv.shards.open(url) as s:
        other = s.document.shards[0].meta
    data = files_of(url, 0, "META")[0].read_bytes()
    files_of(url, 1, "META")[0].write_bytes(data)
    restate(url, lambda entry: entry._replace(meta=other))
    reasons = told(verify(url), 1)["META"]
    assert any("its bytes of 000002.ldb at" in reason for reason in reasons)


def test_the_number_of_pairs_must_be_what_the_version_states(url: Path) -> None:
    restate(url, lambda entry: entry._replace(pairs=entry.pairs + 1))
    found = verify(url)
    assert found.severity == 2
    (problem,) = found.shards[1].problems
    assert "but the version states" in problem


def test_keys_must_be_in_the_range_of_their_shard(url: Path) -> None:
    restate(url, lambda entry: entry._replace(first=entry.first + b"x"))
    (problem,) = verify(url).shards[1].problems
    assert "beyond the shard's range" in problem
    restate(url, lambda entry: entry._replace(first=b"000001"))
    (problem, *_) = verify(url).shards[0].problems
    assert "beyond the shard's range" in problem


class Unlisted(LocalObjects):
    """A store that lists nothing, as a web server."""

    def list(self, prefix: str) -> list[object]:  # type: ignore[override]
        raise OSError(95, "no listing", prefix)


def test_a_store_that_lists_nothing_is_asked_for_each_object(url: Path) -> None:
    with lsmkv.shards.open(url) as s:
        document = s.document
    with RetryingObjects(Unlisted(LocalEnv(), str(url), False)) as objects:
        assert verify_version(objects, document).severity == 0
    files_of(url, 0, "000002.ldb")[0].unlink()
    with RetryingObjects(Unlisted(LocalEnv(), str(url), False)) as objects:
        found = verify_version(objects, document)
    assert told(found, 0)["000002.ldb"] == ["missing"]


def test_an_object_that_goes_meanwhile_is_missing(url: Path) -> None:
    table = files_of(url, 1, "*.ldb")[-1]

    def remove(*_: object) -> None:
        table.unlink(missing_ok=True)

    with lsmkv.shards.open(url) as s:
        assert s.verify().severity == 0
        found = s.verify(remove)
    assert "missing" in told(found, 1)[table.name]


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
