"""The plan of a repair: which tables it keeps, what it can save of the others, and what is lost.

If there is an intact MANIFEST, the tables that it names are the store, on the levels that it names,
and no other file is used: an obsolete table would bring deleted keys back.  But a table that is
missing is made again, if the files from which it was made are there (``rebuilding.py``).  Without
an intact MANIFEST, every table that no MANIFEST has removed is used.  Levels are unknown then, and
all tables are merged by the sequences of their entries.

A block that cannot be read makes other entries useless too.  It may have held a newer version of a
key, or its deletion, and the older version, although intact, must not be served in its place.  Such
*stale* entries are set aside: those within the block's bounds that are older than its table and
that its filter does not rule out.  With an intact filter these are little more than what was lost.
Without a MANIFEST no table is known to be older than another, so all others count as older.

:func:`make_plan` is called by ``repair.py``, which holds the store's lock for a repair in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Never

from lsmkv.env.base import Directory
from lsmkv.format.filenames import LOST, parse_filename
from lsmkv.format.keys import TAG_SIZE, Entry, InternalKeyComparator, sequence_in
from lsmkv.options import Options
from lsmkv.repair.damaged_table import Hole
from lsmkv.repair.rebuilding import Ancestry, Sources, rebuilt_entries, table_entries
from lsmkv.repair.report import (
    DAMAGED,
    LogSurvey,
    LostLogSurvey,
    Survey,
    TableSurvey,
)
from lsmkv.repair.stale import Shadow, StaleTest, shadows_on
from lsmkv.util.copying import refuse_copy
from lsmkv.util.progress import Progress
from lsmkv.util.text import count, escape

KEEP = "keep"
"""The file is used as it is."""
REWRITE = "rewrite"
"""The entries that can be read go into a new table."""
REBUILD = "rebuild"
"""The table is made again, from the files from which it was made."""
LEAVE_OUT = "leave out"
"""The file is not used."""


class TablePlan:
    """What a repair does with one table."""

    def __init__(self, survey: TableSurvey, action: str, reason: str, stale: StaleTest) -> None:
        self.survey = survey
        self.action = action
        """:data:`KEEP`, :data:`REWRITE`, :data:`REBUILD` or :data:`LEAVE_OUT`."""
        self.reason = reason
        self.stale_test = stale
        self._sources: Sources | None = None
        self.stale = 0
        """Entries that are set aside because a lost block may have overwritten or deleted them."""

    @property
    def is_used(self) -> bool:
        """Whether entries of the table are in the repaired store."""
        return self.action != LEAVE_OUT

    @property
    def lost_bytes(self) -> int:
        """Bytes of data blocks that cannot be read, and those that are missing."""
        return sum(hole.lost for hole in self.survey.holes)

    @property
    def missing_bytes(self) -> int:
        """Bytes of data that the file lacks, with the index and the filters after them."""
        return sum(hole.missing for hole in self.survey.holes)

    def to_dict(self) -> dict[str, Any]:
        """As plain data; keys escaped."""
        survey = self.survey
        return {
            "file": survey.name,
            "level": survey.level if survey.level >= 0 else None,
            "action": self.action,
            "reason": self.reason,
            "entries": survey.entries,
            "stale": self.stale,
            "lost": [_hole_dict(hole) for hole in survey.holes] if survey.needed else [],
        }


class RepairPlan:
    """What a repair keeps, and what is lost; ``str`` describes it, ``to_dict`` returns plain data.

    Errors and costs are those of :func:`plan_repair`, which makes the plan.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"key", b"value")
    >>> plan = lsmkv.plan_repair("store", env=env)
    >>> plan.needed, plan.by_levels, plan.lost_bytes, plan.missing_bytes, plan.stale
    (False, True, 0, 0, 0)
    >>> plan.last_sequence, plan.highest_number, plan.to_dict()["problems"], plan.left_in_lost
    (1, 4, [], [])
    >>> print(plan)
    nothing is damaged
    MANIFEST-000004 is intact: tables stay on their levels
    000003.log: 1 write in 1 batch goes into new tables
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.tables: list[TablePlan] = []
        self.logs: list[LogSurvey] = []
        """The logs whose writes go into new tables, those of ``lost/`` included."""

    @property
    def by_levels(self) -> bool:
        """Whether tables stay on their levels; otherwise all tables are merged."""
        return self.survey.levels_known

    @property
    def needed(self) -> bool:
        """Whether anything is damaged that a repair can fix."""
        damaged = [file for file in self.survey.files if file.severity == DAMAGED]
        return any(not file.name.startswith(f"{LOST}/") or file in self.logs for file in damaged)

    @property
    def left_in_lost(self) -> list[LostLogSurvey]:
        """The logs in ``lost/`` whose writes a repair cannot add to the store.

        Other writes were made since, with the same sequences, so it is unknown which of the two are
        newer for each key.
        """
        return [log for log in self.survey.lost if log.batches > 0 and not log.is_newest]

    @property
    def stale(self) -> int:
        """Entries that are set aside."""
        return sum(table.stale for table in self.tables)

    @property
    def lost_bytes(self) -> int:
        """Bytes of data blocks that cannot be read, and those that are missing."""
        return sum(table.lost_bytes for table in self.tables if table.survey.needed)

    @property
    def missing_bytes(self) -> int:
        """Those of them that no file has, because the table is cut short, or missing.

        They are computed from the sizes in the MANIFEST, so they include the index and the filters
        of these tables.
        """
        return sum(table.missing_bytes for table in self.tables if table.survey.needed)

    @property
    def last_sequence(self) -> int:
        """The highest sequence that was found."""
        found = [table.survey.last_sequence for table in self.tables]
        found += [log.last_sequence for log in self.logs]
        if self.survey.manifest is not None and self.survey.manifest.whole:
            found.append(self.survey.manifest._state.last_sequence)
        return max(found, default=0)

    @property
    def highest_number(self) -> int:
        """The highest number of any file, whether it exists or a MANIFEST names it."""
        numbers = [table.survey.number for table in self.tables]
        numbers += [log.number for log in self.survey.logs]
        numbers += [manifest.number for manifest in self.survey.manifests]
        for file in (*self.survey.tables, *self.survey.others):
            parsed = parse_filename(file.name)
            numbers.append(0 if parsed is None else parsed[0])
        if self.survey.manifest is not None and self.survey.manifest.whole:
            numbers.append(self.survey.manifest._state.next_file_number - 1)
        return max(numbers, default=1)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        survey = self.survey
        return {
            "path": survey.path,
            "needed": self.needed,
            "manifest": None if survey.manifest is None else survey.manifest.name,
            "by_levels": self.by_levels,
            "tables": [table.to_dict() for table in self.tables],
            "logs": [
                {"file": log.name, "batches": log.batches, "operations": log.operations}
                for log in self.logs
            ],
            "problems": [
                {"file": file.name, "offset": problem.offset, "reason": problem.reason}
                for file in survey.files
                if file.needed
                for problem in file.problems
            ],
            "left_in_lost": [
                {"file": log.name, "batches": log.batches, "operations": log.operations}
                for log in self.left_in_lost
            ],
            "lost_bytes": self.lost_bytes,
            "missing_bytes": self.missing_bytes,
            "stale": self.stale,
        }

    def __str__(self) -> str:
        """Lines of text: what is damaged, what happens to each file, what is lost."""
        return "\n".join(self._lines())

    def __reduce__(self) -> Never:
        refuse_copy("a plan of a repair", "to_dict() returns plain data")

    def _lines(self) -> Iterator[str]:
        survey = self.survey
        if survey.severity != DAMAGED:
            yield "nothing is damaged"
        for file in (survey.current, *survey.manifests):
            for problem in file.problems:
                if file.needed:
                    yield f"{file.name}: {problem.reason}"
        if self.by_levels:
            assert survey.manifest is not None
            yield f"{survey.manifest.name} is intact: tables stay on their levels"
        else:
            yield "no MANIFEST is intact: all tables are merged by the sequences of their entries"
            if not survey.obsolete:
                yield "obsolete tables cannot be recognized: deleted keys may come back"
        if self.by_levels and survey.unnamed:
            unnamed = count(len(survey.unnamed), "table")
            yield f"{unnamed} that it does not name: left out (--merge-all uses every table)"
        for table in self.tables:
            yield from _table_lines(table)
        for log in self.logs:
            writes = f"{log.operations} write{'' if log.operations == 1 else 's'}"
            batches = f"{log.batches} batch{'' if log.batches == 1 else 'es'}"
            goes = "goes" if log.operations == 1 else "go"
            yield f"{log.name}: {writes} in {batches} {goes} into new tables"
            for problem in log.problems:
                yield f"  lost at {problem.offset}: {problem.reason}"
        for missing in survey.logs:
            if missing.needed and missing.size < 0:
                yield f"{missing.name}: missing: the writes in it are lost"
        for lost in self.left_in_lost:
            writes = count(lost.operations, "write")
            yield f"{lost.name}: {writes} after the damage cannot be added: others were made since"
            yield f"  repair {survey.path}/{LOST} into a new directory to make a store of them"


