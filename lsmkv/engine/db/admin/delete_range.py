"""Range deletion: tables in the range are dropped whole, and other keys deleted one by one.

``DB.delete_range`` calls it, in the caller's thread and without a lock.  LevelDB's format has no
entry for a deleted range, and a bare edit that removes tables would be wrong: an older version of a
key, in a table that stays, would reappear.  So these are the steps:

1. The tables that lie in the range are found.  Every key of the range that is visible *without*
   them is deleted, in batches.  Nothing reappears once they are gone.
2. Under the writers' lock, one more deletion, of a key of the range, goes into the log, which is
   synced: a power cut leaves a prefix of all writes.  That operation's sequence is the drop's.
3. The background work commits an edit that removes the tables, and shows the new version and the
   drop's sequence at the same moment, to this process and to others.

If a compaction has rewritten a table of the range meanwhile, or is about to, the edit is not made,
and the steps are repeated.  From then on no compaction starts, except where level 0 has many files.
After a crash before the edit, a part of the range is deleted, and nothing goes on with it.

Snapshots and transactions hold a sequence, not a version.  Those from before the drop go on with
the view before it, which the store keeps for them with its tables (``Store.drops``), so that the
range deletion need not wait for them.  To transactions, the whole range was written
(``read/changes.py``).

To ``db.batches()`` the drop is not a batch.  An empty batch in the log, which nothing else writes,
marks the sequence at which it occurred; an iterator that comes to it raises.
"""

from __future__ import annotations

from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.compact.background_jobs import RangeCompaction
from lsmkv.engine.db.read.iterator import Iterator
from lsmkv.engine.db.read.scan import Bounds, bounds_of, files_in
from lsmkv.engine.db.tree.store import RangeDrop, ReadView, Store, View
from lsmkv.engine.db.write.writer import Writer
from lsmkv.engine.format.batch import Operation
from lsmkv.engine.format.version_edit import FileMetaData, VersionEdit
from lsmkv.engine.util.arguments import BytesLike

_BATCH = 1000  # keys that are deleted in one batch
_ATTEMPTS = 10
_ALL = 1 << 62


def delete_range(
    store: Store,
    background: Background,
    writer: Writer,
    start: BytesLike | None,
    stop: BytesLike | None,
    prefix: BytesLike | None,
    tables_only: bool,
) -> None:
    """Delete the keys from ``start`` up to ``stop``, which is not included; None is no bound.  With
    ``tables_only``, those in tables that lie in the range."""
    store.lock.refuse_to_wait("a range deletion")
    order = store.order
    if prefix is not None and not (order.is_bytewise or order.is_reverse):
        raise ValueError("prefix requires the bytewise order or its reverse")
    bounds = bounds_of(start, stop, True, False, prefix, order)
    slot = RangeCompaction.slot()
    try:
        for attempt in range(_ATTEMPTS):
            if attempt == 1:
                background.run_range_compaction(slot)
            drop = _delete_others(store, writer, bounds, False, tables_only)
            if drop is None:
                return
            background.wait_for_flush()  # here, where other writers do not wait with it
            if writer.drop(drop):
                return
        if not tables_only:
            _delete_others(store, writer, bounds, True, False)
    finally:
        background.release_slot(slot)


def _delete_others(
    store: Store, writer: Writer, bounds: Bounds, all_keys: bool, tables_only: bool
) -> RangeDrop | None:
    """Delete the keys that are visible without the tables to drop; returns these tables, if there
    are any.  With ``all_keys`` none is dropped."""
    read = store.read_view()
    try:
        view = read.view
        touched = files_in(view.version, store.order, bounds, _ALL)
        inside = [] if all_keys else [one for one in touched if _is_inside(store, bounds, one[1])]
        edit = VersionEdit()
        for level, file in inside:
            edit.delete_file(level, file.number)
        version = view.version.apply(edit) if inside else view.version
        rest = ReadView(View(view.memtable, view.immutable, version), read.pin, read.table_sequence)
        if not tables_only:
            _delete_keys(store, writer, bounds, rest)
        if not inside:
            return None
        lower = bounds.lower
        # The one that a caller names: it decides with which keys the deletion will be in a table.
        deleted = inside[0][1].smallest[:-8] if lower is None or lower.after else lower.user_key
        return RangeDrop(
            *(lower, bounds.upper, deleted),
            frozenset([file.number for _, file in inside]),
            frozenset([file.number for _, file in touched]),
        )
    finally:
        read.release()


def _delete_keys(store: Store, writer: Writer, bounds: Bounds, read: ReadView) -> None:
    """Delete the keys of the range that a view shows."""
    lower, upper = bounds.lower, bounds.upper
    operations: list[Operation] = []
    keys = Iterator(
        *(store, read, None),
        {
            "start": None if lower is None else lower.user_key,
            "stop": None if upper is None else upper.user_key,
            "include_start": lower is None or not lower.after,
            "include_stop": upper is not None and upper.after,
            "include_value": False,
            "fill_cache": False,
        },
    )
    with keys:
        for key in keys:
            operations.append((key, None))
            if len(operations) == _BATCH:
                writer.write(operations, False)
                operations = []
    if operations:
        writer.write(operations, False)


def _is_inside(store: Store, bounds: Bounds, file: FileMetaData) -> bool:
    """Return True if all keys of a table lie in the range."""
    order, lower, upper = store.order, bounds.lower, bounds.upper
    return (lower is None or order.is_at_or_after(file.smallest[:-8], lower)) and (
        upper is None or not order.is_at_or_after(file.largest[:-8], upper)
    )
