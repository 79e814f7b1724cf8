"""Parts of CSV files."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from lsmkv.errors import CorruptionError
from lsmkv.shards.building.sources.csv_files import CsvPart

pytest.importorskip("pyarrow")


def part_of(tmp_path: Path, content: bytes) -> CsvPart:
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    return CsvPart(str(path), "key", "value", len(content))


@pytest.mark.parametrize("compressed", [False, True])
def test_fields_are_the_bytes_that_they_are(tmp_path: Path, compressed: bool) -> None:
    content = (
        b"\xef\xbb\xbfkey,value,other\n"
        b'b,"a ""quoted"", value\nof two lines",x\n'
        b"a,007,x\n\xff,NULL,x\n,,\r\n\xc3\xa9,1e3,x\nb,2,x"
    )
    part = part_of(tmp_path, gzip.compress(content) if compressed else content)
    expected = [
        (b"b", b'a "quoted", value\nof two lines'),
        (b"a", b"007"),
        (b"\xff", b"NULL"),
        (b"", b""),
        ("\u00e9".encode(), b"1e3"),
        (b"b", b"2"),
    ]
    assert list(part.pairs()) == expected
    assert list(part.pairs()) == expected
    assert pickle.loads(pickle.dumps(part)) == part
    assert part.label == part.path


def test_large_files_are_read_in_blocks(tmp_path: Path) -> None:
    rows = [(b"%07d" % number, b"a line\n" * 150) for number in range(20_000)]
    content = b"key,value\n" + b"".join(b'%b,"%b"\n' % row for row in rows)
    assert list(part_of(tmp_path, content).pairs()) == rows


def test_a_file_of_names_alone_has_no_pairs(tmp_path: Path) -> None:
    assert list(part_of(tmp_path, b"key,value\n").pairs()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has no column 'key'; its columns are none"),
        (b"id,value\n", "has no column 'key'; its columns are 'id', 'value'"),
        (b"key,value,key\n1,2,3\n", "has more than one column 'key'"),
        (b"key,value\na,1\nb,2,3\n", "CSV parse error: Row #3: Expected 2 columns, got 3"),
        (b"key,value,\xff\n", "the first line does not name the columns"),
    ],
)
def test_what_is_no_such_csv_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"/file\.csv:? {reason}"):
        list(part_of(tmp_path, content).pairs())


def test_damaged_compression_is_damage(tmp_path: Path) -> None:
    content = gzip.compress(b"key,value\n" + b"".join(b"%d,v\n" % n for n in range(1000)))
    flipped = bytearray(content)
    flipped[-5] ^= 1
    for damaged in (content[:1000], content[:-1], bytes(flipped)):
        part = part_of(tmp_path, damaged)
        with pytest.raises(CorruptionError, match="damaged gzip") as error:
            list(part.pairs())
        assert error.value.path == part.path


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    part = part_of(tmp_path, b"key,value\n")
    Path(part.path).unlink()
    with pytest.raises(FileNotFoundError) as error:
        list(part.pairs())
    assert error.value.filename == part.path