def _table_lines(plan: TablePlan) -> Iterator[str]:
    survey = plan.survey
    level = f"level {survey.level}, " if survey.level >= 0 else ""
    yield f"{survey.name}: {level}{plan.action}: {plan.reason}"
    if not survey.needed:
        return
    for hole in survey.holes:
        lower, upper = hole.user_range
        first = "the first key" if lower is None else f"'{escape(lower)}'"
        last = "the last key" if upper is None else f"'{escape(upper)}'"
        yield f"  lost at {hole.offset}: {_lost_text(hole)}, keys from {first} to {last}"
    if plan.stale:
        stale = count(plan.stale, "entry")
        yield f"  set aside: {stale} that a lost block may have replaced"


def _lost_text(hole: Hole) -> str:
    if hole.missing == 0:
        return count(hole.size, "byte")
    missing = f"{count(hole.missing, 'byte')} missing"
    return f"{count(hole.size, 'byte')} unreadable, {missing}" if hole.size > 0 else missing


def _hole_dict(hole: Hole) -> dict[str, Any]:
    lower, upper = hole.user_range
    return {
        "offset": hole.offset,
        "bytes": hole.size,
        "missing": hole.missing,
        "reason": hole.reason,
        "after": None if lower is None else escape(lower),
        "to": None if upper is None else escape(upper),
    }


