"""A read-only store moves on by what its writer has written to its logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from refreshed import check_equals_fresh, shown_by

import lsmkv
from lsmkv import DB, MemoryEnv
from lsmkv.engine.env.base import Directory, RandomAccessFile
from lsmkv.engine.env.memory import MemoryDirectory, MemoryFolder
from lsmkv.engine.format.batch import encode_batch
from lsmkv.engine.format.log import BLOCK_SIZE, frame


def test_a_refresh_reads_only_what_is_new() -> None:
    env = Counting()
    with DB("/db", create_if_missing=True, env=env) as writer:
        for n in range(2000):
            writer.put(b"%d" % n, bytes(100))
        with DB("/db", read_only=True, env=env) as view:
            writer.put(b"new", b"1")
            before = env.bytes_read
            view.refresh()
            assert view.get(b"new") == b"1"
            assert env.bytes_read - before < 2 * BLOCK_SIZE


class Counting(MemoryEnv):
    """Counts the bytes that are read."""

    bytes_read = 0

    def open_directory(self, path: str, create: bool = False) -> MemoryDirectory:
        inner = super().open_directory(path, create)
        return _CountingDirectory(path, self, inner._folder)


class _CountingDirectory(MemoryDirectory):
    def __init__(self, path: str, env: Counting, folder: MemoryFolder) -> None:
        super().__init__(path, env.mutex, folder)
        self._counting = env

    def open(self, name: str) -> Any:
        file = super().open(name)
        counting = self._counting
        read = file.read

        class Counted(RandomAccessFile):
            path = file.path
            size = file.size

            def read(self, offset: int, length: int) -> bytes:
                data = read(offset, length)
                counting.bytes_read += len(data)
                return data

            def close(self) -> None:
                file.close()

        return Counted()


@pytest.fixture
def by_hand() -> Iterator[tuple[MemoryEnv, Directory]]:
    """A store whose log is written by hand, while it is read."""
    env = MemoryEnv()
    DB("/db", create_if_missing=True, env=env).close()
    with env.open_directory("/db") as directory:
        yield env, directory


def log_in(directory: Directory) -> str:
    (name,) = [name for name in directory.names() if name.endswith(".log")]
    return name


@pytest.mark.parametrize("size", [5, 3 * BLOCK_SIZE])
def test_a_record_that_is_being_written_is_not_there_yet(
    by_hand: tuple[MemoryEnv, Directory], size: int
) -> None:
    env, directory = by_hand
    first = frame(encode_batch(1, [(b"a", b"1")]), 0)
    second = frame(encode_batch(2, [(b"b", bytes(b"2" * size))]), len(first))
    third = frame(encode_batch(3, [(b"c", b"3")]), (len(first) + len(second)) % BLOCK_SIZE)
    cuts = sorted({1, 6, 7, 8, len(second) // 2, len(second) - 1})
    with directory.append_to(log_in(directory)) as log:
        log.append(first)
        with DB("/db", read_only=True, env=env) as view:
            at = 0
            for cut in cuts:
                log.append(second[at:cut])
                at = cut
                view.refresh()
                assert dict(view) == {b"a": b"1"}
                check_equals_fresh(view, "/db", env, [b"a", b"b"])
            log.append(second[at:] + third)
            view.refresh()
            assert set(dict(view)) == {b"a", b"b", b"c"}
            check_equals_fresh(view, "/db", env, [b"a", b"b", b"c"])


def test_a_writer_that_goes_on_behind_a_torn_record(by_hand: tuple[MemoryEnv, Directory]) -> None:
    """LevelDB does so where it takes over the log of a killed process."""
    env, directory = by_hand
    first = frame(encode_batch(1, [(b"a", b"1")]), 0)
    torn = frame(encode_batch(2, [(b"never acknowledged", b"")]), len(first))[:-3]
    second = frame(encode_batch(2, [(b"b", b"2")]), len(first) + len(torn))
    with directory.append_to(log_in(directory)) as log:
        log.append(first)
        with DB("/db", read_only=True, env=env) as view:
            log.append(torn)
            view.refresh()
            log.append(second)
            view.refresh()
            assert dict(view) == {b"a": b"1", b"b": b"2"}
            check_equals_fresh(view, "/db", env, [b"a", b"b"])


def test_a_gap_in_the_sequences_is_not_shown(by_hand: tuple[MemoryEnv, Directory]) -> None:
    env, directory = by_hand
    first = frame(encode_batch(1, [(b"a", b"1")]), 0)
    third = frame(encode_batch(3, [(b"c", b"3")]), len(first))
    with directory.append_to(log_in(directory)) as log:
        log.append(first)
        with DB("/db", read_only=True, env=env) as view:
            log.append(third)
            for _ in range(2):
                try:
                    view.refresh()
                except lsmkv.CorruptionError:
                    pass
                assert b"c" not in view or shown_by(view)[1] == 3
