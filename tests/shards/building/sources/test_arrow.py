"""Parts of Arrow tables in memory."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

import pytest
from bulk_pairs import pairs_of

from lsmkv.shards.building.sources.arrow import ArrowPart, arrow_parts, is_arrow, pyarrow
from lsmkv.shards.building.sources.part import Part

pa = pytest.importorskip("pyarrow")

KEYS = [b"b", "\u00e9".encode(), b"", b"b"]
VALUES = [b"1", b"22", "\U0001f41c".encode(), b""]
PAIRS = list(zip(KEYS, VALUES, strict=True))


def table(kind: Any) -> Any:
    texts = [[item.decode() for item in items] for items in (KEYS, VALUES)]
    columns = [pa.array(items, pa.string()).cast(kind) for items in texts]
    return pa.table({"other": [1, 2, 3, None], "key": columns[0], "value": columns[1]})


def parts_of_table(source: Any, part_bytes: int = 1 << 20, key: str = "key") -> list[ArrowPart]:
    return list(arrow_parts(source, key, "value", "mine", part_bytes))


@pytest.mark.parametrize(
    "kind",
    [
        *("string", "large_string", "string_view", "binary", "large_binary", "binary_view"),
        "dictionary",
    ],
)
def test_columns_of_bytes_and_text_of_every_kind(kind: str) -> None:
    made = pa.dictionary(pa.int32(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
    (part,) = parts_of_table(table(made))
    assert list(part.pairs()) == PAIRS
    assert list(part.pairs()) == PAIRS
    assert list(pickle.loads(pickle.dumps(part)).pairs()) == PAIRS


def test_bytes_of_one_width_and_bytes_that_are_no_text() -> None:
    source = pa.table(
        {"key": pa.array([b"\xff\xff", b"\x00\x01"], pa.binary(2)), "value": [b"\xff", b"\x00"]}
    )
    assert pairs_of(parts_of_table(source)) == [(b"\xff\xff", b"\xff"), (b"\x00\x01", b"\x00")]


def test_batches_readers_frames_and_slices() -> None:
    whole = table(pa.string())
    batch = whole.to_batches()[0]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": KEYS, "value": [value.decode() for value in VALUES]})
    for source in (whole, batch, whole.to_reader(max_chunksize=3), frame):
        assert is_arrow(source)
        assert pairs_of(parts_of_table(source)) == PAIRS
    assert pairs_of(parts_of_table(whole.slice(1, 2))) == PAIRS[1:3]
    assert pairs_of(parts_of_table(pa.concat_tables([whole, whole]))) == PAIRS * 2
    assert parts_of_table(whole.slice(0, 0)) == []
    assert not is_arrow([whole])


def test_large_tables_are_cut_and_small_batches_joined() -> None:
    keys = [b"%06d" % number for number in range(10_000)]
    source = pa.table({"key": keys, "value": [bytes(90)] * len(keys)})
    for chunk in (10_000, 7):
        parts = parts_of_table(source.to_reader(max_chunksize=chunk), part_bytes=100_000)
        assert all(100_000 <= part.size < 102_000 for part in parts[:-1])
        assert parts[-1].size < 102_000
        assert pairs_of(parts) == [(key, bytes(90)) for key in keys]
    assert len(parts) == 11
    assert parts[1].label == f"rows from {parts[0].table.num_rows} on of mine"


def test_rows_of_uneven_sizes_make_parts_of_about_one_size() -> None:
    values = [b"v"] * 5000 + [bytes(50_000)] * 20 + [b"v"] * 5000
    source = pa.table({"key": [b"k"] * len(values), "value": values})
    parts = parts_of_table(source, part_bytes=60_000)
    assert [value for _, value in pairs_of(parts)] == values
    assert all(60_000 <= part.size < 180_000 for part in parts[:-1])


@pytest.mark.parametrize("kind", ["dictionary", "string_view"])
def test_parts_of_shared_values_do_not_count_all_of_them(kind: str) -> None:
    values = pa.array([f"{number % 100:0200}" for number in range(10_000)])
    column = values.dictionary_encode() if kind == "dictionary" else values.cast(pa.string_view())
    source = pa.table({"key": column, "value": column})
    parts = parts_of_table(source, part_bytes=200_000)
    assert len(parts) == 21
    assert all(len(pickle.dumps(part)) < 250_000 for part in parts)


def test_a_pickled_part_has_its_own_rows_alone() -> None:
    source = pa.table({"key": [b"%06d" % n for n in range(10_000)], "value": [bytes(90)] * 10_000})
    part = parts_of_table(source, part_bytes=10_000)[50]
    assert isinstance(part, Part)
    content = pickle.dumps(part)
    assert len(content) < 20_000
    again = pickle.loads(content)
    assert list(again.pairs()) == list(part.pairs())
    assert (again.label, again.first_row) == (part.label, part.first_row)


def test_a_null_is_refused_with_its_row() -> None:
    keys = [b"%d" % number for number in range(100)]
    for at in (0, 99):
        column = [None if row == at else b"v" for row in range(100)]
        for source in (
            pa.table({"key": keys, "value": column}),
            pa.table({"key": keys, "value": pa.array(column).dictionary_encode()}),
        ):
            parts = parts_of_table(source, part_bytes=100)
            assert len(parts) > 2
            with pytest.raises(ValueError, match=rf"mine: row {at}, from 0: .*'value' is null"):
                pairs_of(parts)


def test_rows_are_counted_over_the_batches_of_a_part() -> None:
    batches = [pa.table({"key": [b"k"] * 3, "value": [b"v", b"v", last]}) for last in (b"v", None)]
    (part,) = parts_of_table(pa.concat_tables(batches))
    with pytest.raises(ValueError, match="mine: row 5, from 0"):
        list(part.pairs())


@pytest.mark.parametrize(
    ("items", "kind"),
    [([1, 2], "int64"), ([1.5], "double"), ([True], "bool"), ([None], "null"), ([[b"k"]], "list")],
)
def test_other_types_are_refused_before_any_part(items: list[object], kind: str) -> None:
    source = pa.table({"key": items, "value": [b"v"] * len(items)})
    with pytest.raises(
        TypeError,
        match=f"mine: the column 'key' has the type {kind}.*convert others first, for example",
    ):
        parts_of_table(source)


def test_columns_that_are_missing_or_ambiguous_are_refused() -> None:
    source = pa.table([[b"k"], [b"k"], [b"v"]], names=["key", "key", "value"])
    with pytest.raises(ValueError, match="more than one column 'key'"):
        parts_of_table(source)
    with pytest.raises(ValueError, match="no column 'id'; its columns are 'key', 'key', 'value'"):
        parts_of_table(source, key="id")


def test_what_arrow_cannot_hold_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": [b"k", 1 << 70], "value": [b"v", b"v"]})
    for source in (frame, pa.chunked_array([[b"k"]])):
        with pytest.raises(TypeError, match="mine cannot be converted to an Arrow table"):
            parts_of_table(source)


def test_without_pyarrow_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        pyarrow()
    monkeypatch.undo()
    assert pyarrow() is importlib.import_module("pyarrow")
