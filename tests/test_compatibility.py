"""docs/compatibility.md: what releases wrote is read, what was public is there, the page is true.

``tests/data/make_release.py`` writes the directories ``tests/data/release-*``.
"""

from __future__ import annotations

import importlib
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.options import OPTIONS
from lsmkv.files.exchange import recognize
from lsmkv.testing import serving
from lsmkv.tools.app import GROUPS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
RELEASES = sorted((ROOT / "tests" / "data").glob("release-*"))
PAIRS = [(b"key-%04d" % number, b"value %d" % (number * number)) for number in range(400)]
STORES = ("bloom64", "fuse", "prefix", "zstd")

every_release = pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[[Path], Path]:
    """Makes a copy that can be written to."""

    def copy(path: Path) -> Path:
        return Path(shutil.copytree(path, tmp_path / path.name))

    return copy


def test_the_releases_are_there() -> None:
    assert "release-0.2.0" in [path.name for path in RELEASES]


# Files


@every_release
@pytest.mark.parametrize("name", STORES)
def test_the_filters_of_a_release_are_asked(release: Path, name: str) -> None:
    with lsmkv.DB(release / name, read_only=True, paranoid_checks=True) as db:
        assert list(db) == PAIRS
        before = db.stats()
        assert [db.get(b"key-%04d!" % number) for number in range(300)] == 300 * [None]
        asked = db.stats() - before
        assert asked.filters_asked >= 299  # the last key may lie behind the table's range
        assert asked.filter_negatives > 280


@every_release
def test_the_prefix_filters_of_a_release_are_asked(release: Path) -> None:
    with lsmkv.DB(release / "prefix", read_only=True, prefix_extractor=b"-") as db:
        assert len(list(db.iterator(prefix=b"key-"))) == len(PAIRS)
        before = db.stats()
        assert list(db.iterator(prefix=b"kez-")) == list(db.iterator(prefix=b"kex-")) == []
        assert (db.stats() - before).blocks_read == 0


@every_release
@pytest.mark.parametrize("name", [*STORES, "log"])
def test_a_store_of_a_release_is_written_to(
    release: Path, name: str, copy_of: Callable[[Path], Path]
) -> None:
    path = copy_of(release / name)
    with lsmkv.DB(path, paranoid_checks=True) as db:
        assert list(db) == PAIRS
        db.put(b"new", b"value")
        db.compact_range()
        db.check()
    with lsmkv.DB(path) as db:
        assert dict(db) == dict(PAIRS) | {b"new": b"value"}


@every_release
@pytest.mark.parametrize("name", ["bloom64", "fuse", "prefix", "log"])
def test_leveldb_reads_a_store_of_a_release(
    release: Path, name: str, copy_of: Callable[[Path], Path]
) -> None:
    plyvel = pytest.importorskip("plyvel")
    db = plyvel.DB(str(copy_of(release / name)), bloom_filter_bits=10)
    assert list(db.iterator(verify_checksums=True)) == PAIRS
    assert db.get(b"absent") is None
    db.close()


@every_release
def test_a_trace_of_a_release_is_read(release: Path) -> None:
    operations = [record.operation for record in lsmkv.read_trace(release / "trace")]
    assert len(operations) > len(PAIRS)
    assert "get" in operations


@every_release
@pytest.mark.parametrize("name", ["pairs.json", "pairs.raw"])
def test_export_files_of_a_release_are_imported(release: Path, name: str) -> None:
    with (release / name).open("rb") as stream:
        assert list(recognize(stream)[1]) == PAIRS


@every_release
def test_a_shard_set_of_a_release_is_read_and_gets_versions(
    release: Path, copy_of: Callable[[Path], Path]
) -> None:
    path = copy_of(release / "shards")
    with lsmkv.shards.open(path) as shards:
        assert list(shards) == PAIRS
        assert shards.get(b"key-0007") == b"value 49"
        shards.verify()
    assert lsmkv.bulk.build([(b"a", b"b")], path, shards=1).number == 2
    with lsmkv.shards.open(path) as shards:
        assert list(shards) == [(b"a", b"b")]
    with lsmkv.shards.open(path, version=1) as shards:
        assert shards.get(b"key-0399") == b"value 159201"


@every_release
def test_the_records_of_a_served_store_of_a_release(
    release: Path, copy_of: Callable[[Path], Path]
) -> None:
    pytest.importorskip("hiredis")
    redis = pytest.importorskip("redis")
    with serving(copy_of(release / "serve")) as server:
        client = redis.Redis(port=server.port)
        assert client.get("text") == b"hello"
        assert client.lrange("list", 0, -1) == [b"a", b"b", b"c"]
        assert client.hgetall("hash") == {b"field": b"value", b"other": b"thing"}
        assert client.smembers("set") == {b"x", b"y"}
        assert client.zrange("zset", 0, -1, withscores=True) == [(b"two", -2.0), (b"one", 1.5)]
        assert client.execute_command("BF.EXISTS", "filter", "member") == 1
        assert client.ttl("kept") > 1_000_000
        client.rpush("list", "d")
        assert client.llen("list") == 4
        client.close()


def test_records_of_a_newer_server_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("hiredis")
    with lsmkv.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"!format", b"lsmkv-serve 3")
    with pytest.raises(ValueError, match="incompatible version"), serving(tmp_path / "db"):
        pass


# The API


def public(line: str) -> Any:
    """Whether what a line of ``names.txt`` names is there."""
    where, name = line.split(" ", 1)
    if where == "option":
        return name in OPTIONS
    if where == "command":
        return any(name in members for members in GROUPS.values())
    try:
        module = importlib.import_module(where)
    except ImportError:
        pytest.importorskip("matplotlib" if where == "lsmkv.plot" else "hiredis")
        raise
    top, _, member = name.partition(".")
    return top in module.__all__ and (not member or hasattr(getattr(module, top), member))


@every_release
def test_what_a_release_had_public_is_there(release: Path) -> None:
    lines = (release / "names.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 500
    assert [line for line in lines if not public(line)] == []


@pytest.mark.parametrize(
    "line", ["lsmkv NoSuch", "lsmkv DB.no_such", "option no_such", "command no-such"]
)
def test_a_name_that_is_gone_is_noticed(line: str) -> None:
    assert not public(line)


# The page


def test_the_tests_that_the_page_names_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?::\s+(test_\w+))?`", PAGE)
    assert len(named) > 10
    for path, test in named:
        assert (ROOT / path).is_file(), path
        if test:
            assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), test
    promises = re.findall(r"(?ms)^- (.*?)(?=^- |^$)", PAGE.partition("\n## Pythons")[0])
    assert len(promises) > 20
    assert [one for one in promises if "Tests: `tests/" not in " ".join(one.split())] == []


def test_the_page_names_the_pythons_that_are_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = set(re.findall(r"Python :: (3\.\d+)\b", "\n".join(project["classifiers"])))
    named = re.findall(r"(?m)^\| (3\.\d+) \|", PAGE)
    assert supported
    assert supported <= set(named)
    assert project["requires-python"] == f">={named[0]}"


def test_the_page_names_the_public_modules() -> None:
    named = set(re.findall(r"`(lsmkv(?:\.\w+)?)`", PAGE.partition("## The API")[2]))
    for release in RELEASES:
        lines = (release / "names.txt").read_text(encoding="utf-8").splitlines()
        modules = {line.split(" ")[0] for line in lines} - {"option", "command"}
        assert modules <= named
