"""Makes the plan of a repair (``plan.py``) from a survey.

If there is an intact MANIFEST, the tables that it names are the store, on the levels that it names,
and no other file is used: an obsolete table would restore deleted keys.  But a table that is
missing is rebuilt, if the files from which it was made are there (``rebuilding.py``).  Without
an intact MANIFEST, every table that no MANIFEST has removed is used.  Levels are unknown then, and
all tables are merged by the sequences of their entries.

A block that cannot be read also makes other entries useless.  It may have held a newer version of a
key, or its deletion, and the older version, although intact, must not be served in its place.  Such
*stale* entries are set aside: those within the block's bounds that are older than its table and
that its filter does not rule out.  With an intact filter these are little more than what was lost.
Without a MANIFEST no table is known to be older than another, so all others count as older.

:class:`Planner` is called by ``repair.py``, which holds the store's lock for a repair in place.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.keys import MAX_SEQUENCE, TAG_SIZE, Entry, InternalKeyComparator
from lsmkv.engine.options import Options
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.text import count
from lsmkv.files.repair.damaged_table import Hole
from lsmkv.files.repair.merging import merged_pairs
from lsmkv.files.repair.plan import (
    KEEP,
    LEAVE_OUT,
    REBUILD,
    REWRITE,
    SET_ASIDE,
    RepairPlan,
    TablePlan,
    gaps,
)
from lsmkv.files.repair.rebuilding import Ancestry, batches_of_all, rebuilt_entries, table_entries
from lsmkv.files.repair.report import Survey, TableSurvey
from lsmkv.files.repair.stale import Shadow, StaleTest, shadows_on


class Planner:
    """Plans the repair of what was surveyed."""

    def __init__(
        self,
        survey: Survey,
        directory: Directory,
        options: Options,
        keep_stale: bool,
        progress: Progress | None,
    ) -> None:
        self._survey = survey
        self._directory = directory
        self._options = options
        self._comparator = InternalKeyComparator(options.comparator)
        self._keep_stale = keep_stale
        self._progress = progress
        self._ancestry = Ancestry(survey) if survey.levels_known else None

    def best(self) -> RepairPlan:
        """The plan that is recommended.

        If more entries would be set aside than kept, the store may be more of use as it was before
        the writes that are lost: then it is planned so, and what was written later is set aside.
        Rereads the tables that an unreadable block of a newer table overlaps, to count stale
        entries.
        """
        plan = self.plan(self.last_that_follows())
        if plan.better_kept:
            most = self.pairs_of(plan)
            for moment in self.earlier_moments(plan):
                other = self.plan(moment)
                pairs = self.pairs_of(other)
                if pairs > most:
                    plan, most = other, pairs
        return plan

    def plan(self, last: int) -> RepairPlan:
        """The plan that keeps no entry with a sequence above ``last``."""
        survey = self._survey
        plan = RepairPlan(survey)
        plan.logs = survey._read_logs
        plan.logs += [log for log in survey.lost if log.is_newest and log.batches > 0]
        for table in survey.tables:
            plan.tables.append(TablePlan(table, *_action(table), StaleTest(self._comparator)))
        if self._ancestry is not None:
            _rebuild(plan, self._ancestry, self._directory, self._options)
        if not self._keep_stale:
            plan._last = last
            _find_lost_writes(plan, self._directory)
            _find_shadows(plan, self._comparator)
        self._count_stale(plan)
        if plan.by_levels:
            _keep_order_of_level_0(plan.tables)
        else:
            _merge_all(plan.tables)
        return plan

    def last_that_follows(self) -> int:
        """The last write before a log that does not follow the log before it.

        Nothing shows that such a log is this store's.
        """
        if self._survey.levels_known:
            for log in self._survey._read_logs[1:]:
                if log.gap_before is not None:
                    return log.gap_before[1]
        return MAX_SEQUENCE

    def pairs_of(self, plan: RepairPlan) -> int:
        """Return the number of pairs of keys and values in the repaired store.  Reads all that is
        kept."""

        def kept_of(table: TablePlan) -> Iterator[list[Entry]]:
            for kept, _ in read_entries(table, self._directory, self._options):
                yield kept

        batches = filter(plan._keeps, batches_of_all(plan.logs, self._directory))
        used = [table for table in plan.tables if table.is_used]
        pairs = merged_pairs(used, kept_of, batches, self._options)
        return sum(len(user_keys) for user_keys, _ in pairs)

    def earlier_moments(self, plan: RepairPlan) -> list[int]:
        """The last sequences before writes that are lost, the latest first.

        The entries up to such a sequence are the store as it was then, unless a compaction has
        dropped some of them because of later ones.
        """
        moments = {last for _, last in gaps(plan)}
        for table in plan.tables:
            if table.survey.needed:
                moments |= {hole.first_sequence - 1 for hole in table.survey.holes}
        return [
            moment
            for moment in sorted(moments, reverse=True)
            if 0 < moment < plan._last and all(self._is_apart(one, moment) for one in plan.tables)
        ]

    def _is_apart(self, table: TablePlan, moment: int) -> bool:
        """Return True if the table was made of only older, or only newer writes."""
        if not table.is_used or table.survey.last_sequence <= moment:
            return True
        ancestry = self._ancestry
        return ancestry is not None and ancestry.sequences_of(table.survey.number)[0] > moment

    def _count_stale(self, plan: RepairPlan) -> None:
        suspects = [one for one in plan.tables if one.stale_test and one.survey.entries > 0]
        for done, suspect in enumerate(suspects):
            if self._progress is not None:
                self._progress(done, len(suspects), "finding stale entries")
            survey = suspect.survey
            outside = survey.last_sequence < plan._first or survey.first_sequence > plan._last
            if suspect.action == KEEP and outside:
                suspect.action = SET_ASIDE
                suspect.reason = "writes between its entries and those that are kept are lost"
                suspect.stale = survey.entries
                continue
            for _, stale in read_entries(suspect, self._directory, self._options):
                suspect.stale += len(stale)
            if suspect.stale > 0 and suspect.action == KEEP:
                suspect.action = REWRITE
                suspect.reason = "some of its entries are set aside"


def _rebuild(plan: RepairPlan, ancestry: Ancestry, directory: Directory, options: Options) -> None:
    """Rebuild the tables that are missing, or damaged, as far as the files have their entries."""
    for table in plan.tables:
        old = table.survey
        stated = old._stated
        if not old.needed or not old.holes or stated is None:
            continue
        sources = ancestry.sources_of(old.number)
        is_gone = old.size < 0 or old.entries == 0
        for hole in old.holes:
            hole.first_sequence, hole.last_sequence = ancestry.sequences_of(old.number)
            if is_gone and not sources.complete:
                hole.first_sequence = sources.first_missing
                hole.last_sequence = sources.last_missing
        if not sources or not (sources.complete or is_gone):
            continue
        new = TableSurvey(old.name, old.number, old.size, old.level)
        new.problems = old.problems
        new.metadata_intact = old.metadata_intact
        new._stated = stated
        new.smallest, new.largest = stated.smallest, stated.largest
        for entries in rebuilt_entries(sources, new.smallest, new.largest, directory, options):
            new._count([tagged[:TAG_SIZE] for _, tagged in entries])
        if new.entries == 0:
            continue
        reason = f"from {', '.join(sources.names)}"
        if not sources.complete:
            lacking = sum(last - first + 1 for first, last in sources.missing)
            for first, last in sorted(sources.missing):
                hole = Hole(0, 0, "missing", new.smallest, new.largest, [])
                hole.first_sequence, hole.last_sequence = first, last
                part = stated.size * (last - first + 1) // (lacking + new.entries)
                hole.missing = max(1, part)
                new.holes.append(hole)
            parts = [f"{first} to {last}" for first, last in sorted(sources.missing)]
            reason += f", which lack some of writes {', '.join(parts)}"
        table.survey, table.action, table.reason = new, REBUILD, reason
        table._sources = sources


def _find_shadows(plan: RepairPlan, comparator: InternalKeyComparator) -> None:
    """Find the holes that may have replaced entries of each table.

    A hole that begins after everything that is kept makes nothing stale: without it, the store is
    as it was before the first of these writes.
    """
    kept = [one.survey.last_sequence for one in plan.tables if one.is_used]
    newest = max([*kept, *(log.last_sequence for log in plan.logs)], default=0)
    last_kept = min(newest, plan._last)
    for other in plan.tables:
        if not other.survey.needed:
            continue
        holes = [hole for hole in other.survey.holes if hole.first_sequence <= last_kept]
        later = [hole.first_sequence for hole in other.survey.holes if hole not in holes]
        plan._before = min([plan._before, *later])
        if not holes:
            continue
        for table in plan.tables:
            if not table.survey.needed:
                continue
            if table is other and table.action == REBUILD:
                shadows = [Shadow(hole, *hole.user_range) for hole in holes]
            else:
                shadows = shadows_on(table.survey, other.survey, holes, plan.by_levels, comparator)
            table.stale_test.add(shadows)


def _find_lost_writes(plan: RepairPlan, directory: Directory) -> None:
    """Find the entries between which and those that are kept writes of a log are lost.

    Such a write had any key, so it may have replaced any older entry.
    """
    lost = gaps(plan)
    plan._first = max([last for _, last in lost if last < plan._last], default=-1) + 1
    ends = [first for first, last in lost if last == plan._last and first > 0]
    plan._before = min([plan._before, *ends])
    if plan._first == 0 and plan._last == MAX_SEQUENCE:
        return
    for table in plan.tables:
        if table.survey.needed:
            table.stale_test.first, table.stale_test.last = plan._first, plan._last
    keys: set[bytes] = set()
    for found in batches_of_all(plan.logs, directory):
        if not plan._keeps(found):
            plan._stale_operations += len(found.operations)
            keys.update([key for key, _ in found.operations])
    plan.stale_writes = len(keys)


def read_entries(
    plan: TablePlan, directory: Directory, options: Options
) -> Iterator[tuple[list[Entry], list[Entry]]]:
    """The entries of a table that are kept, and those that are stale, block by block."""
    test = plan.stale_test
    test.restart()
    may_be_stale = bool(test)
    survey = plan.survey
    if plan._sources is None:
        lists = table_entries(survey, directory, options)
    else:
        bounds = survey.smallest, survey.largest
        lists = rebuilt_entries(plan._sources, *bounds, directory, options)
    for entries in lists:
        kept: list[Entry] = []
        stale: list[Entry] = []
        for entry in entries:
            is_stale = may_be_stale and test.is_stale(entry[0] + entry[1][:TAG_SIZE])
            (stale if is_stale else kept).append(entry)
        yield kept, stale


def _action(table: TableSurvey) -> tuple[str, str]:
    if not table.needed:
        return LEAVE_OUT, table.stray or "not part of the store"
    if table.size < 0:
        return LEAVE_OUT, "missing"
    if table.entries == 0:
        return LEAVE_OUT, "none of its entries can be read"
    if table.holes and table.holes[-1].missing > 0:
        return REWRITE, f"{count(table.holes[-1].missing, 'byte')} are missing at its end"
    if table.holes:
        blocks = table.blocks + len(table.holes)
        return REWRITE, f"{len(table.holes):,} of {count(blocks, 'block')} cannot be read"
    if table.problems:
        return REWRITE, f"all of its entries can be read ({table.problems[0].reason})"
    return KEEP, f"undamaged, {count(table.entries, 'entry')}"


def _keep_order_of_level_0(tables: list[TablePlan]) -> None:
    """Rewrite every table of level 0 that is newer than one that is rewritten.

    On level 0 the higher file number is the newer table, and a rewritten table gets a new number.
    """
    moved = False
    for table in sorted(tables, key=lambda plan: plan.survey.number):
        if table.survey.level != 0:
            continue
        if moved and table.action == KEEP:
            table.action = REWRITE
            table.reason = "undamaged; rewritten so that it stays the newer table on level 0"
        moved = moved or table.action in (REWRITE, REBUILD)


def _merge_all(tables: list[TablePlan]) -> None:
    for table in tables:
        if table.action == KEEP:
            table.action = REWRITE
            table.reason = "undamaged; merged with the others"
