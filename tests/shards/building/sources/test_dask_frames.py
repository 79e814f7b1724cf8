"""Parts of Dask dataframes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from bulk_pairs import pairs_of

from lsmkv.shards.building.sources.dask_frames import DaskPart, dask_parts, is_dask
from lsmkv.shards.building.sources.part import Part

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

PAIRS = [(b"%04d" % (number * 7 % 1000), "\u00e9".encode() * (number % 9)) for number in range(500)]


def frame(pairs: Any = PAIRS, text: bool = True, partitions: int = 4) -> Any:
    columns = {"key": [key for key, _ in pairs], "value": [value for _, value in pairs]}
    if text:
        columns = {name: [item.decode() for item in items] for name, items in columns.items()}
    made = pd.DataFrame(columns) if text else pd.DataFrame(columns, dtype=object)
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(made.assign(n=1), npartitions=partitions, sort=False)


def parts_of_frame(source: Any, key: str = "key") -> list[DaskPart]:
    return list(dask_parts(source, key, "value", "mine"))


@pytest.mark.parametrize("text", [True, False])
def test_each_partition_is_a_part_that_can_be_pickled(text: bool) -> None:
    source = frame(text=text)
    parts = parts_of_frame(source)
    assert is_dask(source)
    assert [part.label for part in parts] == [f"partition {at} of mine" for at in range(4)]
    assert all(isinstance(part, Part) and part.size is None for part in parts)
    assert pairs_of(parts) == PAIRS
    assert pairs_of(pickle.loads(pickle.dumps(parts))) == PAIRS


def test_text_as_dask_holds_it_by_default() -> None:
    columns = pd.DataFrame({"key": ["a", "\u00e9"], "value": ["1", "2"]})
    parts = parts_of_frame(dd.from_pandas(columns, npartitions=2))
    assert pairs_of(parts) == [(b"a", b"1"), ("\u00e9".encode(), b"2")]


def test_bytes_that_are_no_text_and_a_mix_with_text() -> None:
    pairs = [(b"\xff", b"\x00"), ("\u00e9", b"\xfe"), (b"", "")]
    found = pairs_of(parts_of_frame(frame(pairs, text=False, partitions=1)))
    assert found == [(b"\xff", b"\x00"), ("\u00e9".encode(), b"\xfe"), (b"", b"")]


def test_a_pickled_part_has_its_own_partition_alone() -> None:
    pairs = [(b"%06d" % number, bytes(1000)) for number in range(1000)]
    whole, *parts = parts_of_frame(frame(pairs, text=False, partitions=1)) + parts_of_frame(
        frame(pairs, text=False, partitions=50)
    )
    assert len(pickle.dumps(parts[7])) < len(pickle.dumps(whole)) / 10


def test_functions_that_the_standard_pickle_cannot_name() -> None:
    source = frame().map_partitions(lambda part: part.assign(value=part.key + "!"))
    parts = pickle.loads(pickle.dumps(parts_of_frame(source)))
    assert pairs_of(parts) == [(key, key + b"!") for key, _ in PAIRS]


def test_a_frame_from_parquet_and_a_shuffled_one(tmp_path: Path) -> None:
    frame().compute().to_parquet(tmp_path / "data")
    source = dd.read_parquet(tmp_path / "data")
    assert sorted(pairs_of(parts_of_frame(source))) == sorted(PAIRS)
    parts = pickle.loads(pickle.dumps(parts_of_frame(frame().shuffle("key", npartitions=3))))
    assert sorted(pairs_of(parts)) == sorted(PAIRS)


@pytest.mark.parametrize("text", [True, False])
def test_empty_partitions_have_no_pairs(text: bool) -> None:
    bound = "0500" if text else b"0500"
    source = frame(sorted(PAIRS), text)
    parts = parts_of_frame(source[source.key > bound])
    assert pairs_of(parts) == [pair for pair in sorted(PAIRS) if pair[0] > b"0500"]
    assert list(parts[0].pairs()) == []


@pytest.mark.parametrize(
    ("item", "error", "reason"),
    [
        (1 << 70, TypeError, "row 1: must be text or bytes, not int"),
        (7, TypeError, "row 1: must be text or bytes, not int"),
        ("\ud800", ValueError, "row 1: invalid Unicode text"),
        (None, ValueError, "row 1, from 0: the column 'key' is null"),
        (float("nan"), ValueError, "row 1, from 0: the column 'key' is null"),
    ],
)
def test_items_that_are_no_bytes_are_named(item: object, error: type, reason: str) -> None:
    parts = parts_of_frame(frame([(b"k", b"v"), (item, b"v")], text=False, partitions=1))
    with pytest.raises(error, match=f"partition 0 of mine: .*{reason}"):
        pairs_of(parts)


def test_a_column_of_numbers_is_refused() -> None:
    source = dd.from_pandas(pd.DataFrame({"key": [1, 2], "value": ["a", "b"]}), npartitions=1)
    with pytest.raises(TypeError, match=r"partition 0 of mine: .*'key' has the type int64"):
        pairs_of(parts_of_frame(source))


def test_what_is_no_frame_with_these_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="mine has no column 'id'; its columns are 'key', 'value'"):
        parts_of_frame(frame(), key="id")
    for source in (frame().key, dask.delayed(1)):
        assert is_dask(source)
        with pytest.raises(TypeError, match="mine must be a Dask dataframe, not"):
            parts_of_frame(source)


def test_a_frame_that_is_persisted_in_this_process() -> None:
    assert pairs_of(parts_of_frame(frame().persist(scheduler="sync"))) == PAIRS


def test_a_frame_that_is_persisted_in_a_cluster_is_refused() -> None:
    distributed = pytest.importorskip("distributed")
    expressions = pytest.importorskip("dask.dataframe.dask_expr")
    name = ("persisted", 0)  # a frame as ``persist`` returns it, without a cluster
    graph = {name: distributed.Future("a partition of a cluster")}
    meta = pd.DataFrame({"key": ["k"], "value": ["v"]}).iloc[:0]
    source = expressions.from_graph(graph, meta, (None, None), [name], "persisted")
    with pytest.raises(TypeError, match="mine is persisted in a cluster"):
        parts_of_frame(source)


def test_an_error_of_the_computation_names_the_part() -> None:
    def fail(part: Any) -> Any:
        raise KeyError("the program's own")

    parts = parts_of_frame(frame().map_partitions(fail, meta=frame()._meta))
    with pytest.raises(KeyError, match="the program's own") as error:
        parts[1].pairs()
    assert "while partition 1 of mine was computed" in error.value.__notes__
