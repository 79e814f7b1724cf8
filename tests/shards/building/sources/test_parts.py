"""What a program may pass as the source of a build."""

from __future__ import annotations

import functools
import gzip
import pickle
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from lsmkv.files.exchange import json_line, write_raw
from lsmkv.shards.building.sources.part import PackedPart, Part
from lsmkv.shards.building.sources.parts import parts_of

Pairs = list[tuple[bytes, bytes]]
PAIRS = [(b"b", b"1"), (b"a", b"2"), (b"b", b"3"), ("\u00e9".encode(), b"\xff")]
TEXTS = [(b"b", b"1"), (b"a", b"2"), ("\u00e9".encode(), b"3")]


def squares() -> Iterator[tuple[bytes, bytes]]:
    for number in range(3):
        yield b"%d" % number, b"%d" % number**2


SQUARES = list(squares())


class OwnPart:
    """A class of the program's own."""

    label = "own"
    size = None

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        yield from SQUARES


def pairs_of(source: object, **settings: Any) -> Pairs:
    """The pairs of all parts, each of which is pickled first, as for another process."""
    parts = [pickle.loads(pickle.dumps(part)) for part in parts_of(source, **settings)]
    assert all(isinstance(part, Part) for part in parts)
    return [pair for part in parts for pair in part.pairs()]


def written(directory: Path, name: str, content: bytes) -> Path:
    path = directory / name
    path.write_bytes(content)
    return path


def lines(pairs: Pairs) -> bytes:
    return b"".join(json_line(key, value) for key, value in pairs)


def raw(pairs: Pairs) -> bytes:
    return b"".join(write_raw(pairs))


def csv(pairs: Pairs) -> bytes:
    return b"key,value\n" + b"".join(b"%b,%b\n" % pair for pair in pairs)


# Pairs


@pytest.mark.parametrize(
    "source",
    [PAIRS, tuple(PAIRS), iter(PAIRS), [list(pair) for pair in PAIRS], (pair for pair in PAIRS)],
    ids=["list", "tuple", "iterator", "lists", "generator"],
)
def test_an_iterable_of_pairs(source: object) -> None:
    assert pairs_of(source) == PAIRS


def test_a_mapping_gives_its_items() -> None:
    assert pairs_of({b"k": b"v", b"a": b"b"}) == [(b"k", b"v"), (b"a", b"b")]
    assert pairs_of([{b"k": b"v"}, {b"a": b"b"}]) == [(b"k", b"v"), (b"a", b"b")]


@pytest.mark.parametrize("source", [[], (), {}, iter(()), [[]], [[], {}]])
def test_nothing_is_no_part(source: object) -> None:
    assert list(parts_of(source)) == []


def test_a_generator_is_read_no_further_than_the_parts_that_were_asked_for() -> None:
    taken = count()
    parts = parts_of(((b"%09d" % number, bytes(83)) for number in taken), part_bytes=1000)
    assert next(taken) == 1  # one pair tells that it is pairs
    first, second = islice(parts, 2)
    assert len(list(first.pairs())) == len(list(second.pairs())) == 10
    assert next(taken) == 21


def test_the_same_source_gives_the_same_parts() -> None:
    pairs = [(b"%06d" % (number * 7919 % 10_000), bytes(number % 100)) for number in range(10_000)]
    for source in (pairs, [pairs[:5000], pairs[5000:]]):
        parts = list(parts_of(source, part_bytes=10_000))
        assert parts == list(parts_of(source, part_bytes=10_000))
        assert len(parts) > 20
        assert [pair for part in parts for pair in part.pairs()] == pairs


# Other sources


def test_parts_of_many_kinds_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, "file.json", lines(PAIRS))

    def source() -> Iterator[object]:
        yield path
        yield PAIRS[:2]
        yield squares
        yield str(path)
        yield OwnPart()
        yield PackedPart.pack(PAIRS, "packed")
        yield (pair for pair in PAIRS)
        yield functools.partial(dict, SQUARES)

    expected = PAIRS + PAIRS[:2] + SQUARES + PAIRS + SQUARES + PAIRS + PAIRS + SQUARES
    assert pairs_of(source()) == pairs_of(list(source())) == expected
    labels = [part.label for part in parts_of(source())]
    assert labels[:3] == [str(path), "pairs 0 to 1 of source[1]", "source[2], squares()"]
    assert labels[-1].startswith("source[7], functools.partial(")


def test_a_single_thing_needs_no_list(tmp_path: Path) -> None:
    path = written(tmp_path, "file", lines(PAIRS))
    assert pairs_of(path) == pairs_of(str(path)) == PAIRS
    assert pairs_of(squares) == pairs_of(OwnPart()) == SQUARES


def test_the_ending_or_the_content_tells_the_format(tmp_path: Path) -> None:
    for name, content in (
        ("a.json", lines(PAIRS)),
        ("a.jsonl", lines(PAIRS)),
        ("a.raw", raw(PAIRS)),
        ("a.JSONL.gz", gzip.compress(lines(PAIRS))),
        ("a.raw.gz", gzip.compress(raw(PAIRS))),
        ("a.gz", gzip.compress(raw(PAIRS))),
        ("lines", lines(PAIRS)),
        ("raw.bin", raw(PAIRS)),
        ("compressed", gzip.compress(lines(PAIRS))),
        ("empty", b""),
    ):
        path = written(tmp_path, name, content)
        assert pairs_of(path) == (PAIRS if content else [])
        (part,) = parts_of(path)
        assert (part.label, part.size) == (str(path), len(content))


