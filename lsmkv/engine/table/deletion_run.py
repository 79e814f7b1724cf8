"""Runs of deletions, and what a scan need not read because of deletions.

A deletion (in other engines: a tombstone) hides the versions of its key in all older sources of a
scan: memtables, files of level 0, levels.  So a scan reads deletions, and returns none.  Where much
was deleted, as in a queue, that would be most of its work.  Three things make it less:

- Many deletions in a row are one entry of a chunk, a :class:`DeletionRun`, and the merging iterator
  steps over it by a bisection.
- An entry that a newer source deletes is *hidden*.  With the keys of a run, the reader of an older
  block steps over what the run hides, before it builds a key or a value.
- A deletion before the next key of all other sources hides nothing, and is also stepped over.

The last two are :class:`Unneeded`.  The merging iterator finds them out, and passes them to a
source before it reads the next chunk of that (``InternalIterator.may_skip``).  An example::

    newer source   00 to 99 are deleted, 150=v
    older source   00=a ... 59=x in one block, 60=y ... 99=z 200=w in the next one

1. The chunk of the newer source is ``(00, None) ... (07, None)``, a run at 08, whose keys are 00 to
   99, and ``(150, v)``.  That of the older one is ``(00, a) ... (59, x)``; all these are dropped.
2. The older source has to read its next block, while the run comes next in the newer one.  So it
   gets ``Unneeded(run)``, and ``BlockIterator.skip_hidden`` steps over 60 to 99.
3. Its chunk is ``(200, w)``, and the rest of the run is left in one step.

With the deletions in the older source::

    newer source   00=v 50=w
    older source   00=a in one block, 01 to 49 are deleted and 60=b in the next one

Before the second block of the older source, 50 comes next in the newer one.  So the older one gets
``Unneeded(None, True, 50)``, and ``BlockIterator.skip_deletions`` steps over 01 to 49.

A run is completed by the thread that makes it; then any thread may read it.  What a scan has found
to be empty is remembered beyond it in :mod:`lsmkv.engine.db.tree.empty_ranges`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import mypyc_attr

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
        """Index of the first key that has no separate entry."""
        self.sequences = sequences
        """The sequence of each deletion; None where their source is known to be newer than the
        sources after it."""


@mypyc_attr(free_list_len=1)
class Unneeded:
    """Entries that the next chunk of a source may lack, because nothing of the scan needs them.

    Either those whose keys a newer source deletes by ``hidden_by`` (where both have sequences,
    those that are older); or, with ``deletions``, which only a forward scan says, deletions of keys
    before ``before``, or all if that is None.
    """

    __slots__ = ("before", "deletions", "hidden_by")

    def __init__(
        self, hidden_by: DeletionRun | None, deletions: bool = False, before: bytes | None = None
    ) -> None:
        self.hidden_by = hidden_by
        self.deletions = deletions
        self.before = before


NOTHING: Final = Unneeded(None)
"""All entries are needed."""


def add_deletion(
    found: list[Any],
    run: DeletionRun | None,
    in_a_row: i64,
    user_key: bytes,
    sequence: i64,
    with_sequence: bool,
) -> DeletionRun | None:
    """Append the ``in_a_row``-th deletion since the last value to a chunk: as an entry, or, once
    there are many, to the ``run`` of those before.  Returns the run that it is in.

    A run begins after ``SHORTEST_RUN`` deletions that are entries.  It holds their keys too, so
    that all of them hide older entries.
    """
    if in_a_row > SHORTEST_RUN:
        if run is None:
            last: list[Any] = found[len(found) - SHORTEST_RUN :]
            keys: list[bytes] = [entry[0] for entry in last]
            run = DeletionRun(
                keys, SHORTEST_RUN, [entry[2] for entry in last] if with_sequence else None
            )
            found.append((user_key, None, -1, run))
        run.keys.append(user_key)
        if with_sequence and run.sequences is not None:
            run.sequences.append(sequence)
        return run
    found.append((user_key, None, sequence) if with_sequence else (user_key, None))
    return None


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
    """Return the number of these keys that lie before a position.  O(log of their number)."""
    low: i64 = 0
    high: i64 = len(keys)
    while low < high:
        middle = (low + high) >> 1
        if order.is_at_or_after(keys[middle], position):
            high = middle
        else:
            low = middle + 1
    return low
