"""A build from end to end, on directories: what is published, by whomever it is made."""

from __future__ import annotations

import errno
import gc
import json
import random
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from bulk_pairs import Pairs, read, some

import lsmkv
import lsmkv.bulk
import lsmkv.shards
from lsmkv.engine.options import KIB, MIB
from lsmkv.files.exchange import json_line
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.retrying import RetryingObjects
from lsmkv.shards.version import ShardEntry, VersionDocument


def contents(document: VersionDocument) -> list[tuple[Any, ...]]:
    """What a build decides: all but names that carry an attempt."""

    def of(entry: ShardEntry) -> tuple[Any, ...]:
        return entry.first, entry.pairs, entry.meta, entry.files

    return [of(entry) for entry in document.shards]


def test_the_set_has_all_pairs(tmp_path: Path) -> None:
    parts = [some(3000, n) for n in range(4)]
    document = lsmkv.bulk.build(parts, tmp_path, shards=5, table_bytes=32 * KIB)
    latest = dict(pair for part in parts for pair in part)
    assert read(tmp_path) == sorted(latest.items())
    assert (document.number, document.pairs, len(document.shards)) == (1, len(latest), 5)
    assert document.filter_policy == "lsmkv.BinaryFuse8"
    sizes = [shard.pairs for shard in document.shards]
    assert max(sizes) < 1.2 * min(sizes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shards", "versions"]


def test_each_build_is_a_version(tmp_path: Path) -> None:
    for n in range(1, 4):
        assert lsmkv.bulk.build([(b"k", b"%d" % n)], tmp_path).number == n
    assert [read(tmp_path, n) for n in (1, 2, 3)] == [[(b"k", b"%d" % n)] for n in (1, 2, 3)]
    with pytest.raises(lsmkv.ConflictError):
        lsmkv.bulk.build([(b"k", b"late")], tmp_path, after=2)
    assert read(tmp_path) == [(b"k", b"3")]
    assert lsmkv.bulk.build([(b"k", b"4")], tmp_path, after=3).number == 4


def test_nothing_to_build(tmp_path: Path) -> None:
    document = lsmkv.bulk.build([], tmp_path, shards=3)
    assert (document.pairs, len(document.shards)) == (0, 1)
    assert read(tmp_path) == []


@pytest.mark.parametrize("memory", [MIB, 64 * MIB])
def test_memory_does_not_change_the_pairs(tmp_path: Path, memory: int) -> None:
    pairs = some(20_000)
    lsmkv.bulk.build(pairs, tmp_path, memory_limit=memory, shards=3)
    assert read(tmp_path) == sorted(dict(pairs).items())


def add(key: bytes, values: list[bytes]) -> bytes:
    return b"%d" % sum(map(int, values))


@pytest.mark.parametrize("memory", [MIB, 64 * MIB])
def test_a_merge_function_joins_values(tmp_path: Path, memory: int) -> None:
    rng = random.Random(5)
    pairs = [(b"%03d" % rng.randrange(300), b"%d" % n) for n in range(15_000)]
    sums: dict[bytes, int] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0) + int(value)
    lsmkv.bulk.build(
        [pairs[:5000], pairs[5000:]], tmp_path, merge=add, memory_limit=memory, shards=4
    )
    assert read(tmp_path) == [(key, b"%d" % total) for key, total in sorted(sums.items())]


def test_the_workers_do_not_change_a_byte(tmp_path: Path) -> None:
    parts = [some(4000, n) for n in range(5)]
    arguments: dict[str, Any] = {"shards": 3, "memory_limit": MIB}
    documents = [lsmkv.bulk.build(parts, tmp_path / "here", **arguments)]
    with ThreadPoolExecutor(3) as threads:
        documents.append(
            lsmkv.bulk.build(parts, tmp_path / "threads", executor=threads, **arguments)
        )
    with lsmkv.bulk.Workers(2) as workers:
        documents.append(
            lsmkv.bulk.build(parts, tmp_path / "workers", executor=workers, **arguments)
        )
    assert contents(documents[0]) == contents(documents[1]) == contents(documents[2])
    assert len(documents[0].shards) == 3


