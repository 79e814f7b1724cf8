"""Files of ``lsmkv export``: JSON lines and the raw format, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from lsmkv.engine.errors import CorruptionError
from lsmkv.files.exchange import recognize
from lsmkv.shards.building.sources.inputs import open_input
from lsmkv.shards.building.sources.part import Pair

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class FilePart:
    """A file for ``lsmkv import``: its content shows the format, and whether it is compressed.

    ``size`` is the file's size, if known.
    """

    path: str
    size: int | None = None

    def __post_init__(self) -> None:
        if self.path == "-":
            raise ValueError("a part cannot be standard input, which can be read only once")

    @property
    def label(self) -> str:
        """The path."""
        return self.path

    def pairs(self) -> Iterator[Pair]:
        """The records of the file.

        ``ValueError`` for an invalid line names file and line.  ``CorruptionError`` for a damaged
        frame or compression has the file and the offset, and ``OSError`` has its path.
        """
        with open_decompressed(self.path) as file:
            try:
                yield from recognize(file)[1]
            except CorruptionError as error:
                raise error.located(self.path) from None
            except ValueError as error:
                raise ValueError(f"{self.path}: {error}") from None


@contextmanager
def open_decompressed(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressing it if it begins like gzip.

    ``CorruptionError`` for damaged compression has the file, and the offset that was reached.
    """
    with open_input(path) as file:
        is_compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        file.seek(0)
        if not is_compressed:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file, mode="rb") as content:
                yield cast("BinaryIO", content)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise CorruptionError(f"damaged gzip compression: {error}", path, file.tell()) from None
