"""Runs of deletions: many deleted user keys as one entry of a scan's chunk.

The readers of blocks and memtables combine long runs of deletions, and the merging iterator steps
over a run by a bisection.  With the keys of a run, a block iterator also steps over the older
versions that the run hides, before it builds their keys and values.  A run is completed by the
thread that makes it; then any thread may read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lsmkv.engine.format.key_order import KeyOrder, Position

if TYPE_CHECKING:
    from mypy_extensions import i64

SHORTEST_RUN: Final = 8
"""Fewer deletions in a row stay separate entries: a run costs as much as a few of these."""


class DeletionRun:
    """Deleted user keys in ascending order, with nothing visible between them in their source.

    In a chunk it is the entry ``(user key, None, -1, run)``, whose user key is ``keys[first]``.
    """

    __slots__ = ("first", "keys", "sequences")

    def __init__(self, keys: list[bytes], first: i64, sequences: list[int] | None) -> None:
        self.keys = keys
        self.first: i64 = first
        """Index of the first key that has no entry of its own."""
        self.sequences = sequences
        """The sequence of each deletion; None where their source is known to be newer than the
        sources after it."""


def add_deletion(
    found: list[Any],
    run: DeletionRun | None,
    in_a_row: i64,
    user_key: bytes,
    sequence: int,
    with_sequence: bool,
) -> DeletionRun | None:
    """Append the ``in_a_row``-th deletion since the last value to a chunk: as an entry, or, once
    there are many, to the ``run`` of those before.  Returns the run that it is in.

    A run begins after ``SHORTEST_RUN`` deletions that are entries.  It holds their keys too, so
    that all of them hide older entries.
    """
    if in_a_row <= SHORTEST_RUN:
        found.append((user_key, None, sequence) if with_sequence else (user_key, None))
        return None
    if run is None:
        last: list[Any] = found[len(found) - SHORTEST_RUN :]
        keys: list[bytes] = [entry[0] for entry in last]
        run = DeletionRun(
            keys, SHORTEST_RUN, [entry[2] for entry in last] if with_sequence else None
        )
        found.append((user_key, None, -1, run))
    run.keys.append(user_key)
    if run.sequences is not None:
        run.sequences.append(sequence)
    return run


def run_in(entry: Any) -> DeletionRun | None:
    """The run that an entry of a chunk stands for, if any."""
    fields: tuple[Any, ...] = entry
    if len(fields) != 4:
        return None
    run: DeletionRun = fields[3]
    return run


def entries_from(entries: list[Any], lower: Position, order: KeyOrder) -> list[Any]:
    """The entries of a chunk after a position, which may lie within a run."""
    cut: i64 = order.count_before(entries, lower)
    rest = entries[cut:]
    run = run_in(entries[cut - 1]) if cut > 0 else None
    if run is not None:
        first = _count_before(run.keys, lower, order)
        if first < len(run.keys):
            run = DeletionRun(run.keys, first, run.sequences)
            rest.insert(0, (run.keys[first], None, -1, run))
    return rest


def entries_before(entries: list[Any], upper: Position, order: KeyOrder) -> list[Any]:
    """The entries of a chunk before a position, which may lie within a run."""
    cut: i64 = order.count_before(entries, upper)
    rest = entries[:cut]
    run = run_in(entries[cut - 1]) if cut > 0 else None
    if run is not None:
        stop = _count_before(run.keys, upper, order)
        sequences = run.sequences
        run = DeletionRun(
            run.keys[:stop], run.first, None if sequences is None else sequences[:stop]
        )
        rest[cut - 1] = (run.keys[run.first], None, -1, run)
    return rest


def _count_before(keys: list[bytes], position: Position, order: KeyOrder) -> i64:
    """How many of these keys lie before a position.  O(log of their number)."""
    low: i64 = 0
    high: i64 = len(keys)
    while low < high:
        middle = (low + high) >> 1
        if order.is_at_or_after(keys[middle], position):
            high = middle
        else:
            low = middle + 1
    return low
