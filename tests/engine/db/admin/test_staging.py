"""lsmkv.engine.db.admin.staging: a directory appears whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lsmkv.engine.db.admin.staging import build_directory, copy, link_or_copy, refuse_taken
from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.testing.faulty import FaultyEnv


def put(directory: Directory, name: str, data: bytes) -> None:
    with directory.create(name) as file:
        file.append(data)
        file.sync()


def build(directory: Directory) -> None:
    put(directory, "CURRENT", b"whole")


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Env, str]:
    """An env, and the path of a directory in it that exists."""
    if request.param == "local":
        return LocalEnv(), str(tmp_path)
    env = MemoryEnv()
    env.open_directory("/base", create=True).close()
    return env, "/base"


def names(env: Env, path: str) -> list[str]:
    with env.open_directory(path) as directory:
        return directory.names()


def test_the_directory_is_renamed_into_its_place(place: tuple[Env, str]) -> None:
    env, base = place
    build_directory(env, f"{base}/new", "copy", build)
    with env.open_directory(f"{base}/new") as directory:
        assert directory.read_file("CURRENT", 10) == b"whole"
    with pytest.raises(FileExistsError):
        build_directory(env, f"{base}/new", "copy", build)
    with pytest.raises(FileExistsError):
        refuse_taken(env, f"{base}/new/")
    refuse_taken(env, f"{base}/other")


def test_nothing_is_left_of_one_that_failed(place: tuple[Env, str]) -> None:
    env, base = place

    def fail(directory: Directory) -> None:
        build(directory)
        put(directory, "000005.ldb", b"a table")
        put(directory, "LOG", b"")
        with directory.subdirectory("lost", create=True) as lost:
            put(lost, "000004.ldb", b"aside")
        raise LookupError("half way")

    with pytest.raises(LookupError, match="half way"):
        build_directory(env, f"{base}/new", "copy", fail)
    build_directory(env, f"{base}/seen", "copy", build)
    with env.open_directory(base) as directory:
        assert directory.exists("seen")
        assert not directory.exists("new")
    if isinstance(env, LocalEnv):
        assert [path.name for path in Path(base).iterdir()] == ["seen"]


def test_a_file_is_shared_by_a_link(place: tuple[Env, str]) -> None:
    env, base = place
    with (
        env.open_directory(f"{base}/a", create=True) as source,
        env.open_directory(f"{base}/b", create=True) as target,
    ):
        put(source, "000005.ldb", b"table")
        link_or_copy(source, "000005.ldb", target)
        assert target.read_file("000005.ldb", 10) == b"table"
        assert target.names() == ["000005.ldb"]
    if isinstance(env, LocalEnv):
        assert (Path(base) / "a" / "000005.ldb").samefile(Path(base) / "b" / "000005.ldb")


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP])
def test_a_file_that_cannot_be_linked_is_copied(code: int) -> None:
    env = FaultyEnv()
    source = env.open_directory("a", create=True)
    target = env.open_directory("b", create=True)
    data = bytes(range(256)) * 10_000  # longer than what is copied at once
    put(source, "000005.ldb", data)
    put(target, "000005.dbtmp", b"of a process that died")
    env.fail_at(1, OSError(code, "no link"), calls={"link"})
    link_or_copy(source, "000005.ldb", target)
    assert target.names() == ["000005.ldb"]
    assert target.read_file("000005.ldb", len(data)) == data


def test_another_failure_of_linking_is_raised() -> None:
    env = FaultyEnv()
    source = env.open_directory("a", create=True)
    target = env.open_directory("b", create=True)
    put(source, "000005.ldb", b"table")
    env.fail_at(1, OSError(errno.EIO, "bad disk"), calls={"link"})
    with pytest.raises(OSError, match="bad disk"):
        link_or_copy(source, "000005.ldb", target)
    assert target.names() == []


def test_a_copy_ends_at_the_given_size() -> None:
    directory = MemoryEnv().open_directory("a", create=True)
    put(directory, "long", b"0123456789")
    with directory.open("long") as file:
        copy(file, directory, "short", 4)
    assert directory.read_file("short", 10) == b"0123"
