"""Parquet files, a part per row group, and Arrow files, a part per group of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lsmkv.shards.building.sources.arrow import arrow_file, check_columns, pyarrow, table_pairs
from lsmkv.shards.building.sources.inputs import InputFile
from lsmkv.shards.building.sources.part import Pair

PARQUET_MAGIC = b"PAR1"
ARROW_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class ParquetPart:
    """A row group of a Parquet file.  Page checksums are verified if the file has them.

    ``size`` is the uncompressed size of the row group, and ``first_row`` the number of its first
    row in the file.
    """

    path: str
    row_group: int
    key: str
    value: str
    size: int | None = None
    first_row: int = 0

    @property
    def label(self) -> str:
        """The path and the row group."""
        return f"{self.path}, row group {self.row_group}"

    def pairs(self) -> Iterator[Pair]:
        """The rows: see :func:`~lsmkv.shards.building.sources.arrow.table_pairs`.

        ``CorruptionError`` and ``OSError`` name the file.
        """
        with arrow_file(self.path), _open_parquet(self.path) as file:
            check_columns(file.schema_arrow, self.key, self.value, self.path)
            batches = file.iter_batches(row_groups=[self.row_group], columns=[self.key, self.value])
            yield from table_pairs(batches, self.key, self.value, self.label, self.first_row)


def parquet_parts(file: InputFile, key: str, value: str) -> Iterator[ParquetPart]:
    """A part for each row group; reads only the footer."""
    with arrow_file(file.path), _open_parquet(file.path) as parquet:
        check_columns(parquet.schema_arrow, key, value, file.path)
        groups = [parquet.metadata.row_group(at) for at in range(parquet.num_row_groups)]
        figures = [(group.num_rows, group.total_byte_size) for group in groups]
    first = 0
    for at, (rows, size) in enumerate(figures):
        yield ParquetPart(file.path, at, key, value, size, first)
        first += rows


@dataclass(frozen=True)
class ArrowFilePart:
    """The batches ``start`` to ``stop - 1`` of a file in Arrow's file format (Feather 2).

    ``size`` is their share of the file's size.  The file has no checksums: damage that keeps
    lengths and offsets intact is not found.
    """

    path: str
    start: int
    stop: int
    key: str
    value: str
    size: int | None = None

    @property
    def label(self) -> str:
        """The path and the batches."""
        return f"{self.path}, batches {self.start} to {self.stop - 1}"

    def pairs(self) -> Iterator[Pair]:
        """The rows; messages count them from the first row of ``start``.

        See :func:`~lsmkv.shards.building.sources.arrow.table_pairs`; ``CorruptionError`` and
        ``OSError`` name the file.
        """
        with arrow_file(self.path), pyarrow().OSFile(self.path) as file:
            yield from table_pairs(self._batches(file), self.key, self.value, self.label)

    def _batches(self, file: Any) -> Iterator[Any]:
        ipc = pyarrow("pyarrow.ipc")
        schema = ipc.open_file(file).schema
        check_columns(schema, self.key, self.value, self.path)
        fields = sorted(map(schema.get_field_index, (self.key, self.value)))
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields))
        for at in range(self.start, self.stop):
            batch = reader.get_batch(at)
            batch.validate(full=True)  # its offsets come from the file
            yield batch


def arrow_file_parts(
    file: InputFile, key: str, value: str, part_bytes: int
) -> Iterator[ArrowFilePart]:
    """Parts of about ``part_bytes`` of the file, as if all its batches had the same size."""
    with arrow_file(file.path), pyarrow().OSFile(file.path) as opened:
        reader = pyarrow("pyarrow.ipc").open_file(opened)
        check_columns(reader.schema, key, value, file.path)
        number = reader.num_record_batches
    step = max(1, number * part_bytes // max(1, file.size))
    for start in range(0, number, step):
        stop = min(start + step, number)
        share = file.size * (stop - start) // number
        yield ArrowFilePart(file.path, start, stop, key, value, share)


def _open_parquet(path: str) -> Any:
    return pyarrow("pyarrow.parquet").ParquetFile(path, page_checksum_verification=True)
