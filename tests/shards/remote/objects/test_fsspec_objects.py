"""What is special about file systems of fsspec; the rest is in the contract's tests."""

from __future__ import annotations

import errno
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.dirfs import DirFileSystem  # noqa: E402
from fsspec.implementations.local import LocalFileSystem  # noqa: E402
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

from lsmkv.shards.remote.objects import fsspec_objects  # noqa: E402
from lsmkv.shards.remote.objects.base import ObjectStore  # noqa: E402
from lsmkv.shards.remote.objects.fsspec_objects import FsspecObjects, open_fsspec  # noqa: E402
from lsmkv.shards.remote.objects.retrying import Limits, RetryingObjects  # noqa: E402


class Told(Exception):
    """An error of some package's network."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__("reported by the network")
        self.status = status


class Watched(MemoryFileSystem):
    """A file system that raises the error that a test sets, and records the modes of writes."""

    cachable = False
    failure: BaseException | None = None

    def __init__(self, protocol: str) -> None:
        super().__init__()
        self.protocol = (protocol,)
        self.modes: list[str] = []

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> bytes:
        if self.failure is not None:
            raise self.failure
        found: bytes = super().cat_file(path, start=start, end=end, **kwargs)
        return found

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        self.modes.append(mode)
        super().pipe_file(path, value, mode=mode, **kwargs)


def watched(protocol: str = "other") -> tuple[Watched, FsspecObjects]:
    system = Watched(protocol)
    return system, FsspecObjects(system, f"/{uuid.uuid4().hex}", f"{protocol}://place")


def test_objects_are_files_below_the_url(tmp_path: Path) -> None:
    with open_fsspec(f"local://{tmp_path}/place", {}) as store:
        store.put("a/b", b"1")
        assert (tmp_path / "place/a/b").read_bytes() == b"1"
        assert [(found.name, found.size) for found in store.list("")] == [("a/b", 1)]
        assert store.list("")[0].modified == (tmp_path / "place/a/b").stat().st_mtime


def test_objects_at_the_root_of_a_file_system(tmp_path: Path) -> None:
    system = DirFileSystem(str(tmp_path), LocalFileSystem())
    store = FsspecObjects(system, "", "dir://")
    store.put("a/b", b"1")
    assert [found.name for found in store.list("")] == ["a/b"]
    assert store.get("a/b") == b"1"


def test_a_file_system_that_cannot_exclude_others_puts_nothing(tmp_path: Path) -> None:
    for store in (open_fsspec(f"local://{tmp_path}/place", {}), watched()[1]):
        with pytest.raises(OSError, match="exclusively") as caught:
            store.put_if_absent("x", b"1")
        assert (caught.value.errno, caught.value.filename) == (errno.ENOTSUP, f"{store.url}/x")
        assert store.list("") == []


def test_the_file_system_in_memory_excludes_others(monkeypatch: pytest.MonkeyPatch) -> None:
    system, store = watched("memory")
    looking = system.exists

    def look_slowly(path: str) -> bool:
        found: bool = looking(path)
        time.sleep(0.02)
        return found

    monkeypatch.setattr(system, "exists", look_slowly)

    def put(who: int) -> bool:
        try:
            store.put_if_absent("x", b"%d" % who)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(8))) == 1


def test_a_listing_is_never_an_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    system, store = watched()
    asked: list[str] = []
    monkeypatch.setattr(system, "invalidate_cache", lambda: asked.append("invalidate"))
    monkeypatch.setattr(system, "find", lambda *_, **__: asked.append("find") or {})
    assert store.list("") == []
    assert asked == ["invalidate", "find"]


@pytest.mark.parametrize(
    ("protocol", "package", "version", "able"),
    [
        ("s3", "s3fs", "2025.2.0", True),
        ("s3", "s3fs", "2026.9.0", True),
        ("s3", "s3fs", "2024.12.0", False),
        ("gs", "gcsfs", "2025.10.0", True),
        ("gs", "gcsfs", "2025.1.9", False),
        ("abfs", "adlfs", "2026.8.0", True),
        ("abfs", "adlfs", "2024.7.0", False),
        ("s3", "another", "2026.1.0", False),
        ("hdfs", "s3fs", "2026.1.0", False),
    ],
)
def test_the_versions_that_leave_the_choice_to_the_store(
    monkeypatch: pytest.MonkeyPatch, protocol: str, package: str, version: str, able: bool
) -> None:
    def version_of(name: str) -> str:
        if name != package:
            raise fsspec_objects.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(fsspec_objects.metadata, "version", version_of)
    system, store = watched(protocol)
    if able:
        store.put_if_absent("x", b"1")
        assert system.modes == ["create"]
        with pytest.raises(FileExistsError):
            store.put_if_absent("x", b"2")
    else:
        with pytest.raises(OSError, match="exclusively"):
            store.put_if_absent("x", b"1")
        assert system.modes == []


@pytest.mark.parametrize(
    ("failure", "number"),
    [
        (Told(), errno.EIO),
        (Told(500), errno.EIO),
        (Told(403), errno.EACCES),
        (Told(401), errno.EACCES),
        (OSError("without a number"), errno.EIO),
        (OSError(errno.ECONNRESET, "with one"), errno.ECONNRESET),
        (TimeoutError(), errno.ETIMEDOUT),
        (FileNotFoundError("/some/path"), errno.ENOENT),
        (PermissionError("no"), errno.EACCES),
        (IsADirectoryError("/some/path"), errno.ENOENT),
        (NotImplementedError(), errno.ENOTSUP),
    ],
)
def test_a_failure_is_identified_by_its_errno(failure: Exception, number: int) -> None:
    system, store = watched()
    store.put("x", b"1")
    system.failure = failure
    calls: list[Callable[[], object]] = [lambda: store.get("x"), lambda: store.get_range("x", 0, 1)]
    for call in calls:
        with pytest.raises(OSError, match=r"\w") as caught:
            call()
        assert type(caught.value) is type(OSError(number, ""))
        assert (caught.value.errno, caught.value.filename) == (number, "other://place/x")


@pytest.mark.parametrize("failure", [TypeError("x"), ValueError("x"), KeyboardInterrupt()])
def test_mistakes_in_the_program_pass_through(failure: BaseException) -> None:
    system, store = watched()
    system.failure = failure
    with pytest.raises(type(failure)) as caught:
        store.get("x")
    assert caught.value is failure


@pytest.mark.parametrize("failure", [Told(416), Told()])
def test_a_range_that_the_store_cannot_satisfy_is_empty(failure: Told) -> None:
    system, store = watched()
    if failure.status is None:
        failure.args = ("An error occurred (InvalidRange) when calling GetObject",)
    system.failure = failure
    assert store.get_range("x", 5, 5) == b""
    with pytest.raises(OSError, match="Told"):
        store.get("x")


def test_a_network_failure_is_tried_again() -> None:
    system, inner = watched()
    store = RetryingObjects(inner, Limits(attempts=3, backoff=0))
    system.failure = Told()
    with pytest.raises(OSError, match="after 3 attempts"):
        store.get("x")


@pytest.mark.parametrize(
    ("info", "when"),
    [
        ({"LastModified": datetime(2026, 1, 2, tzinfo=UTC)}, 1767312000.0),
        ({"mtime": 1234.5}, 1234.5),
        ({"updated": "2026-01-02T00:00:00Z"}, 1767312000.0),
        ({"created": None, "mtime": 7}, 7.0),
    ],
)
def test_the_times_of_many_file_systems(
    monkeypatch: pytest.MonkeyPatch, info: dict[str, object], when: float
) -> None:
    assert listed_time(monkeypatch, info) == when


def test_without_a_time_a_file_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    before = time.time()
    assert before <= listed_time(monkeypatch, {}) <= time.time()


def listed_time(monkeypatch: pytest.MonkeyPatch, info: dict[str, object]) -> float:
    system, store = watched()

    def find(path: str, detail: bool) -> dict[str, object]:
        return {f"{path}/x": {"type": "file", "size": 1, **info}}

    monkeypatch.setattr(system, "find", find)
    return store.list("")[0].modified


def test_a_file_in_the_way_of_a_directory() -> None:
    store: ObjectStore = open_fsspec(f"memory://{uuid.uuid4().hex}", {})
    store.put("a", b"1")
    with pytest.raises(OSError, match="in the way") as caught:
        store.put("a/b", b"2")
    assert caught.value.errno == errno.EINVAL


def test_schemes_that_cannot_be_opened() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        open_fsspec("nonsense://x", {})
