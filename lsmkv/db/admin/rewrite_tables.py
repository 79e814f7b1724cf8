"""Writes every table of a store anew, for filters and blocks of another kind.

``DB.rewrite_tables`` calls it without a lock.  The background scheduler runs the steps, each a
compaction whose outputs take the place of its inputs, by one version edit.
"""

from __future__ import annotations

from lsmkv.counters import NUM_LEVELS
from lsmkv.db.admin.compact_range import LevelPlan, Meter
from lsmkv.db.compact.background import Background
from lsmkv.db.tree.store import Store
from lsmkv.db.tree.version import Version
from lsmkv.util.progress import Progress


def rewrite_tables(store: Store, background: Background, progress: Progress | None) -> None:
    """Write all tables anew that the store has now; the memtable is flushed already.

    Level 0 is compacted into level 1: its order is that of the numbers, so that a table written
    anew would count as newer than a flush before it.  The other levels are rewritten from the
    highest one down, so that a table that a compaction moves down meanwhile is not missed.  A table
    made since the beginning has the new form.
    """
    version = store.open_view().version
    meter = Meter(progress, plan_of_rewrite(version))
    first_new = store.versions.new_file_number()
    del version  # its files could not be removed
    meter.begin(0)
    background.compact_level(0, None, None, meter.advance)
    for level in range(1, NUM_LEVELS):
        meter.begin(level)
        background.compact_level(level, None, None, meter.advance, rewrite_before=first_new)
    meter.finish()


def plan_of_rewrite(version: Version) -> list[LevelPlan]:
    """The plans of each level: bytes to be written anew, and to be read for that."""
    fresh = version.sizes[0]
    plan = [LevelPlan(fresh, fresh + version.sizes[1] if fresh > 0 else 0)]
    return plan + [LevelPlan(size, size) for size in version.sizes[1:]]
