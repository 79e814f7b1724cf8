"""Rewrites every table of a store, to give it filters and blocks of another kind.

``DB.rewrite_tables`` calls it without a lock.  The background scheduler runs the steps.  Each is a
compaction whose outputs replace its inputs in one version edit.
"""

from __future__ import annotations

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.admin.compact_range import LevelPlan, Meter
from lsmkv.engine.db.compact.background import Background
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.util.progress import Progress


def rewrite_tables(store: Store, background: Background, progress: Progress | None) -> None:
    """Rewrite all tables that the store has now; the caller has flushed the memtable.

    Level 0 is compacted into level 1: its tables are ordered by file number, so a rewritten one
    would count as newer than a flush that came before it.  The other levels are rewritten from
    level 1 down, so that a table which a compaction moves down meanwhile is not missed.  A table
    made after the start already has the new form.
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
    """The plan of each level: bytes to rewrite, and bytes to read for that."""
    fresh = version.sizes[0]
    plan = [LevelPlan(fresh, fresh + version.sizes[1] if fresh > 0 else 0)]
    return plan + [LevelPlan(size, size) for size in version.sizes[1:]]
