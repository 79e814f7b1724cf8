"""``lsmkv load``: puts the lines of a file into a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from lsmkv import DB
from lsmkv.engine.errors import CorruptionError
from lsmkv.tools.arguments import Create, Directory, Hex, Json, open_input, open_to_write
from lsmkv.tools.console import guarded, say, write_json
from lsmkv.tools.drawing import progress
from lsmkv.tools.options import argument, flag
from lsmkv.tools.text import count, from_hex, unescape

LineFormat = Literal["plain", "escaped", "hex"]

_BATCH_RECORDS = 1000
_BATCH_BYTES = 256 * 1024

Record = tuple[bytes, bytes]


@dataclass
class Loaded:
    """The progress of a load."""

    records: int = 0
    blank_lines: int = 0


@guarded
def load(
    directory: Directory,
    file: Annotated[str, argument("FILE", "The file of lines; - is stdin.")],
    create: Create = False,
    escaped: bool = flag("Lines are escaped as 'scan' prints them.", "--escaped"),
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Put every line of FILE: a key, a tab and a value; or a key alone, with an empty value.

    The end of a line, LF or CRLF, belongs to neither. Blank lines are left out.

    JSON: "path", "records", "blank_lines", "seconds".
    """
    if escaped and is_hex:
        raise ValueError("give --escaped or --hex, not both")
    line_format: LineFormat = "hex" if is_hex else "escaped" if escaped else "plain"
    loaded = Loaded()
    started = time.perf_counter()
    with open_input(file) as lines, open_to_write(directory, create) as db:
        try:
            with progress("Loading", "record") as bar:
                load_lines(db, lines, line_format, loaded, bar.advance)
            db.sync()
        finally:
            seconds = time.perf_counter() - started
            blank = count(loaded.blank_lines, "blank line")
            say(
                f"{count(loaded.records, 'record')} loaded in {seconds:.1f} s"
                + (f", {blank} left out" if loaded.blank_lines else "")
            )
    if as_json:
        figures = {"records": loaded.records, "blank_lines": loaded.blank_lines}
        write_json({"path": directory} | figures | {"seconds": round(seconds, 3)})


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
