from __future__ import annotations

from collections.abc import Iterator

import pytest

import lsmkv
from lsmkv.tools.load import LineFormat, Loaded, load_lines, read_records


@pytest.fixture
def db() -> Iterator[lsmkv.DB]:
    with lsmkv.DB(":memory:", create_if_missing=True) as db:
        yield db


@pytest.mark.parametrize(
    ("line_format", "line", "record"),
    [
        ("plain", b"key\tvalue\n", (b"key", b"value")),
        ("plain", b"key\tvalue", (b"key", b"value")),
        ("plain", b"key\tvalue\r\n", (b"key", b"value")),
        ("plain", b"key\n", (b"key", b"")),
        ("plain", b"key\t\n", (b"key", b"")),
        ("plain", b"\tvalue\n", (b"", b"value")),
        ("plain", b"key\ta\tb\n", (b"key", b"a\tb")),
        ("plain", b"a\\tb\n", (b"a\\tb", b"")),
        ("plain", b"\xff\x00\n", (b"\xff\x00", b"")),
        ("escaped", b"a\\tb\t\\xff\\n\n", (b"a\tb", b"\xff\n")),
        ("hex", b"00ff\t0a\r\n", (b"\x00\xff", b"\n")),
    ],
)
def test_a_line_is_a_record(
    line_format: LineFormat, line: bytes, record: tuple[bytes, bytes]
) -> None:
    assert list(read_records([line], line_format, Loaded())) == [record]


def test_blank_lines_are_counted(db: lsmkv.DB) -> None:
    loaded = Loaded()
    load_lines(db, [b"\n", b"a\n", b"\r\n", b"b\n", b""], "plain", loaded, lambda _: None)
    assert loaded == Loaded(records=2, blank_lines=3)
    assert list(db) == [(b"a", b""), (b"b", b"")]


def test_progress_counts_every_record(db: lsmkv.DB) -> None:
    steps: list[int] = []
    lines = [b"%d\n" % number for number in range(2500)]
    load_lines(db, lines, "plain", Loaded(), steps.append)
    assert sum(steps) == 2500
    assert len(steps) > 1
    assert len(list(db)) == 2500


def test_a_bad_line_is_named_and_the_lines_before_it_are_kept(db: lsmkv.DB) -> None:
    loaded = Loaded()
    with pytest.raises(ValueError, match="line 3: not hexadecimal: 'zz'"):
        load_lines(db, [b"00\n", b"\n", b"zz\n", b"11\n"], "hex", loaded, lambda _: None)
    assert loaded.records == 1
    assert list(db) == [(b"\x00", b"")]
