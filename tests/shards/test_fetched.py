"""The files of a shard, fetched whole and compared with what its version and META say."""

from __future__ import annotations

from pathlib import Path

import pytest
from verified import files_of, make_set, reasons_of, restate, verify

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.env.local import LocalEnv
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.retrying import RetryingObjects
from lsmkv.shards.verify import verify_version


@pytest.fixture
def url(tmp_path: Path) -> Path:
    return make_set(tmp_path / "set")


def test_an_object_of_another_size_is_named(url: Path) -> None:
    table = files_of(url, 0, "*.ldb")[0]
    data = table.read_bytes()
    table.write_bytes(data + b"more")
    (reason, *_) = [r for r in reasons_of(verify(url), 0)[table.name] if "version states" in r]
    assert f"{len(data) + 4} bytes, but the version states {len(data)}" in reason


def test_meta_must_repeat_what_the_files_hold(url: Path) -> None:
    """META of another shard, as the version states it: each is sound by itself."""
    with lsmkv.shards.open(url) as s:
        other = s.document.shards[0].meta
    data = files_of(url, 0, "META")[0].read_bytes()
    files_of(url, 1, "META")[0].write_bytes(data)
    restate(url, lambda entry: entry._replace(meta=other))
    reasons = reasons_of(verify(url), 1)["META"]
    assert any("its bytes of 000002.ldb at" in reason for reason in reasons)


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
    assert reasons_of(found, 0)["000002.ldb"] == ["missing"]


def test_an_object_that_goes_meanwhile_is_missing(url: Path) -> None:
    table = files_of(url, 1, "*.ldb")[-1]

    def remove(*_: object) -> None:
        table.unlink(missing_ok=True)

    with lsmkv.shards.open(url) as s:
        assert s.verify().severity == 0
        found = s.verify(remove)
    assert "missing" in reasons_of(found, 1)[table.name]
