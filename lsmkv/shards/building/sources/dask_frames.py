"""Partitions of a Dask dataframe, each computed by the task that reads it.

A part includes the tasks of the frame's graph that its partition needs.  It computes them in its
own process, with Dask's synchronous scheduler, so a build needs no Dask cluster.  What partitions
share (mostly a shuffle) is computed once for each of them: write such a frame to Parquet first.

By default Dask converts columns of Python objects to text, even ``bytes`` objects.  Parts get the
frame's values.  For bytes that are not UTF-8, make the frame with
``dask.config.set({"dataframe.convert-string": False})``, or read it from a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lsmkv.shards.building.sources.arrow import check_columns, check_name, pyarrow, table_pairs
from lsmkv.shards.building.sources.part import Pair


@dataclass(frozen=True)
class DaskPart:
    """One partition.  Text becomes UTF-8, bytes are used unchanged.

    ``graph`` has the tasks that ``output`` needs.  They are pickled with ``cloudpickle``, as in
    Dask, because the functions in them may be unknown to the standard pickle.
    """

    graph: dict[Any, Any] = field(repr=False)
    output: Any
    key: str
    value: str
    label: str

    @property
    def size(self) -> None:
        """Unknown until it is computed."""

    def pairs(self) -> Iterator[Pair]:
        """Compute the partition.

        ``TypeError`` for values that are neither text nor bytes, and ``ValueError`` for a null,
        name the row in the partition, from 0.  An error of the computation gets a note that names
        the part.
        """
        try:
            frame = importlib.import_module("dask").get(self.graph, self.output)
        except Exception as error:
            error.add_note(f"while {self.label} was computed")
            raise
        return table_pairs(self._table(frame).to_batches(), self.key, self.value, self.label)

    def _table(self, frame: Any) -> Any:
        if not hasattr(frame, "columns"):
            kind = type(frame).__name__
            raise TypeError(f"{self.label} must be a dataframe, not {kind}")
        pa = pyarrow()
        columns = frame[[self.key, self.value]]
        try:
            table = pa.Table.from_pandas(columns, preserve_index=False)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            for name in (self.key, self.value):
                _check_items(columns[name], f"{self.label}: the column {name!r}")
            raise TypeError(
                f"{self.label} cannot be converted to an Arrow table: {error}"
            ) from error
        if table.num_rows:  # otherwise its columns may have no type
            check_columns(table.schema, self.key, self.value, self.label)
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        content = importlib.import_module("cloudpickle").dumps((self.graph, self.output))
        return _from_pickled, (content, self.key, self.value, self.label)


def _from_pickled(content: bytes, key: str, value: str, label: str) -> DaskPart:
    graph, output = importlib.import_module("cloudpickle").loads(content)
    return DaskPart(graph, output, key, value, label)


def is_dask(source: object) -> bool:
    """True for a Dask collection."""
    return hasattr(type(source), "__dask_graph__")


def dask_parts(frame: Any, key: str, value: str, label: str) -> Iterator[DaskPart]:
    """A part for each partition.  Raises ``ValueError`` for a missing column.

    Raises ``TypeError`` for other Dask collections.  The same for a frame that is persisted in a
    cluster: a build's tasks cannot read its partitions.
    """
    if not isinstance(frame, importlib.import_module("dask.dataframe").DataFrame):
        raise TypeError(f"{label} must be a Dask dataframe, not {type(frame).__name__}")
    for name in (key, value):
        check_name(name, list(frame.columns), label)
    cull = importlib.import_module("dask.optimization").cull
    columns = frame[[key, value]].optimize()
    graph = dict(columns.__dask_graph__())
    if any(type(task).__module__.split(".")[0] == "distributed" for task in graph.values()):
        raise TypeError(f"{label} is persisted in a cluster: pass the frame from before persist()")
    for at, output in enumerate(columns.__dask_keys__()):
        tasks, _ = cull(graph, [output])
        yield DaskPart(tasks, output, key, value, f"partition {at} of {label}")


def _check_items(series: Any, place: str) -> None:
    """Raise an error for the first item that is neither text nor bytes."""
    for row, item in enumerate(series):
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"{place}: row {row}: invalid Unicode text: {error}") from None
        elif not isinstance(item, (bytes, bytearray, memoryview)):
            raise TypeError(f"{place}: row {row}: must be text or bytes, not {type(item).__name__}")
