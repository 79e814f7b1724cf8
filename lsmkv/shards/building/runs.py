"""A run: sorted pairs in one object, from which tasks read ranges of keys.

A bulk build sorts each part into runs, and merges each shard from a range of every run.  The
layout, all integers little-endian::

    run     := frame* index footer
    frame   := a blob of sorted pairs (lsmkv/shards/building/blob.py), about 256 KiB; all pairs of
    one key are
               in one frame
    index   := a blob with a pair for each frame: its first key, and its offset as a fixed64
    footer  := fixed64 offset of the index, fixed64 length of the index, "lsmkvrun"

A frame and the index have checksums, so damage in transit raises :class:`CorruptionError`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate, pairwise
from operator import add
from typing import NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.shards.building.blob import pack_columns, unpack_pairs
from lsmkv.shards.remote.objects.base import ObjectStore

FRAME_BYTES = 256 * 1024
"""About how many bytes of keys and values a frame has."""
MAGIC = b"lsmkvrun"

_FOOTER = 24
_TAIL = 64 * 1024  # read at once: it has the index of a run of some hundred MiB
_SAMPLES = 128


class Sample(NamedTuple):
    """A key, and the number of bytes in its run between the previous sample and this one."""

    key: bytes
    weight: int


class Run(NamedTuple):
    """A run that has been written."""

    name: str
    size: int
    """Bytes of the object."""
    first: bytes
    last: bytes
    pairs: int
    samples: tuple[Sample, ...]
    """At most 128, at equal distances in bytes."""


def encode_run(name: str, keys: Sequence[bytes], values: Sequence[bytes]) -> tuple[Run, bytes]:
    """A run of these pairs, at least one, in key order."""
    sizes = list(accumulate(map(add, map(len, keys), map(len, values)), initial=0))
    data = BytesIO()
    firsts: list[bytes] = []
    offsets: list[int] = []
    at = 0
    while at < len(keys):
        stop = _reach(sizes, sizes[at] + FRAME_BYTES)
        while stop < len(keys) and keys[stop] == keys[stop - 1]:
            stop += 1
        firsts.append(keys[at])
        offsets.append(data.tell())
        data.write(pack_columns(keys[at:stop], values[at:stop]))
        at = stop
    end = data.tell()
    data.write(pack_columns(firsts, [offset.to_bytes(8, "little") for offset in offsets]))
    footer = end.to_bytes(8, "little") + (data.tell() - end).to_bytes(8, "little") + MAGIC
    data.write(footer)
    run = Run(name, data.tell(), keys[0], keys[-1], len(keys), _samples(keys, sizes))
    return run, data.getvalue()


def _reach(sizes: list[int], wanted: int) -> int:
    """The number of pairs that reach a number of bytes; all of them if they have fewer."""
    return min(bisect_left(sizes, wanted), len(sizes) - 1)


def _samples(keys: Sequence[bytes], sizes: list[int]) -> tuple[Sample, ...]:
    """The last key of each of 128 pieces of about equal size; fewer if the pairs are larger."""
    total = sizes[-1]
    ends = sorted({max(1, _reach(sizes, total * n // _SAMPLES)) for n in range(1, _SAMPLES + 1)})
    return tuple(
        Sample(keys[stop - 1], max(1, sizes[stop] - sizes[start]))
        for start, stop in zip([0, *ends], ends, strict=False)
    )


class RunReader:
    """Reads the pairs of a run with keys in [begin, end), some frames at a time."""

    def __init__(
        self, objects: ObjectStore, run: Run, begin: bytes, end: bytes | None, most: int
    ) -> None:
        """``most`` is about how many bytes one request reads.  Makes 1 or 2 requests."""
        self._objects = objects
        self._run = run
        self._path = objects.url_of(run.name)
        self._begin = begin
        self._end = end
        firsts, self._offsets = self._read_index()
        self._at = max(0, bisect_left(firsts, begin) - 1)
        self._stop = len(firsts) if end is None else bisect_left(firsts, end)
        self._most = most

    def chunks(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Keys and values, in order, a frame at a time, without empty frames."""
        while self._at < self._stop:
            first = self._at
            upto = first + 1
            while (
                upto < self._stop and self._offsets[upto + 1] - self._offsets[first] <= self._most
            ):
                upto += 1
            data = self._read(self._offsets[first], self._offsets[upto])
            base = self._offsets[first]
            for at in range(first, upto):
                keys, values = self._unpack(
                    data[self._offsets[at] - base : self._offsets[at + 1] - base]
                )
                if at == upto - 1:
                    data = b""  # many readers wait with one frame in memory
                low = bisect_left(keys, self._begin)
                high = len(keys) if self._end is None else bisect_left(keys, self._end)
                if low < high:
                    yield keys[low:high], values[low:high]
            self._at = upto

    def _read_index(self) -> tuple[list[bytes], list[int]]:
        """The first keys of the frames, and their offsets with the end of the last one."""
        size = self._run.size
        tail = self._read(max(0, size - _TAIL), size)
        if len(tail) < _FOOTER or tail[-8:] != MAGIC:
            raise CorruptionError("not a run", self._path)
        start = int.from_bytes(tail[-24:-16], "little")
        length = int.from_bytes(tail[-16:-8], "little")
        if start + length + _FOOTER != size:
            raise CorruptionError("a run with an index in the wrong place", self._path)
        if length + _FOOTER <= len(tail):
            index = tail[len(tail) - _FOOTER - length : len(tail) - _FOOTER]
        else:
            index = self._read(start, start + length)
        firsts, places = self._unpack(index)
        offsets = [int.from_bytes(place, "little") for place in places]
        offsets.append(start)
        if any(low >= high for low, high in pairwise(offsets)):
            raise CorruptionError("a run with unordered frames", self._path)
        return firsts, offsets

    def _read(self, start: int, stop: int) -> bytes:
        data = self._objects.get_range(self._run.name, start, stop - start)
        if len(data) < stop - start:
            raise CorruptionError("a truncated run", self._path, start + len(data))
        return data

    def _unpack(self, blob: bytes) -> tuple[list[bytes], list[bytes]]:
        try:
            return unpack_pairs(blob)
        except CorruptionError as error:
            raise error.located(self._path) from None
