"""Parts of Parquet and Arrow files."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bulk_pairs import pairs_of

from lsmkv.errors import CorruptionError
from lsmkv.shards.building.sources.arrow_files import (
    ArrowFilePart,
    ParquetPart,
    arrow_file_parts,
    parquet_parts,
)
from lsmkv.shards.building.sources.inputs import InputFile, find_inputs

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

PAIRS = [(b"%04d" % (number * 7 % 1000), b"\xff" * (number % 50)) for number in range(1000)]
Cut = Callable[[InputFile], list[Any]]


def table() -> Any:
    keys, values = zip(*PAIRS, strict=True)
    return pa.table({"n": range(len(keys)), "value": values, "key": keys})


def parquet(path: Path, source: Any = None, **settings: Any) -> InputFile:
    settings = {"row_group_size": 300, "compression": "none"} | settings
    pq.write_table(table() if source is None else source, path, **settings)
    return find_inputs(str(path))[0]


def arrow(path: Path, source: Any = None, **settings: Any) -> InputFile:
    settings = {"chunksize": 100, "compression": "uncompressed"} | settings
    feather.write_feather(table() if source is None else source, path, **settings)
    return find_inputs(str(path))[0]


def cut_parquet(file: InputFile) -> list[ParquetPart]:
    return list(parquet_parts(file, "key", "value"))


def cut_arrow(file: InputFile) -> list[ArrowFilePart]:
    return list(arrow_file_parts(file, "key", "value", 10_000))


both = pytest.mark.parametrize(("write", "cut"), [(parquet, cut_parquet), (arrow, cut_arrow)])
Write = Callable[..., InputFile]


@both
def test_parts_have_all_rows_and_can_be_pickled(tmp_path: Path, write: Write, cut: Cut) -> None:
    file = write(tmp_path / "file")
    parts = cut(file)
    assert pairs_of(parts) == PAIRS
    assert pairs_of(parts) == PAIRS
    assert pickle.loads(pickle.dumps(parts)) == parts == cut(file)
    assert len({part.label for part in parts}) == len(parts) > 2
    assert all(0 < part.size <= file.size for part in parts)
    assert all(part.label.startswith(file.path) for part in parts)


@both
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_files(tmp_path: Path, write: Write, cut: Cut, compression: str) -> None:
    assert pairs_of(cut(write(tmp_path / "file", compression=compression))) == PAIRS


@both
def test_a_file_without_rows_has_no_pairs(tmp_path: Path, write: Write, cut: Cut) -> None:
    assert pairs_of(cut(write(tmp_path / "file", table().slice(0, 0)))) == []


@both
def test_wrong_columns_are_refused_before_any_part(tmp_path: Path, write: Write, cut: Cut) -> None:
    numbers = pa.table({"key": [1], "value": [b"v"]})
    with pytest.raises(TypeError, match="/file: the column 'key' has the type int64"):
        cut(write(tmp_path / "file", numbers))
    with pytest.raises(ValueError, match="/file has no column 'value'; its columns are 'key'"):
        cut(write(tmp_path / "file", pa.table({"key": [b"k"]})))


def test_row_groups_are_parts_and_rows_counted_in_the_file(tmp_path: Path) -> None:
    values = [b"v"] * 500 + [None] + [b"v"] * 99
    file = parquet(tmp_path / "file", pa.table({"key": [b"k"] * 600, "value": values}))
    first, second = cut_parquet(file)
    assert (first.row_group, second.row_group, second.first_row) == (0, 1, 300)
    assert len(list(first.pairs())) == 300
    with pytest.raises(ValueError, match=r"/file, row group 1: row 500, from 0: .*null"):
        list(second.pairs())


@both
def test_a_cut_file_is_damage(tmp_path: Path, write: Write, cut: Cut) -> None:
    file = write(tmp_path / "file")
    content = Path(file.path).read_bytes()
    for end in [*range(0, 100, 9), *range(100, len(content), 997), len(content) - 1]:
        Path(file.path).write_bytes(content[:end])
        with pytest.raises(CorruptionError) as error:
            pairs_of(cut(file))
        assert error.value.path == file.path


@both
def test_flips_are_damage_or_harmless(tmp_path: Path, write: Write, cut: Cut) -> None:
    settings = {"write_page_checksum": True} if write is parquet else {"compression": "zstd"}
    file = write(tmp_path / "file", **settings)
    content = Path(file.path).read_bytes()
    reasons: list[str] = []
    for at in range(0, len(content), 101):
        flipped = bytearray(content)
        flipped[at] ^= 64
        Path(file.path).write_bytes(flipped)
        try:
            pairs_of(cut(file))
        except MemoryError:  # a length
            continue
        except (CorruptionError, ValueError, TypeError) as error:  # a column's name may be hit
            reasons.append(str(error))
    assert len(reasons) > 10
    assert all(file.path in reason for reason in reasons)


def test_checksums_of_parquet_pages_are_verified(tmp_path: Path) -> None:
    file = parquet(tmp_path / "file", write_page_checksum=True, write_statistics=False)
    content = Path(file.path).read_bytes()
    at = content.index(b"\xff" * 49)
    Path(file.path).write_bytes(content[:at] + b"\xfe" + content[at + 1 :])
    with pytest.raises(CorruptionError, match="CRC checksum verification failed"):
        pairs_of(cut_parquet(file))


@both
def test_a_file_that_is_gone_is_named(tmp_path: Path, write: Write, cut: Cut) -> None:
    file = write(tmp_path / "file")
    parts = cut(file)
    Path(file.path).unlink()
    for call in (lambda: cut(file), lambda: pairs_of(parts)):
        with pytest.raises(FileNotFoundError) as error:
            call()
        assert error.value.filename == file.path
