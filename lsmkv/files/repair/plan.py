"""The plan of a repair: which tables it keeps, what it can save of the others, and what is lost.

``planning.py`` makes the plan, and ``job.py`` carries it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Never

from lsmkv.engine.format.filenames import LOST, parse_filename
from lsmkv.engine.format.keys import MAX_SEQUENCE
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.text import count, escape
from lsmkv.files.repair.damaged_log import FoundBatch
from lsmkv.files.repair.damaged_table import Hole
from lsmkv.files.repair.ordering import sequences_without_files
from lsmkv.files.repair.rebuilding import Sources
from lsmkv.files.repair.report import DAMAGED, LogSurvey, LostLogSurvey, Survey, TableSurvey
from lsmkv.files.repair.stale import StaleTest

KEEP = "keep"
"""The file is used as it is."""
REWRITE = "rewrite"
"""The entries that can be read go into a new table."""
REBUILD = "rebuild"
"""The table is rebuilt from the files from which it was made."""
SET_ASIDE = "set aside"
"""The file goes into ``lost/`` as it is: all of its entries may be stale."""
LEAVE_OUT = "leave out"
"""The file is not used."""


class TablePlan:
    """The treatment of one table by a repair."""

    def __init__(self, survey: TableSurvey, action: str, reason: str, stale: StaleTest) -> None:
        self.survey = survey
        self.action = action
        """:data:`KEEP`, :data:`REWRITE`, :data:`REBUILD`, :data:`SET_ASIDE` or
        :data:`LEAVE_OUT`."""
        self.reason = reason
        self.stale_test = stale
        self._sources: Sources | None = None
        self.stale = 0
        """Entries that are set aside because what is lost may have overwritten or deleted them."""

    @property
    def is_used(self) -> bool:
        """True if entries of the table are in the repaired store."""
        return self.action not in (SET_ASIDE, LEAVE_OUT)

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
    """The parts of a store that a repair keeps, and those that are lost; ``str`` describes it,
    ``to_dict`` returns plain data.

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
    >>> plan.kept, plan.kept_writes, plan.most_out_of_date, plan.unaccounted, plan.better_kept
    (1, 1, 0, [], False)
    >>> plan.as_of is None  # nothing that is lost is newer
    True
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
        self.stale_writes = 0
        """Entries of logs that are set aside: between them and those that are kept, writes are
        lost."""
        self._stale_operations = 0
        self._first = 0
        self._last = MAX_SEQUENCE  # of the writes that are kept
        self._before = MAX_SEQUENCE + 1  # the first of those that are lost and newer than these

    @property
    def by_levels(self) -> bool:
        """True if tables stay on their levels; otherwise all tables are merged."""
        return self.survey.levels_known

    @property
    def needed(self) -> bool:
        """True if anything is damaged that a repair can fix."""
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
        return sum(table.stale for table in self.tables) + self.stale_writes

    @property
    def kept(self) -> int:
        """Entries of tables and writes of logs that go into the new store, deletions included."""
        entries = sum(one.survey.entries - one.stale for one in self.tables if one.is_used)
        return entries + self.kept_writes

    @property
    def kept_writes(self) -> int:
        """Those of them that are writes of logs."""
        return sum(log.operations for log in self.logs) - self._stale_operations

    @property
    def most_out_of_date(self) -> int | None:
        """Number of entries that can be out of date if those that are set aside are kept.

        It is known if writes of a log are lost and nothing else: each has replaced one entry.
        Otherwise it is None.
        """
        if any(table.survey.holes for table in self.tables if table.survey.needed):
            return None
        missing = gaps(self)
        if any(first == 0 for first, _ in missing):
            return None
        return sum(last - first + 1 for first, last in missing)

    @property
    def as_of(self) -> int | None:
        """The last write of the moment at which the repaired store is; None if that is now.

        What is lost, or set aside, was written later.
        """
        last = min(self._last, self._before - 1)
        return last if last < MAX_SEQUENCE else None

    @property
    def unaccounted(self) -> list[tuple[int, int]]:
        """The first and last sequences of writes that no file can have, if no MANIFEST is intact.

        They are lost, or were all replaced by later ones.
        """
        return [] if self.by_levels else sequences_without_files(self.survey, self.logs)

    @property
    def better_kept(self) -> bool:
        """True if ``keep_stale`` is recommended: more would be set aside than kept.

        Writes of logs count each, even if several of them have the same key.
        """
        return self.stale - self.stale_writes + self._stale_operations > self.kept

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

    def _keeps(self, batch: FoundBatch) -> bool:
        """True if a batch of a log is kept: no write is lost between it and the others that are."""
        return self._first <= batch.sequence <= self._last

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        survey = self.survey
        return {
            "path": survey.path,
            "needed": self.needed,
            "manifest": None if survey.manifest is None else survey.manifest.name,
            "by_levels": self.by_levels,
            "tables": [table.to_dict() for table in self.tables],
            "logs": list(map(_log_dict, self.logs)),
            "problems": [
                {"file": file.name, "offset": problem.offset, "reason": problem.reason}
                for file in survey.files
                if file.needed
                for problem in file.problems
            ],
            "left_in_lost": list(map(_log_dict, self.left_in_lost)),
            "lost_bytes": self.lost_bytes,
            "missing_bytes": self.missing_bytes,
            "kept": self.kept,
            "stale": self.stale,
            "most_out_of_date": self.most_out_of_date,
            "as_of": self.as_of,
            "unaccounted": self.unaccounted,
            "recommended": "keep_stale" if self.better_kept else "default",
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
        for first, last in self.unaccounted:
            yield f"writes {first} to {last} are in no file: they were replaced, or they are lost"
        if self._first > 0:
            yield f"writes up to {self._first - 1} are set aside: lost ones may have replaced them"
        if self._last < MAX_SEQUENCE:
            yield f"writes after {self._last} are set aside: others before them are lost"
        if self.as_of is not None:
            yield f"the store is as it was after write {self.as_of}"
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


def _log_dict(log: LogSurvey) -> dict[str, Any]:
    return {"file": log.name, "batches": log.batches, "operations": log.operations}


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


def gaps(plan: RepairPlan) -> list[tuple[int, int]]:
    """The first and last sequences of the writes that are missing before others.

    Without a MANIFEST, logs may be there whose writes are in tables.  What is missing between two
    of them shows nothing then, nor does what is missing before something that is in a table.
    """
    if plan.by_levels:
        before = [log.gap_before for log in plan.logs if log.gap_before is not None]
        return before + [gap for log in plan.logs for gap in log.gaps]
    in_tables = max([one.survey.last_sequence for one in plan.tables if one.is_used], default=0)
    return [gap for log in plan.logs for gap in log.gaps if gap[1] >= in_tables]


keep_paths(RepairPlan)
