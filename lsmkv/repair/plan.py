"""What a repair would do: which tables it keeps, what of the others it can save, what is lost.

Where a MANIFEST can be relied on, the tables that it names are the store, on the levels that it
names, and no other table is touched: an obsolete one would bring deleted keys back.  Where none can
be, every table counts of which no MANIFEST says that it is dead, and levels mean nothing: all of
them are merged by the sequences of their entries.

A block that cannot be read takes more with it than itself.  It may have held a newer version of a
key, or its deletion, and the older version, which is sound, must not be served in its place.  Such
*stale* entries are set aside: those within the block's bounds that are older than its table, and
that the block's filter lets pass.  With an intact filter that is little more than what was lost.
Without a MANIFEST no table is known to be older than another, and all others count as older.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lsmkv.db.version import escape
from lsmkv.env.base import Directory
from lsmkv.format.filenames import parse_filename
from lsmkv.format.keys import TAG_SIZE, Entry, InternalKeyComparator
from lsmkv.options import Options
from lsmkv.repair.damaged_table import Found, Hole, Salvage
from lsmkv.repair.report import DAMAGED, LogSurvey, Survey, TableSurvey, user_range
from lsmkv.repair.stale import StaleTest, shadows_on
from lsmkv.repair.survey import check_internal_keys
from lsmkv.util.progress import Progress

KEEP = "keep"
"""The file is used as it is."""
REWRITE = "rewrite"
"""What can be read of it goes into a new table."""
LEAVE_OUT = "leave out"
"""Nothing of it is used."""


class TablePlan:
    """What becomes of one table."""

    def __init__(self, survey: TableSurvey, action: str, reason: str, stale: StaleTest) -> None:
        self.survey = survey
        self.action = action
        """:data:`KEEP`, :data:`REWRITE` or :data:`LEAVE_OUT`."""
        self.reason = reason
        self.stale_test = stale
        self.stale = 0
        """Entries that are set aside since a lost block may have overwritten or deleted them."""

    @property
    def lost_bytes(self) -> int:
        """Bytes of data blocks that cannot be read."""
        return sum(hole.size for hole in self.survey.holes)

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
    """What a repair keeps, and what is lost: ``str`` is for people, ``to_dict`` for programs.

    Errors and costs are those of :func:`plan_repair`, which makes it.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"key", b"value")
    >>> plan = lsmkv.plan_repair("store", env=env)
    >>> plan.needed, plan.by_levels, plan.lost_bytes, plan.stale
    (False, True, 0, 0)
    >>> plan.last_sequence, plan.highest_number, plan.to_dict()["problems"]
    (1, 4, [])
    >>> print(plan)
    nothing is damaged
    MANIFEST-000004 says which tables count, and on which levels
    000003.log: 1 write in 1 batch goes into tables
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.tables: list[TablePlan] = []
        self.logs: list[LogSurvey] = []
        """Those whose writes go into new tables."""

    @property
    def by_levels(self) -> bool:
        """Whether tables stay on their levels; else all are merged anew."""
        return self.survey.levels_known

    @property
    def needed(self) -> bool:
        """Whether anything is damaged at all."""
        return self.survey.severity == DAMAGED

    @property
    def stale(self) -> int:
        """Entries set aside."""
        return sum(table.stale for table in self.tables)

    @property
    def lost_bytes(self) -> int:
        """Bytes of data blocks that cannot be read."""
        return sum(table.lost_bytes for table in self.tables if table.survey.needed)

    @property
    def last_sequence(self) -> int:
        """The highest that is known of."""
        found = [table.survey.last_sequence for table in self.tables]
        found += [log.last_sequence for log in self.logs]
        if self.survey.manifest is not None and self.survey.manifest.whole:
            found.append(self.survey.manifest.state.last_sequence)
        return max(found, default=0)

    @property
    def highest_number(self) -> int:
        """No file of the directory, present or named, has a number above it."""
        numbers = [table.survey.number for table in self.tables]
        numbers += [log.number for log in self.survey.logs]
        numbers += [manifest.number for manifest in self.survey.manifests]
        for file in self.survey.others:
            parsed = parse_filename(file.name)
            numbers.append(0 if parsed is None else parsed[0])
        if self.survey.manifest is not None and self.survey.manifest.whole:
            numbers.append(self.survey.manifest.state.next_file_number - 1)
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
            "lost_bytes": self.lost_bytes,
            "stale": self.stale,
        }

    def __str__(self) -> str:
        """Some lines: what is damaged, what becomes of each file, what is lost."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        survey = self.survey
        if not self.needed:
            yield "nothing is damaged"
        for file in (survey.current, *survey.manifests):
            for problem in file.problems:
                if file.needed:
                    yield f"{file.name}: {problem.reason}"
        if self.by_levels:
            assert survey.manifest is not None
            yield f"{survey.manifest.name} says which tables count, and on which levels"
        else:
            yield "no MANIFEST can be relied on: all tables are merged by the age of their entries"
            if not survey.dead:
                yield "if obsolete ones are among them, keys that were deleted may come back"
        for table in self.tables:
            yield from _table_lines(table)
        for log in self.logs:
            writes = f"{log.operations} write{'' if log.operations == 1 else 's'}"
            batches = f"{log.batches} batch{'' if log.batches == 1 else 'es'}"
            goes = "goes" if log.operations == 1 else "go"
            yield f"{log.name}: {writes} in {batches} {goes} into tables"
            for problem in log.problems:
                yield f"  lost at {problem.offset}: {problem.reason}"


def _table_lines(plan: TablePlan) -> Iterator[str]:
    survey = plan.survey
    level = f"level {survey.level}, " if survey.level >= 0 else ""
    yield f"{survey.name}: {level}{plan.action}: {plan.reason}"
    if not survey.needed:
        return
    for hole in survey.holes:
        lower, upper = user_range(hole)
        first = "the first key" if lower is None else f"'{escape(lower)}'"
        last = "the last key" if upper is None else f"'{escape(upper)}'"
        yield f"  lost at {hole.offset}: {hole.size} bytes, keys from {first} to {last}"
    if plan.stale:
        yield f"  set aside: {plan.stale} entries that a lost block may have replaced"


def _hole_dict(hole: Hole) -> dict[str, Any]:
    lower, upper = user_range(hole)
    return {
        "offset": hole.offset,
        "bytes": hole.size,
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

    Reads again the tables that an unreadable block of a newer one overlaps, to count what is stale.
    """
    plan = RepairPlan(survey)
    plan.logs = [log for log in survey.logs if log.needed and log.batches > 0]
    for table in survey.tables:
        test = StaleTest(comparator)
        if table.needed and not keep_stale:
            for other in survey.tables:
                if other.needed and other.holes:
                    test.add(shadows_on(table, other, plan.by_levels, comparator))
        plan.tables.append(TablePlan(table, *_action(table), test))
    suspects = [one for one in plan.tables if one.stale_test and one.survey.entries > 0]
    for done, suspect in enumerate(suspects):
        if progress is not None:
            progress(done, len(suspects), "looking for stale entries")
        for _, stale in read_entries(suspect, directory, options):
            suspect.stale += len(stale)
        if suspect.stale > 0 and suspect.action == KEEP:
            suspect.action = REWRITE
            suspect.reason = "entries of it are set aside"
    if plan.by_levels:
        _keep_order_of_level_0(plan.tables)
    else:
        _merge_all(plan.tables)
    return plan


