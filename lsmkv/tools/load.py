"""``lsmkv load``: puts the lines of a file into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from lsmkv.db.db import DB
from lsmkv.errors import CorruptionError
from lsmkv.tools.text import from_hex, unescape

LineFormat = Literal["plain", "escaped", "hex"]

_BATCH_RECORDS = 1000
_BATCH_BYTES = 256 * 1024

Record = tuple[bytes, bytes]


@dataclass
class Loaded:
    """What a load has done so far."""

    records: int = 0
    blank_lines: int = 0


def load_lines(
    db: DB,
    lines: Iterable[bytes],
    line_format: LineFormat,
    loaded: Loaded,
    advance: Callable[[int], None],
) -> None:
    """Put a record for each line of ``lines``, in batches.

    ``advance`` is called with the number of records of each batch, and ``loaded`` counts them all.
    A bad line raises ``ValueError`` with its number; the records before it are put, and counted.
    """
    for batch in batches(read_records(lines, line_format, loaded)):
        with db.write_batch() as writer:
            for key, value in batch:
                writer.put(key, value)
        loaded.records += len(batch)
        advance(len(batch))


def read_records(
    lines: Iterable[bytes], line_format: LineFormat, loaded: Loaded
) -> Iterator[Record]:
    """The key and value of each line, which are divided by its first tab.

    A line without a tab is a key with an empty value.  The line's end, LF or CRLF, belongs to
    neither; blank lines are counted and skipped.
    """
    decode = _DECODERS[line_format]
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if not line:
            loaded.blank_lines += 1
            continue
        key, _, value = line.partition(b"\t")
        try:
            yield decode(key), decode(value)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None


def _plain(text: bytes) -> bytes:
    return text


def _hex(text: bytes) -> bytes:
    return from_hex(text.decode("ascii", "backslashreplace"))


_DECODERS: dict[LineFormat, Callable[[bytes], bytes]] = {
    "plain": _plain,
    "escaped": unescape,
    "hex": _hex,
}


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Records in batches.

    A ``ValueError`` or ``CorruptionError`` comes after a batch of the records before it.
    """
    batch: list[Record] = []
    size = 0
    try:
        for key, value in records:
            batch.append((key, value))
            size += len(key) + len(value)
            if len(batch) >= _BATCH_RECORDS or size >= _BATCH_BYTES:
                yield batch
                batch = []
                size = 0
    except (ValueError, CorruptionError):
        if batch:
            yield batch
        raise
    if batch:
        yield batch