def test_files_of_an_export(tmp_path: Path) -> None:
    pairs = some(500)
    lines = tmp_path / "pairs.jsonl"
    lines.write_bytes(b"".join(json_line(key, value) for key, value in pairs))
    lsmkv.bulk.build(lines, tmp_path / "set")
    assert read(tmp_path / "set") == sorted(dict(pairs).items())
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"key": "a"}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl.*line 1"):
        lsmkv.bulk.build([lines, bad], tmp_path / "set")
    assert read(tmp_path / "set") == sorted(dict(pairs).items())
    assert leftovers(tmp_path / "set") == []


def leftovers(root: Path) -> list[str]:
    """Files that no version names."""
    named: set[str] = set()
    for path in (root / "versions").glob("*.json"):
        shards = json.loads(path.read_text())["shards"]
        for shard in shards:
            named |= {
                f"{shard['path']}/{file['name']}" for file in [shard["meta"], *shard["files"]]
            }
            named.add(f"versions/{path.name}")
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    return sorted(there - named)


def test_nothing_is_left_of_a_build(tmp_path: Path) -> None:
    with lsmkv.bulk.Workers(2) as workers:
        lsmkv.bulk.build([some(100), some(200)], tmp_path, shards=2, executor=workers)
    assert leftovers(tmp_path) == []


def test_a_directory_for_runs(tmp_path: Path) -> None:
    lsmkv.bulk.build(some(500), tmp_path / "set", work_url=tmp_path / "work")
    assert [path for path in (tmp_path / "work").rglob("*") if path.is_file()] == []
    assert read(tmp_path / "set") == sorted(dict(some(500)).items())


