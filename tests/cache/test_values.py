"""Large values: chunks, what is half stored, and readers."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsmkv
from lsmkv.cache import entry_head, values
from lsmkv.cache.entry_head import CHUNK_SIZE, Pointer
from lsmkv.cache.keys import CHUNK, PENDING, chunk_key
from lsmkv.cache.values import MissingChunk, discard, load, pieces_in, pieces_of, store, sweep
from lsmkv.errors import CorruptionError

NUMBER = b"number of 12"
VALUE = os.urandom(1000) * 2500


def now() -> float:
    return 1000.0


@pytest.fixture
def db() -> Iterator[lsmkv.DB]:
    with lsmkv.DB(":memory:") as db:
        yield db


def test_a_value_comes_back(db: lsmkv.DB) -> None:
    pointer = store(db, NUMBER, pieces_of(VALUE), now)
    assert pointer == Pointer(len(VALUE), NUMBER)
    assert [len(chunk) for _, chunk in db.iterator(prefix=CHUNK)] == [
        *(CHUNK_SIZE, CHUNK_SIZE, len(VALUE) - 2 * CHUNK_SIZE),
    ]
    assert load(db.get, pointer) == VALUE


def test_a_file_is_read_a_chunk_at_a_time() -> None:
    class Trickling(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size <= CHUNK_SIZE
            return super().read(min(size, 7_777))

    assert [len(piece) for piece in pieces_in(Trickling(VALUE))] == [
        *(CHUNK_SIZE, CHUNK_SIZE, len(VALUE) - 2 * CHUNK_SIZE),
    ]
    with pytest.raises(TypeError, match="str"):
        list(pieces_in(io.StringIO("text")))  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [1, CHUNK_SIZE // 2, CHUNK_SIZE, len(VALUE)])
def test_a_file_that_reads_more_than_it_is_asked_for(more: int) -> None:
    class Generous(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size >= 0
            return super().read(size + more)

    with lsmkv.Cache(":memory:", shared=False) as cache:
        cache.set("k", Generous(VALUE), read=True)
        assert cache.get("k") == VALUE
        with cache.read("k") as reader:
            assert reader.read() == VALUE
        assert cache.check() == []
        sizes = [len(chunk) for chunk in cache._db.iterator(prefix=b"v", include_key=False)]
        assert sizes == [CHUNK_SIZE, CHUNK_SIZE, len(VALUE) - 2 * CHUNK_SIZE]


def test_a_reader_finds_chunks_of_another_size() -> None:
    """As releases before 0.3 stored them."""
    with lsmkv.Cache(":memory:", shared=False) as cache:
        cache.set("k", io.BytesIO(VALUE), read=True)
        (first, one), (second, other), _ = cache._db.iterator(prefix=b"v")
        cache._db.put(first, one + other[:10])
        cache._db.put(second, other[10:])
        with cache.read("k") as reader, pytest.raises(CorruptionError, match="chunk 0 of 'k'"):
            reader.read()
        assert "has 402,848 of 2,500,000 bytes" in cache.check()[0]


def test_a_value_that_is_too_large(db: lsmkv.DB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "LARGEST", len(VALUE))
    with pytest.raises(ValueError, match="4 GiB"):
        store(db, NUMBER, pieces_of(VALUE), now)
    assert list(db) == []


def test_discarding(db: lsmkv.DB) -> None:
    pointer = store(db, NUMBER, pieces_of(VALUE), now)
    discard(db, NUMBER, pointer.chunks)
    assert list(db) == []
    with pytest.raises(MissingChunk):
        load(db.get, pointer)


def test_half_stored_values_are_swept(db: lsmkv.DB) -> None:
    store(db, NUMBER, pieces_of(VALUE), now)
    assert sweep(db, now(), alone=False) == 0  # this process may still be at it
    assert len(list(db)) == 4
    assert sweep(db, now() + 3600, alone=False) == 1
    assert list(db) == []
    store(db, NUMBER, pieces_of(VALUE), now)
    assert sweep(db, now(), alone=True) == 1
    assert list(db) == []


def test_the_writer_of_a_pending_value_may_be_damaged(db: lsmkv.DB) -> None:
    db.put(PENDING + NUMBER, b"?")
    assert sweep(db, now(), alone=False) == 1


def test_opening_sweeps(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False) as cache:
        store(cache._db, NUMBER, pieces_of(VALUE), now)
    with lsmkv.Cache(tmp_path, shared=False) as cache:
        assert list(cache._db.iterator(prefix=CHUNK)) == []
        assert cache.check() == []


def test_a_swept_value_is_not_published(tmp_path: Path) -> None:
    with lsmkv.Cache(tmp_path, shared=False) as cache:

        class Sweeping(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                if self.tell() >= 2 * CHUNK_SIZE:
                    sweep(cache._db, cache._clock(), alone=True)
                return super().read(size)

        with pytest.raises(lsmkv.Error, match="before it was published"):
            cache.set("k", Sweeping(VALUE), read=True)
        assert "k" not in cache
        assert cache.check() == []


@pytest.mark.skipif(lsmkv.COMPILED, reason="constants are compiled")
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-10, 30), st.integers(-1, 12))))
def test_a_reader_is_a_file(moves: list[tuple[int, int, int]]) -> None:
    value = bytes(range(25))
    size = CHUNK_SIZE
    values.CHUNK_SIZE = entry_head.CHUNK_SIZE = 10  # type: ignore[misc]
    try:
        with lsmkv.DB(":memory:") as db:
            for index in range(3):
                db.put(chunk_key(NUMBER, index), value[index * 10 : index * 10 + 10])
            model = io.BytesIO(value)
            with values.ValueReader(db.snapshot(), Pointer(25, NUMBER), "k") as reader:
                for whence, offset, size_read in moves:
                    if (0, model.tell(), 25)[whence] + offset >= 0:
                        assert reader.seek(offset, whence) == model.seek(offset, whence)
                    got = b""
                    if size_read < 0:
                        got = reader.read()
                    while len(got) < size_read:
                        part = reader.read(size_read - len(got))
                        if not part:
                            break
                        got += part
                    assert got == model.read(size_read)
                    assert reader.tell() == model.tell()
    finally:
        values.CHUNK_SIZE = entry_head.CHUNK_SIZE = size  # type: ignore[misc]


def test_a_reader_of_damage(db: lsmkv.DB) -> None:
    with values.ValueReader(db.snapshot(), Pointer(5, NUMBER), "k") as reader:
        with pytest.raises(CorruptionError, match="chunk 0"):
            reader.read()
        with pytest.raises(ValueError, match="whence"):
            reader.seek(0, 3)
        with pytest.raises(ValueError, match="below 0"):
            reader.seek(-1)
        assert reader.readable()
        assert reader.seekable()
    with pytest.raises(ValueError, match="closed"):
        reader.read()
    reader.close()


def test_a_chunk_that_comes_after_the_sweep_is_refused(
    db: lsmkv.DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was killed had sent it, and the owner of the store comes to it only now."""
    pieces = list(pieces_of(VALUE))
    monkeypatch.setattr(values, "discard", lambda *_: None)  # killed, it removes nothing

    def sent() -> Iterator[bytes]:
        yield pieces[0]
        assert sweep(db, now(), alone=True) == 1
        yield pieces[1]

    with pytest.raises(lsmkv.Error, match="was removed before it was published"):
        store(db, NUMBER, sent(), now)
    assert list(db) == []


def test_a_chunk_that_comes_in_the_middle_of_the_sweep_is_removed_too(
    db: lsmkv.DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = list(pieces_of(VALUE))
    pending = (PENDING + NUMBER, bytes(16))
    values._write_pending(db, [pending, (chunk_key(NUMBER, 0), pieces[0])], False)
    late = [(chunk_key(NUMBER, 1), pieces[1])]

    def is_running(pid: int) -> bool:
        if late:  # asked after the pending key was read
            values._write_pending(db, [pending, late.pop()], True)
        return False

    db.put(*(PENDING + NUMBER, values._WRITER.pack(7, now())))
    monkeypatch.setattr(values, "is_running", is_running)
    assert sweep(db, now(), alone=False) == 1
    assert not late
    assert list(db) == []
