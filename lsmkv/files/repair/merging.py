"""Merges the tables and logs of a repair by the sequences of their entries.

A job merges what it keeps if levels are unknown, and a plan counts by it what each of two ways
keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.merge import live_entries, merge
from lsmkv.engine.db.tree.store_lock import StoreLock
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import MAX_SEQUENCE, Entry, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.files.repair.damaged_log import FoundBatch
from lsmkv.files.repair.plan import TablePlan
from lsmkv.files.repair.rebuilding import memtable_entries

KeptEntries = Callable[[TablePlan], Iterator[list[Entry]]]
"""Reads the entries of a table that are kept, block by block."""


def merged_pairs(
    tables: list[TablePlan], kept: KeptEntries, batches: Iterable[FoundBatch], options: Options
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the user keys and the tagged values of the newest entries, without deletions."""
    order = InternalKeyComparator(options.comparator).order
    memtable = MemTable(options.comparator, StoreLock())
    for found in batches:
        memtable.add(found.sequence, found.operations, -1)
    sources = [memtable_entries(memtable)]
    sources += [_chain(run, kept) for run in runs_of(tables, order)]
    for entries in merge(sources, order):
        yield live_entries(entries, MAX_SEQUENCE, order, _drop)


def runs_of(tables: list[TablePlan], order: KeyOrder) -> list[list[TablePlan]]:
    """Lists of tables whose key ranges do not overlap, as few lists as possible.

    Reading a list keeps one file open at a time.
    """
    runs: list[list[TablePlan]] = []
    for table in sorted(tables, key=lambda plan: order.of(plan.survey.smallest[:-8])):
        first = table.survey.smallest[:-8]
        for run in runs:
            if order.compare(run[-1].survey.largest[:-8], first) < 0:
                run.append(table)
                break
        else:
            runs.append([table])
    return runs


def _chain(run: list[TablePlan], kept: KeptEntries) -> Iterator[list[Entry]]:
    for plan in run:
        yield from kept(plan)


def _drop(_user_key: bytes) -> bool:
    return True