def test_files_of_columns(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    feather = pytest.importorskip("pyarrow.feather")
    keys, values = ([item.decode() for item in items] for items in zip(*TEXTS, strict=True))
    table = pa.table({"id": keys, "text": values})
    content = b"text,id\n" + b"".join(b"%b,%b\n" % (value, key) for key, value in TEXTS)
    written(tmp_path, "a.csv", content)
    written(tmp_path, "b.CSV.gz", gzip.compress(content))
    for name in ("c.parquet", "d"):
        parquet.write_table(table, tmp_path / name, row_group_size=2)
    for name in ("e.feather", "f.arrow", "g"):
        feather.write_feather(table, tmp_path / name)
    columns = {"key": "id", "value": "text"}
    assert pairs_of(tmp_path, **columns) == TEXTS * 7
    assert pairs_of(sorted(tmp_path.iterdir()), **columns) == TEXTS * 7
    with pytest.raises(ValueError, match=r"/c\.parquet has no column 'key'"):
        pairs_of(tmp_path / "c.parquet")


def test_a_directory_gives_its_files_by_name(tmp_path: Path) -> None:
    for name, pairs in (("b.json", PAIRS[2:]), ("a.json", PAIRS[:2])):
        written(tmp_path, name, lines(pairs))
    written(tmp_path, "_SUCCESS", b"nonsense")
    assert pairs_of(tmp_path) == pairs_of([tmp_path]) == PAIRS


def test_a_relative_path_is_found_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "file.json", lines(PAIRS))
    monkeypatch.chdir(tmp_path)
    (part,) = parts_of("file.json")
    monkeypatch.chdir("/")
    assert list(part.pairs()) == PAIRS


def test_tables_and_frames(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    keys, values = ([item.decode() for item in items] for items in zip(*TEXTS, strict=True))
    table = pa.table({"key": keys, "value": values})
    assert pairs_of(table) == TEXTS
    assert pairs_of([table, table.to_batches()[0], table.to_reader()]) == TEXTS * 3
    assert len(list(parts_of(table, part_bytes=1))) == 3
    pandas = pytest.importorskip("pandas")
    dask = pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame({"key": keys, "value": values, "label": 1, "size": 2, "pairs": 3})
    assert pairs_of(frame) == TEXTS
    source = dask.from_pandas(frame, npartitions=2, sort=False)
    assert pairs_of(source) == pairs_of([source]) == TEXTS
    assert next(parts_of([source])).label == "partition 0 of source[0]"


# What is refused


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (7, "not a source of pairs: int; pass pairs"),
        (None, "not a source of pairs: NoneType"),
        (b"bytes", "not a source of pairs: bytes"),
        (dict, "not a source of pairs: the class dict"),
        ([1 << 70], r"source\[0\] is not a part: int; pass pairs"),
        ([SQUARES, b"bytes"], r"source\[1\] is not a part: bytes"),
        ([SQUARES, OwnPart], r"source\[1\] is not a part: the class OwnPart"),
        ([SQUARES, (b"k", b"v")], r"source\[1\] is a pair, but others are parts"),
        ([("k", "v")], "the source: pair 0: a key must be bytes, not str: encode it first"),
        ([(b"k", "v")], "the source: pair 0: a value must be bytes, not str: encode it first"),
        ([(1 << 70, b"v")], "the source: pair 0: a key must be bytes, not int"),
        ([(b"k", b"v"), squares], "the source: pair 1: a pair must be a tuple .* not function"),
        ([(b"k", b"v", b"t")], "the source: pair 0: a pair must be a tuple .* not a tuple of 3"),
        ([SQUARES, [(b"k", None)]], r"source\[1\]: pair 0: a value must be bytes, not NoneType"),
        ([[b"k", b"v"], SQUARES], "the source: pair 1: a pair must be a tuple .* not a tuple of 3"),
    ],
)
def test_what_is_no_source_is_named(source: object, reason: str) -> None:
    with pytest.raises(TypeError, match=f"^{reason}"):
        list(parts_of(source))


def test_a_wrong_source_is_refused_at_once_and_a_wrong_item_in_its_turn() -> None:
    with pytest.raises(TypeError):
        parts_of(7)
    with pytest.raises(ValueError, match="part_bytes must be 1 or more, not 0"):
        parts_of(PAIRS, part_bytes=0)
    with pytest.raises(ValueError, match="'id' cannot contain both the keys and the values"):
        parts_of(PAIRS, key="id", value="id")
    parts = parts_of([SQUARES, 7])
    assert list(next(parts).pairs()) == SQUARES
    with pytest.raises(TypeError, match=r"source\[1\]"):
        next(parts)


def test_paths_that_cannot_be_read_twice_or_here_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="standard input"):
        list(parts_of(["-"]))
    with pytest.raises(ValueError, match=r"^s3://bucket/data\.parquet: not a path on this machine"):
        list(parts_of("s3://bucket/data.parquet"))
    with pytest.raises(FileNotFoundError) as error:
        list(parts_of([tmp_path / "none"]))
    assert error.value.filename == str(tmp_path / "none")


def test_a_function_that_cannot_be_pickled_is_refused_by_pickle() -> None:
    (part,) = parts_of(lambda: SQUARES)
    assert list(part.pairs()) == SQUARES
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(part)