class Forgetful(Executor):
    """Loses the first attempt of every call: before it begins, or after it has ended."""

    def __init__(self) -> None:
        self.lost = 0
        self._seen: set[str] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        mark = f"{args[0].__name__} {args[1].number}"
        try:
            if mark not in self._seen:
                self._seen.add(mark)
                self.lost += 1
                if self.lost % 2:
                    fn(*args, **kwargs)
                raise OSError(errno.ECONNRESET, "the worker is gone")
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def test_lost_workers_do_not_change_a_byte(tmp_path: Path) -> None:
    parts = [some(2000, n) for n in range(4)]
    expected = lsmkv.bulk.build(parts, tmp_path / "a", shards=3)
    executor = Forgetful()
    found = lsmkv.bulk.build(parts, tmp_path / "b", shards=3, executor=executor)
    assert executor.lost == 7
    assert contents(found) == contents(expected)
    assert read(tmp_path / "b") == read(tmp_path / "a")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Makes the nth put below a place fail for good."""
    plan = {"left": -1}
    put = LocalObjects.put

    def fail(self: LocalObjects, name: str, data: bytes) -> None:
        plan["left"] -= 1
        if plan["left"] == 0:
            raise PermissionError(errno.EACCES, "no more", name)
        put(self, name, data)

    monkeypatch.setattr(LocalObjects, "put", fail)
    return plan


def failure(parts: list[Pairs], url: Path) -> lsmkv.IOError | None:
    try:
        lsmkv.bulk.build(parts, url, shards=2)
    except lsmkv.IOError as error:
        return error
    return None


def test_a_build_that_fails_leaves_the_old_version(tmp_path: Path, failing: dict[str, int]) -> None:
    lsmkv.bulk.build([(b"k", b"old")], tmp_path)
    failed = 0
    for n in range(1, 100):
        failing["left"] = n
        error = failure([[(b"k", b"new")], [(b"l", b"new")]], tmp_path)
        if error is None:
            break
        failed += 1
        assert error.errno == errno.EACCES
        assert read(tmp_path) == [(b"k", b"old")]
        assert leftovers(tmp_path) == []
    assert failed > 5
    assert read(tmp_path) == [(b"k", b"new"), (b"l", b"new")]


def test_ctrl_c_leaves_the_old_version(tmp_path: Path) -> None:
    lsmkv.bulk.build([(b"k", b"old")], tmp_path)

    def interrupt(done: int, total: int, phase: str) -> None:
        if phase == "building":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lsmkv.bulk.build([(b"k", b"new")], tmp_path, progress=interrupt)
    assert read(tmp_path) == [(b"k", b"old")]
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ECONNRESET, "cut off")])
def test_what_may_be_published_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    lsmkv.bulk.build([(b"k", b"old")], tmp_path)
    put = LocalObjects.put_if_absent

    def lose(self: LocalObjects, name: str, data: bytes) -> None:
        put(self, name, data)
        if name.endswith("2.json"):
            patched.setattr(LocalObjects, "get", unreachable)
            raise error

    def unreachable(self: LocalObjects, name: str) -> bytes:
        raise OSError(errno.ENETUNREACH, "no network", name)

    with monkeypatch.context() as patched:
        patched.setattr(LocalObjects, "put_if_absent", lose)
        with pytest.raises((KeyboardInterrupt, lsmkv.IOError)):
            lsmkv.bulk.build([(b"k", b"new")], tmp_path, limits=lsmkv.shards.Limits(attempts=1))
    assert read(tmp_path) == [(b"k", b"new")]
    assert leftovers(tmp_path) == []


def test_what_lost_a_race_is_removed(tmp_path: Path) -> None:
    def overtake(done: int, total: int, phase: str) -> None:
        if phase == "publishing":
            lsmkv.bulk.build([(b"k", b"first")], tmp_path)

    with pytest.raises(lsmkv.ConflictError):
        lsmkv.bulk.build([(b"k", b"late")], tmp_path, after=0, progress=overtake)
    assert read(tmp_path) == [(b"k", b"first")]
    assert leftovers(tmp_path) == []


def test_progress_is_reported(tmp_path: Path) -> None:
    reports: list[tuple[int, int, str]] = []
    lsmkv.bulk.build(
        [some(50), some(60)], tmp_path, shards=2, progress=lambda *step: reports.append(step)
    )
    assert reports == [
        (0, 0, "sorting"),
        (1, 1, "sorting"),
        (2, 2, "sorting"),
        (0, 2, "building"),
        (1, 2, "building"),
        (2, 2, "building"),
        (2, 2, "publishing"),
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shards": 0}, ValueError, "shards must be 1 or more"),
        ({"shards": 2.5}, TypeError, "shards must be an int"),
        ({"memory_limit": 5}, ValueError, "memory_limit"),
        ({"attempts": 0}, ValueError, "attempts"),
        ({"merge": "last"}, TypeError, "merge must be a function, not str"),
        ({"blok_size": 5}, TypeError, "did you mean 'block_size'"),
        ({"comparator": lsmkv.ReverseBytewiseComparator()}, ValueError, "bytewise"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lsmkv.bulk.build([(b"k", b"v")], tmp_path / "set", **arguments)
    assert not (tmp_path / "set").exists()


def test_a_build_that_is_too_late_does_not_begin(tmp_path: Path) -> None:
    lsmkv.bulk.build([(b"k", b"v")], tmp_path)

    def never() -> Pairs:
        raise AssertionError

    with pytest.raises(lsmkv.ConflictError, match="the current version is 1, not 0"):
        lsmkv.bulk.build(never, tmp_path, after=0)


def test_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        lsmkv.bulk.build(7, tmp_path)
    with pytest.raises(TypeError):
        lsmkv.bulk.build([(b"k", "text")], tmp_path)
    with pytest.raises(lsmkv.IOError):
        lsmkv.bulk.build(tmp_path / "nothing here.jsonl", tmp_path)


def test_connections_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[RetryingObjects] = []
    made = RetryingObjects.__init__

    def remember(self: RetryingObjects, *args: Any) -> None:
        opened.append(self)
        made(self, *args)

    monkeypatch.setattr(RetryingObjects, "__init__", remember)
    lsmkv.bulk.build([some(10), some(20)], tmp_path, shards=2)
    gc.collect()
    assert len(opened) > 5
    for objects in opened:
        with pytest.raises(lsmkv.ClosedError):
            objects.list("")