def make_plan(
    survey: Survey,
    directory: Directory,
    options: Options,
    comparator: InternalKeyComparator,
    keep_stale: bool,
    progress: Progress | None,
) -> RepairPlan:
    """Plan the repair of what was surveyed.

    Rereads the tables that an unreadable block of a newer table overlaps, to count stale entries.
    """
    plan = RepairPlan(survey)
    plan.logs = [log for log in survey.logs if log.needed and log.batches > 0]
    plan.logs += [log for log in survey.lost if log.is_newest and log.batches > 0]
    for table in survey.tables:
        plan.tables.append(TablePlan(table, *_action(table), StaleTest(comparator)))
    if plan.by_levels:
        _rebuild(plan, directory, options)
    if not keep_stale:
        _find_shadows(plan, comparator)
    suspects = [one for one in plan.tables if one.stale_test and one.survey.entries > 0]
    for done, suspect in enumerate(suspects):
        if progress is not None:
            progress(done, len(suspects), "finding stale entries")
        for _, stale in read_entries(suspect, directory, options):
            suspect.stale += len(stale)
        if suspect.stale > 0 and suspect.action == KEEP:
            suspect.action = REWRITE
            suspect.reason = "some of its entries are set aside"
    if plan.by_levels:
        _keep_order_of_level_0(plan.tables)
    else:
        _merge_all(plan.tables)
    return plan


def _rebuild(plan: RepairPlan, directory: Directory, options: Options) -> None:
    """Rebuild the tables that are missing, or damaged, as far as the files have their entries."""
    ancestry = Ancestry(plan.survey)
    for table in plan.tables:
        old = table.survey
        stated = old._stated
        if not old.needed or not old.holes or stated is None:
            continue
        sources = ancestry.sources_of(old.number)
        if old.size < 0 and not sources.complete:
            old.holes[0].first_sequence = sources.first_missing
            old.holes[0].last_sequence = sources.last_missing
        if not sources or not (sources.complete or old.size < 0):
            continue
        new = TableSurvey(old.name, old.number, old.size, old.level)
        new.problems = old.problems
        new.metadata_intact = old.metadata_intact
        new._stated = stated
        new.smallest, new.largest = stated.smallest, stated.largest
        for entries in rebuilt_entries(sources, new.smallest, new.largest, directory, options):
            new.entries += len(entries)
            for _, tagged in entries:
                new.deletions += not tagged[0]
                new.last_sequence = max(new.last_sequence, sequence_in(tagged))
        if new.entries == 0:
            continue
        reason = f"made again of {', '.join(sources.names)}"
        if not sources.complete:
            lacking = sources.last_missing - sources.first_missing + 1
            hole = Hole(0, 0, "missing", new.smallest, new.largest, [])
            hole.first_sequence, hole.last_sequence = sources.first_missing, sources.last_missing
            hole.missing = max(1, stated.size * lacking // (lacking + new.entries))
            new.holes.append(hole)
            reason += f", which lack some of writes {hole.first_sequence} to {hole.last_sequence}"
        table.survey, table.action, table.reason = new, REBUILD, reason
        table._sources = sources


def _find_shadows(plan: RepairPlan, comparator: InternalKeyComparator) -> None:
    """Find the holes that may have replaced entries of each table.

    A hole that begins after everything that is kept makes nothing stale: without it, the store is
    as it was before the first of these writes.
    """
    kept = [one.survey.last_sequence for one in plan.tables if one.is_used]
    last_kept = max([*kept, *(log.last_sequence for log in plan.logs)], default=0)
    for other in plan.tables:
        holes = [hole for hole in other.survey.holes if hole.first_sequence <= last_kept]
        if not other.survey.needed or not holes:
            continue
        for table in plan.tables:
            if not table.survey.needed:
                continue
            if table is other and table.action == REBUILD:
                shadows = [Shadow(hole, *hole.user_range) for hole in holes]
            else:
                shadows = shadows_on(table.survey, other.survey, holes, plan.by_levels, comparator)
            table.stale_test.add(shadows)


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
