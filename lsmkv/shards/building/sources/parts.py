"""Makes parts from a program's data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from lsmkv.shards.building.sources.arrow import arrow_parts, is_arrow
from lsmkv.shards.building.sources.arrow_files import (
    ARROW_MAGIC,
    PARQUET_MAGIC,
    arrow_file_parts,
    parquet_parts,
)
from lsmkv.shards.building.sources.csv_files import CsvPart
from lsmkv.shards.building.sources.dask_frames import dask_parts, is_dask
from lsmkv.shards.building.sources.files import FilePart
from lsmkv.shards.building.sources.inputs import InputFile, find_inputs, open_input
from lsmkv.shards.building.sources.packing import packed_parts
from lsmkv.shards.building.sources.part import CallablePart, CheckedPart, Part

PART_BYTES = 64 * 1024 * 1024

_EXPECTED = (
    "pass pairs of bytes, or an iterable of parts, each of which is a path, an Arrow table, a Dask"
    " dataframe, an iterable of pairs, a function that returns one, or a Part"
)
_BYTES = (bytes, bytearray, memoryview)
_ENDINGS = {
    ".parquet": "parquet",
    **dict.fromkeys((".arrow", ".feather"), "arrow"),
    **dict.fromkeys((".csv", ".csv.gz"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".raw", ".gz"), "records"),
}


def parts_of(
    source: object,
    *,
    key: str = "key",
    value: str = "value",
    part_bytes: int = PART_BYTES,
) -> Iterator[Part]:
    """The parts of a bulk build's source, made as they are requested.

    ``source`` is an iterable of pairs ``(key, value)`` of bytes, one item of this list, or an
    iterable of such items:

    * a path of a file, or of a directory, whose files are taken by name: JSON lines and the raw
      format of ``lsmkv export``, CSV (these may be in gzip), Parquet, and Arrow's file format
      (Feather 2).  The file's ending gives the format (``.json``, ``.jsonl``, ``.raw``, ``.csv``,
      each with or without ``.gz``, ``.parquet``, ``.arrow``, ``.feather``).  For other endings the
      content decides; CSV needs its ending;
    * an Arrow table, batch or reader, or a frame of pandas, Polars or another library that exports
      Arrow data;
    * a Dask dataframe;
    * an iterable of pairs, or a mapping of keys to values;
    * a function without arguments that returns an iterable of pairs, and can be pickled;
    * a :class:`~lsmkv.shards.building.sources.part.Part`.

    Tables and frames have their keys and values in the columns named ``key`` and ``value``.  Pairs,
    and tables in memory, are split into parts of about ``part_bytes``, one at a time.  So a
    generator may yield more than fits into memory.  The same source gives the same parts in the
    same order.

    Errors are raised as the parts are requested.  ``TypeError`` names an invalid item, by its index
    from 0, or an invalid pair; ``ValueError`` names a missing column.  Files are opened only as far
    as splitting them needs it (``OSError``, ``CorruptionError``).  Cost: 0.7 us for a pair in
    memory; for files and frames, the cost of reading their metadata.

    >>> parts = list(parts_of([(b"b", b"1"), (b"a", b"2"), (b"c", b"3")], part_bytes=20))
    >>> [part.label for part in parts]
    ['pairs 0 to 1 of the source', 'pairs 2 to 2 of the source']
    >>> [list(part.pairs()) for part in parts]
    [[(b'b', b'1'), (b'a', b'2')], [(b'c', b'3')]]
    """
    if part_bytes < 1:
        raise ValueError(f"part_bytes must be 1 or more, not {part_bytes}")
    if key == value:
        raise ValueError(f"the column {key!r} cannot contain both the keys and the values")
    return _Source(key, value, part_bytes).parts(source)


@dataclass(frozen=True)
class _Source:
    key: str
    value: str
    part_bytes: int

    def parts(self, source: Any) -> Iterator[Part]:
        """See :func:`parts_of`."""
        single = self._single(source, "the source")
        if single is not None:
            return single
        if not isinstance(source, Iterable) or isinstance(source, _BYTES):
            raise TypeError(f"not a source of pairs: {_named(source)}; {_EXPECTED}")
        items = iter(source)
        first = list(_first(items))
        items = chain(first, items)
        if first and _is_pair(first[0]):
            return packed_parts(items, "the source", self.part_bytes)
        return chain.from_iterable(
            self._item(item, f"source[{at}]") for at, item in enumerate(items)
        )

    def _item(self, item: Any, label: str) -> Iterator[Part]:
        single = self._single(item, label)
        if single is not None:
            return single
        if _is_pair(item):
            raise TypeError(f"{label} is a pair, but others are parts: put pairs into a list")
        if not isinstance(item, Iterable) or isinstance(item, _BYTES):
            raise TypeError(f"{label} is not a part: {_named(item)}; {_EXPECTED}")
        return packed_parts(item, label, self.part_bytes)

    def _single(self, item: Any, label: str) -> Iterator[Part] | None:
        """The parts of one source; None for an iterable, of pairs or parts, and for anything else.

        Frames are tested before Part: their columns are attributes, with any name.
        """
        if isinstance(item, (str, os.PathLike)):
            return self._path(os.fsdecode(item))
        if is_dask(item):
            return dask_parts(item, self.key, self.value, label)
        if is_arrow(item):
            return arrow_parts(item, self.key, self.value, label, self.part_bytes)
        if isinstance(item, type):
            return None
        if isinstance(item, Part):
            return iter([CheckedPart(item)])
        if isinstance(item, Mapping):
            return packed_parts(item.items(), label, self.part_bytes)
        if callable(item):
            return iter([CallablePart(item, f"{label}, {_function_name(item)}")])
        return None

    def _path(self, path: str) -> Iterator[Part]:
        if "://" in path:
            others = "dask.dataframe.read_parquet(...), or pyarrow.dataset's scanner().to_reader()"
            raise ValueError(f"{path}: not a path on this machine: for others pass {others}")
        FilePart(path)  # which rejects standard input
        return chain.from_iterable(map(self._file, find_inputs(path)))

    def _file(self, file: InputFile) -> Iterator[Part]:
        kind = _kind(file.path)
        if kind == "parquet":
            return parquet_parts(file, self.key, self.value)
        if kind == "arrow":
            return arrow_file_parts(file, self.key, self.value, self.part_bytes)
        if kind == "csv":
            return iter([CsvPart(file.path, self.key, self.value, file.size)])
        return iter([FilePart(file.path, file.size)])


def _kind(path: str) -> str:
    """A file's format, by its ending, or otherwise by its first bytes."""
    name = path.lower()
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return kind
    with open_input(path) as file:
        begin = file.read(len(ARROW_MAGIC))
    if begin.startswith(PARQUET_MAGIC):
        return "parquet"
    return "arrow" if begin == ARROW_MAGIC else "records"


def _is_pair(item: object) -> bool:
    """True if this was meant as a pair, even an invalid one."""
    if not isinstance(item, (tuple, list)) or not item:
        return False
    if isinstance(item, Part):
        return False
    return isinstance(item[0], (*_BYTES, str)) or (
        len(item) == 2 and not isinstance(item[0], (tuple, list))
    )


def _first(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        yield item
        return


def _named(item: object) -> str:
    return f"the class {item.__name__}" if isinstance(item, type) else type(item).__name__


def _function_name(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None)
    return f"{name}()" if isinstance(name, str) else repr(function)