def read_entries(
    plan: TablePlan, directory: Directory, options: Options
) -> Iterator[tuple[list[Entry], list[Entry]]]:
    """What of a table is kept, and what is stale, block by block."""
    test = plan.stale_test
    test.restart()
    may_be_stale = bool(test)
    with directory.open(plan.survey.name) as file:
        for piece in Salvage(options, file, check_internal_keys).pieces():
            if not isinstance(piece, Found):
                continue
            kept: list[Entry] = []
            stale: list[Entry] = []
            for key, value in zip(piece.keys, piece.values, strict=True):
                entry = (key[:-TAG_SIZE], key[-TAG_SIZE:] + value)
                (stale if may_be_stale and test.is_stale(key) else kept).append(entry)
            yield kept, stale


def _action(table: TableSurvey) -> tuple[str, str]:
    if not table.needed:
        return LEAVE_OUT, "no part of the store any more"
    if table.size < 0:
        return LEAVE_OUT, "missing"
    if table.entries == 0:
        return LEAVE_OUT, "nothing of it can be read"
    if table.holes:
        blocks = table.blocks + len(table.holes)
        return REWRITE, f"{len(table.holes)} of {blocks} blocks cannot be read"
    if table.problems:
        return REWRITE, f"all data can be read ({table.problems[0].reason})"
    return KEEP, f"{table.entries} entries, all sound"


def _keep_order_of_level_0(tables: list[TablePlan]) -> None:
    """A table of level 0 is as new as its number, and what is rewritten gets a new one: so do all
    that are newer."""
    moved = False
    for table in sorted(tables, key=lambda plan: plan.survey.number):
        if table.survey.level != 0:
            continue
        if moved and table.action == KEEP:
            table.action = REWRITE
            table.reason = "all sound; rewritten to stay newer than the others of level 0"
        moved = moved or table.action == REWRITE


def _merge_all(tables: list[TablePlan]) -> None:
    for table in tables:
        if table.action == KEEP:
            table.action = REWRITE
            table.reason = "all sound; merged with the others"
