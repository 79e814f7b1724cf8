from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lsmkv
from lsmkv import Directory
from lsmkv.tools.playground.dropped import DroppedEnv


class File:
    """A file as the browser shows it; ``reads`` are the calls that it gets."""

    modified = 12.5

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.size = len(content)
        self.reads: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self.content[offset : offset + length]


def directory(**files: File) -> Directory:
    return DroppedEnv(files).open_directory("place")


def test_small_reads_share_a_piece() -> None:
    file = File(bytes(range(256)) * 1024)
    with directory(a=file).open("a") as opened:
        assert opened.size == 1 << 18
        assert opened.read(5, 3) == b"\x05\x06\x07"
        assert opened.read(32 * 1024 - 1, 1) == b"\xff"
        assert file.reads == [(0, 32 * 1024)]
        assert opened.read(100_000, 2) == file.content[100_000:100_002]
        assert file.reads[1:] == [(96 * 1024, 32 * 1024)]
        assert opened.read((1 << 18) - 2, 10) == b"\xfe\xff"
        assert opened.read(1 << 20, 10) == b""


def test_reads_that_continue_take_longer_pieces_and_ask_for_no_byte_twice() -> None:
    file = File(bytes(range(256)) * (5 << 12))
    with directory(a=file).open("a") as opened:
        for offset in range(0, file.size, 4099):
            assert opened.read(offset, 4099) == file.content[offset : offset + 4099]
    ends = [offset + length for offset, length in file.reads]
    assert [0, *ends] == [*(offset for offset, _ in file.reads), file.size]
    lengths = [length for _, length in file.reads]
    assert lengths[0] == 32 << 10
    assert lengths[:-1] == sorted(lengths[:-1])
    assert lengths[-2] == 1 << 20


def test_long_reads_are_not_kept() -> None:
    file = File(bytes(3 << 20))
    with directory(a=file).open("a") as opened:
        assert opened.read(7, 2 << 20) == bytes(2 << 20)
        assert opened.read(7, 1) == b"\0"
    assert file.reads == [(7, 2 << 20), (0, 32 << 10)]


def test_every_read_gives_what_the_file_has() -> None:
    content = bytes((number * 7) % 251 for number in range(70_000))
    with directory(a=File(content)).open("a") as opened:
        for offset in range(0, 71_000, 997):
            for length in (0, 1, 40, 33_000):
                assert opened.read(offset, length) == content[offset : offset + length]


def test_wrong_reads_are_refused() -> None:
    opened = directory(a=File(b"abc")).open("a")
    with pytest.raises(OSError, match="Invalid"):
        opened.read(-1, 1)
    opened.close()
    with pytest.raises(OSError, match="Bad file"):
        opened.read(0, 1)


def test_a_file_that_became_shorter_is_noticed() -> None:
    file = File(b"abc")
    opened = directory(a=file).open("a")
    file.content = b"a"
    with pytest.raises(OSError, match="fewer bytes"):
        opened.read(0, 3)


def test_names() -> None:
    place = directory(a=File(b"abc"))
    assert place.names() == ["a"]
    assert place.exists("a")
    assert not place.exists("b")
    assert (place.size("a"), place.modified("a")) == (3, 12.5)
    assert place.lock_holder("LOCK") is None
    place.sync()
    for call in (place.size, place.open, place.subdirectory):
        with pytest.raises(FileNotFoundError):
            call("b")
    place.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda env, place: place.create("b"),
        lambda env, place: place.append_to("a"),
        lambda env, place: place.rename("a", "b"),
        lambda env, place: place.remove("a"),
        lambda env, place: place.link("a", place),
        lambda env, place: place.lock("LOCK"),
        lambda env, place: place.subdirectory("b", create=True),
        lambda env, place: env.remove_directory("place"),
        lambda env, place: env.rename_directory("place", "other"),
    ],
)
def test_nothing_is_written(call: Callable[[DroppedEnv, Directory], object]) -> None:
    env = DroppedEnv({"a": File(b"abc")})
    with pytest.raises(OSError, match="Read-only"):
        call(env, env.open_directory("place"))


def test_a_store_is_read_whole(tmp_path: Path) -> None:
    content = {b"%05d" % number: b"value %d" % number * 20 for number in range(3000)}
    with lsmkv.DB(tmp_path / "db", create_if_missing=True, max_file_size=1 << 16) as db:
        for key, value in content.items():
            db.put(key, value)
        db.flush()
        db.put(b"log", b"")
    files = {path.name: File(path.read_bytes()) for path in (tmp_path / "db").iterdir()}
    with lsmkv.DB("place", read_only=True, env=DroppedEnv(files)) as db:
        assert dict(db) == content | {b"log": b""}
