"""lsmkv.shards.remote.remote_file: a file of which pieces are in memory."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator

import pytest
from memory_objects import MemoryObjects

from lsmkv.shards.remote.fetch_ahead import FetchAhead
from lsmkv.shards.remote.remote_file import Held, RemoteFile
from lsmkv.shards.remote.remote_object import RemoteObject, Source

KIB = 1 << 10
DATA = random.Random(9).randbytes(300 * KIB)
PIECES = ((0, DATA[:100]), (200 * KIB, DATA[200 * KIB :]))


@pytest.fixture
def ahead() -> Iterator[FetchAhead]:
    ahead = FetchAhead()
    yield ahead
    ahead.close()


@pytest.fixture
def objects() -> MemoryObjects:
    objects = MemoryObjects()
    objects.put("o", DATA)
    objects.put("small", DATA[: 64 * KIB])
    objects.put("large", DATA * 10)
    objects.forget_requests()
    return objects


def held(objects: MemoryObjects, pieces: tuple[tuple[int, bytes], ...]) -> Held:
    return Held(RemoteObject(Source(objects, None), "o", len(DATA), "o"), pieces)


def without_meta(objects: MemoryObjects, name: str) -> Held:
    size = len(objects.objects[name])
    return Held(RemoteObject(Source(objects, None), name, size, name))


def test_what_pieces_have_costs_no_request(objects: MemoryObjects, ahead: FetchAhead) -> None:
    with RemoteFile(held(objects, PIECES), ahead) as file:
        for offset, length in ((0, 100), (50, 50), (200 * KIB, 5), (250 * KIB, 50 * KIB)):
            assert file.read(offset, length) == DATA[offset : offset + length]
            assert file.raw_read(length, offset) == DATA[offset : offset + length]
        assert file.read(299 * KIB, 1 << 40) == DATA[299 * KIB :]
    assert objects.requests == 0


def test_a_table_that_is_open_gives_its_pieces_up(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    known = held(objects, PIECES)
    with RemoteFile(known, ahead) as file:
        for offset in (len(DATA) - 48, 200 * KIB, 250 * KIB):
            file.read(offset, 48)
        assert known.pieces == PIECES
        assert file.read(0, 100) == DATA[:100]
        assert known.pieces == ()
        assert objects.requests == 0
        assert file.read(0, 100) == DATA[:100]
    assert objects.ranges == [("o", 0, 100)]


def test_a_read_outside_of_the_pieces_gives_them_up(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    known = held(objects, PIECES)
    with RemoteFile(known, ahead) as file:
        for offset, length in ((90, 20), (150 * KIB, 100), (199 * KIB, 2 * KIB), (0, 10)):
            assert file.read(offset, length) == DATA[offset : offset + length]
    assert objects.ranges == [
        ("o", 90, 20),
        ("o", 150 * KIB, 100),
        ("o", 199 * KIB, 2 * KIB),
        ("o", 0, 10),
    ]
    assert known.pieces == ()


def test_nothing_lies_behind_the_end(objects: MemoryObjects, ahead: FetchAhead) -> None:
    with RemoteFile(held(objects, ()), ahead) as file:
        assert file.read(len(DATA), 10) == b""
        assert file.read(len(DATA) + 5, 10) == b""
        assert file.read(5, 0) == b""
        assert objects.requests == 0
        assert file.read(len(DATA) - 5, 10) == DATA[-5:]


def test_an_empty_file(objects: MemoryObjects, ahead: FetchAhead) -> None:
    objects.put("empty", b"")
    with RemoteFile(without_meta(objects, "empty"), ahead) as file:
        assert file.size == 0
        assert file.read(0, 10) == b""


def test_a_closed_file_is_not_read(objects: MemoryObjects, ahead: FetchAhead) -> None:
    file = RemoteFile(held(objects, PIECES), ahead)
    raw_read = file.raw_read
    file.close()
    file.close()
    for call in (lambda: file.read(0, 1), lambda: file.read(9, 0), lambda: raw_read(1, 0)):
        with pytest.raises(OSError, match="descriptor") as caught:
            call()
        assert caught.value.errno == errno.EBADF
        assert caught.value.filename == objects.url_of("o")


def test_negative_positions_are_refused(objects: MemoryObjects, ahead: FetchAhead) -> None:
    with RemoteFile(held(objects, PIECES), ahead) as file:
        for offset, length in ((-1, 5), (5, -1)):
            with pytest.raises(OSError, match="Invalid") as caught:
                file.read(offset, length)
            assert caught.value.errno == errno.EINVAL


# Without META


def test_a_small_file_is_fetched_whole(objects: MemoryObjects, ahead: FetchAhead) -> None:
    known = without_meta(objects, "small")
    for _ in range(2):
        with RemoteFile(known, ahead) as file:
            for offset in (1000, 0, 63 * KIB):
                assert file.read(offset, 100) == DATA[offset : offset + 100]
    assert objects.ranges == [("small", 0, 64 * KIB)]


@pytest.mark.parametrize(("name", "tail"), [("o", 64 * KIB), ("large", 3000 * KIB // 32)])
def test_a_table_that_is_opened_is_fetched_from_its_end(
    objects: MemoryObjects, ahead: FetchAhead, name: str, tail: int
) -> None:
    whole = objects.objects[name]
    with RemoteFile(without_meta(objects, name), ahead) as file:
        for offset in (len(whole) - 48, len(whole) - 1000, len(whole) - tail):
            assert file.read(offset, 48) == whole[offset : offset + 48]
        assert objects.ranges == [(name, len(whole) - tail, tail)]
        assert file.read(0, 4096) == whole[:4096]
    assert objects.ranges[1:] == [(name, 0, 4096)]


def test_a_file_that_is_read_from_its_start_is_read_as_asked(
    objects: MemoryObjects, ahead: FetchAhead
) -> None:
    with RemoteFile(without_meta(objects, "o"), ahead) as file:
        for offset in (0, 100 * KIB, len(DATA) - 48):
            assert file.read(offset, 48) == DATA[offset : offset + 48]
    assert [length for _, _, length in objects.ranges] == [48, 48, 48]
