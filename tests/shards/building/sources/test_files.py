"""Parts of the files that an export writes."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from lsmkv.errors import CorruptionError
from lsmkv.files.exchange import json_line, write_raw
from lsmkv.shards.building.sources.files import FilePart

PAIRS = [(b"b", b"1"), ("\u00e9".encode(), b"\xff\n"), (b"b", b"2"), (b"", bytes(3000))]
LINES = b"".join(json_line(key, value) for key, value in PAIRS)
RAW = b"".join(write_raw(PAIRS))


def part_of(tmp_path: Path, content: bytes) -> FilePart:
    path = tmp_path / "file"
    path.write_bytes(content)
    return FilePart(str(path), len(content))


@pytest.mark.parametrize("content", [LINES, RAW], ids=["json", "raw"])
@pytest.mark.parametrize("compressed", [False, True])
def test_the_content_tells_the_format(tmp_path: Path, content: bytes, compressed: bool) -> None:
    part = part_of(tmp_path, gzip.compress(content) if compressed else content)
    assert list(part.pairs()) == PAIRS
    assert list(part.pairs()) == PAIRS
    assert pickle.loads(pickle.dumps(part)) == part
    assert (part.label, part.size) == (part.path, Path(part.path).stat().st_size)


def test_members_of_gzip_follow_each_other(tmp_path: Path) -> None:
    line = json_line(b"k", b"v")
    part = part_of(tmp_path, gzip.compress(line) + gzip.compress(line))
    assert list(part.pairs()) == [(b"k", b"v")] * 2


def test_an_empty_file_has_no_pairs(tmp_path: Path) -> None:
    assert list(part_of(tmp_path, b"").pairs()) == []


def test_a_bad_line_is_named_with_its_file(tmp_path: Path) -> None:
    for content in (LINES + b"nonsense\n", gzip.compress(LINES + b"nonsense\n")):
        part = part_of(tmp_path, content)
        with pytest.raises(ValueError, match=r"/file: line 5: not JSON"):
            list(part.pairs())


def test_every_cut_and_flip_of_a_raw_file_is_damage(tmp_path: Path) -> None:
    content = b"".join(write_raw(PAIRS[:3]))
    for at in range(13, len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1
        for damaged in (content[:at], bytes(flipped)):
            part = part_of(tmp_path, damaged)
            with pytest.raises(CorruptionError, match="in the frame after record") as error:
                list(part.pairs())
            assert error.value.path == part.path
            assert error.value.offset is not None


def test_every_cut_of_gzip_is_damage(tmp_path: Path) -> None:
    content = gzip.compress(LINES)
    for end in range(2, len(content)):
        part = part_of(tmp_path, content[:end])
        with pytest.raises(CorruptionError, match="damaged gzip") as error:
            list(part.pairs())
        assert error.value.path == part.path


def test_flips_in_gzip_are_damage(tmp_path: Path) -> None:
    content = gzip.compress(LINES, mtime=0)
    for at in range(10, len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 16
        with pytest.raises((CorruptionError, ValueError)) as error:
            list(part_of(tmp_path, bytes(flipped)).pairs())
        assert "/file" in str(error.value)


def test_a_missing_file_and_standard_input_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        list(FilePart(str(tmp_path / "none")).pairs())
    assert error.value.filename == str(tmp_path / "none")
    with pytest.raises(ValueError, match="standard input"):
        FilePart("-")
