"""CSV files, parsed by ``pyarrow``."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from lsmkv.shards.building.sources.arrow import check_name, pyarrow, table_pairs
from lsmkv.shards.building.sources.files import open_decompressed
from lsmkv.shards.building.sources.part import Pair

_BLOCK = 16 * 1024 * 1024
"""Bytes that are parsed at a time."""


@dataclass(frozen=True)
class CsvPart:
    """A CSV file, plain or gzipped, whose first line names the columns.

    Fields are used as bytes, unchanged: no field is null, and numbers stay text.  A row is shorter
    than 16 MiB.
    """

    path: str
    key: str
    value: str
    size: int | None = None

    @property
    def label(self) -> str:
        """The path."""
        return self.path

    def pairs(self) -> Iterator[Pair]:
        """The rows.

        ``ValueError`` for invalid CSV or a missing column names the file and, if known, the row.
        ``CorruptionError`` for damaged compression, and ``OSError``, have its path.
        """
        pa = pyarrow()
        self._check_names()
        with open_decompressed(self.path) as file:
            try:
                with self._reader(pa, file) as reader:
                    yield from table_pairs(reader, self.key, self.value, self.label)
            except pa.ArrowInvalid as error:
                raise ValueError(f"{self.path}: {error}") from None

    def _check_names(self) -> None:
        """Raise an error for missing or duplicate columns; ``pyarrow`` would use one of the
        duplicates."""
        with open_decompressed(self.path) as file:
            try:
                names = next(csv.reader(line.decode("utf-8-sig") for line in file), [])
            except (csv.Error, UnicodeDecodeError) as error:
                raise ValueError(
                    f"{self.path}: the first line does not name the columns: {error}"
                ) from None
        for name in (self.key, self.value):
            check_name(name, names, self.path)

    def _reader(self, pa: Any, file: BinaryIO) -> Any:
        module = pyarrow("pyarrow.csv")
        names = [self.key, self.value]
        return module.open_csv(
            file,
            # One thread, so that an error has the row.
            read_options=module.ReadOptions(block_size=_BLOCK, use_threads=False),
            parse_options=module.ParseOptions(newlines_in_values=True),
            convert_options=module.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pa.binary()),
                strings_can_be_null=False,
            ),
        )
