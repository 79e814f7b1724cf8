"""Rescue: the ways to make an intact store of a damaged one, each tried on a copy, and compared.

``lsmkv rescue`` and user code call :func:`rescue_db`.  The original is read once, to be copied.
Everything else happens in a working directory next to the result, which is removed in the end.

===============  ==================================================================================
way              the store is
===============  ==================================================================================
``as-is``        the copy as it was found, if it is not damaged
``by-level``     what a repair keeps: nothing of which something newer may be lost
``keep-stale``   that, and the entries that a lost block may have overwritten or deleted
``by-sequence``  every table and every log that is there, merged by sequences, as LevelDB's repair
                 does: old values and deleted keys may come back
===============  ==================================================================================
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple, Unpack

from lsmkv.engine.db.admin.staging import copy, refuse_taken, remove_staging
from lsmkv.engine.db.db import DB
from lsmkv.engine.db.opening.directory import open_remains
from lsmkv.engine.env.base import Directory, Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import CorruptionError, LockedError, raise_typed
from lsmkv.engine.format.filenames import LOCK, LOST, SHARED, FileType, parse_filename
from lsmkv.engine.format.foreign import refuse_certain
from lsmkv.engine.options import OptionArguments
from lsmkv.engine.util.pair_diff import pair_differences
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.text import count
from lsmkv.files.repair.plan import RepairPlan, gaps
from lsmkv.files.repair.repair import repair_db
from lsmkv.files.repair.report import DAMAGED
from lsmkv.files.repair.survey import survey_db

AS_IS = "as-is"
BY_LEVEL = "by-level"
KEEP_STALE = "keep-stale"
BY_SEQUENCE = "by-sequence"
WAYS = (AS_IS, BY_LEVEL, KEEP_STALE, BY_SEQUENCE)
"""The names of the ways, in the order in which they are tried; the first makes nothing."""

_COPIED = (FileType.CURRENT, FileType.MANIFEST, FileType.TABLE, FileType.LOG, FileType.TEMPORARY)
_REPORT_EVERY = 1000

_workplaces = itertools.count()  # two threads may rescue into directories of one name


class Way(NamedTuple):
    """A way to make an intact store, and what it keeps.

    It is plain data: it raises nothing and costs nothing.

    >>> way = Way(BY_LEVEL, entries=900, set_aside=40)
    >>> way.works, way.to_dict()["set_aside"]
    (True, 40)
    """

    name: str
    """One of :data:`WAYS`."""
    problem: str = ""
    """The reason for which it gives no intact store; empty if it gives one."""
    entries: int = 0
    """Pairs of keys and values in the store, up to the problem if there is one."""
    set_aside: int = 0
    """Entries that are not in the store, because what is lost may have replaced them."""
    lost_bytes: int = 0
    """Bytes of tables that are missing or cannot be read."""
    remarks: tuple[str, ...] = ()
    """Other losses, and doubts, in words."""
    more: int = 0
    """Keys that the way by level does not keep."""
    fewer: int = 0
    """Keys that it keeps, and this one does not."""
    other: int = 0
    """Keys for which it has another value."""

    @property
    def works(self) -> bool:
        """True if it gives an intact store."""
        return not self.problem

    def to_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return self._asdict() | {"problem": self.problem or None, "remarks": list(self.remarks)}


class Rescue(NamedTuple):
    """The findings of :func:`rescue_db`, and the store that it made.  Plain data: it raises nothing
    and costs nothing.

    >>> found = Rescue("zoo", "", (Way(AS_IS, "CURRENT: missing"), Way(BY_LEVEL)), BY_LEVEL, None)
    >>> found.sound, found.way("as-is").problem, found.way("by-sequence") is None
    (False, 'CURRENT: missing', True)
    """

    path: str
    """The store, which was not changed."""
    comparator: str
    """The name of its order; empty if no way worked."""
    ways: tuple[Way, ...]
    """Those that were tried.  One that would give the same store as one before is left out."""
    recommended: str | None
    """The name of the best of them; None if none works."""
    made: str | None
    """The name of the one by which ``into`` was made; None if nothing was made."""

    @property
    def sound(self) -> bool:
        """True if the store is not damaged, so that nothing had to be made."""
        return self.recommended == AS_IS

    def way(self, name: str) -> Way | None:
        """The way of this name; None if it was not tried."""
        return next((way for way in self.ways if way.name == name), None)


def rescue_db(
    path: str | os.PathLike[str],
    into: str | os.PathLike[str],
    *,
    way: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[OptionArguments],
) -> Rescue:
    """Try every way to make an intact store of the one in ``path``; make the best one in ``into``.

    ``path`` is copied first, and nothing in it is changed.  ``into`` must not exist; it appears
    whole, or not at all if anything is raised.  Nothing is made of an undamaged store, or if no way
    works.  ``way`` (:data:`WAYS`) is made instead of the recommended one.

    The recommended way is ``by-level``, which keeps no value that may be out of date.  It is
    ``keep-stale`` where more entries would be set aside than kept, and ``by-sequence`` where that
    keeps more than twice as many entries.

    Options are those of :class:`DB`; of them, a comparator that lsmkv does not provide is needed.
    ``progress`` is called with the amount done, the total, and the phase.  Raises
    :class:`NotFoundError`, :class:`LockedError` if a process has the store open,
    :class:`ForeignFormatError`, :class:`ComparatorMismatchError`,
    :class:`UnsupportedCompressionError` and :class:`IOError`.  Cost: reads the store once, its copy
    about ten times, and needs up to four times its size next to ``into``.

    >>> import pathlib, tempfile
    >>> from lsmkv import DB
    >>> with tempfile.TemporaryDirectory() as here:
    ...     with DB(f"{here}/zoo", create_if_missing=True) as db:
    ...         db.put(b"ant", b"six")
    ...     pathlib.Path(here, "zoo", "CURRENT").unlink()
    ...     found = rescue_db(f"{here}/zoo", f"{here}/new")
    ...     with DB(f"{here}/new") as db:
    ...         found.made, found.way("by-level").entries, db.get(b"ant")
    ('by-level', 1, b'six')
    """
    if way is not None and way not in WAYS[1:]:
        raise ValueError(f"way must be one of {', '.join(WAYS[1:])}, not {way!r}")
    where, target = os.fsdecode(path), os.fsdecode(into)
    env = options.get("env") or LocalEnv()
    trial = _Trial(env, where, target, options, progress)
    try:
        refuse_taken(env, target)
        try:
            trial.copy()
            found = trial.run(way)
            if found.made is not None:
                env.rename_directory(trial.place(found.made), target)
            return found
        finally:
            trial.remove_all()
    except OSError as error:
        raise_typed(error)


class _Trial:
    """The ways, tried on a copy; that and the stores that are made of it lie next to ``into``."""

    def __init__(
        self, env: Env, path: str, into: str, options: OptionArguments, progress: Progress | None
    ) -> None:
        self._env = env
        self._path = path
        self._work = f"{os.path.normpath(into)}.rescue-{os.getpid()}-{next(_workplaces)}"
        # The name of a store's directory may say what its order is.
        self._copy = self.place(f"copy-{os.path.basename(os.path.normpath(path))}")
        self._options = options
        self._opening = options.copy()
        self._opening["read_only"] = True
        self._opening["paranoid_checks"] = True  # rather than a warning about the copy
        self._opening["create_if_missing"] = self._opening["error_if_exists"] = False
        self._progress = progress
        self._comparator = ""
        self._counted = 0
        self._better_kept = False
        self._plans: list[object] = []

    def place(self, name: str) -> str:
        """The directory of the copy, or of a way's store."""
        return f"{self._work}-{name}"

    def copy(self) -> None:
        """Copy the original."""
        _copy_store(self._env, self._path, self._copy, self._progress)

    def remove_all(self) -> None:
        """Remove what is left of the copy, and of all stores that were made."""
        for path in (self._copy, *map(self.place, WAYS)):
            remove_staging(self._env, path)

    def run(self, wanted: str | None) -> Rescue:
        """Try all; the directory of the one that is to be used has the name of its way."""
        as_is = self._as_is()
        ways = [as_is]
        if as_is.works and wanted is None:
            return self._found(ways, AS_IS, None)
        for name in WAYS[1:]:
            tried = self._repaired(name, wanted)
            if tried is not None:
                ways.append(tried)
        best = _best(ways, self._better_kept)
        made = best if wanted is None else wanted
        if not any(way.name == made and way.works for way in ways):
            made = None
        return self._found(ways, best, made)

    def _found(self, ways: list[Way], best: str | None, made: str | None) -> Rescue:
        return Rescue(self._path, self._comparator, tuple(ways), best, made)

    def _as_is(self) -> Way:
        problem = ""
        self._counted = 0
        try:
            found = survey_db(self._copy, progress=self._report(AS_IS), **self._options)
            damaged = [file for file in found.files if file.severity == DAMAGED]
            if damaged:
                problem = f"{damaged[0].name}: {damaged[0].problems[0].reason}"
            with closing(self._open(self._copy)) as db:
                self._count(db)
        except CorruptionError as error:
            problem = problem or str(error).replace(f"{self._copy}/", "")
        return Way(AS_IS, problem, self._counted)

    def _repaired(self, name: str, wanted: str | None) -> Way | None:
        """Repair the copy this way; None if a way before gives the same store."""
        target = self.place(name)

        def confirm(plan: RepairPlan) -> bool:
            actions = plan.to_dict()
            is_known = actions in self._plans
            self._plans.append(actions)
            return name == wanted or not is_known

        try:
            plan = repair_db(
                self._copy,
                into=target,
                keep_stale=name != BY_LEVEL,
                merge_all=name == BY_SEQUENCE,
                confirm=confirm,
                progress=self._report(name),
                **self._options,
            )
            if not self._exists(name):
                return None
            entries, *compared = self._counts(name)
        except CorruptionError as error:
            problem = str(error).replace(f"{self._copy}/", "").replace(self._copy, "it")
            return Way(name, problem)
        if name == BY_LEVEL:
            self._better_kept = plan.better_kept
        remarks = tuple(_remarks(plan))
        return Way(name, "", entries, plan.stale, plan.lost_bytes, remarks, *compared)

    def _counts(self, name: str) -> tuple[int, int, int, int]:
        """The entries of a repaired copy, and how its keys differ from those of the first way."""
        with closing(self._open(self.place(name))) as db:  # mypyc has no with for a DB
            if name == BY_LEVEL or not self._exists(BY_LEVEL):
                return self._count(db), 0, 0, 0
            with closing(self._open(self.place(BY_LEVEL))) as first:
                return self._compared(first, db)

    def _compared(self, first: DB, db: DB) -> tuple[int, int, int, int]:
        more = fewer = other = same = 0
        report = self._report("comparing")

        def advance(keys: int) -> None:
            nonlocal same
            same += keys
            if report is not None:
                report(same, 0, "keys")

        compare = db.options.comparator.compare
        for found in pair_differences(iter(first), iter(db), compare, advance):
            if found.a is None:
                more += 1
            elif found.b is None:
                fewer += 1
            else:
                other += 1
        return same - fewer, more, fewer, other

    def _exists(self, name: str) -> bool:
        parent, base = os.path.split(self.place(name))
        with self._env.open_directory(parent or ".") as directory:
            return directory.exists(base)

    def _open(self, path: str) -> DB:
        db = DB(path, **self._opening)
        self._comparator = db.options.comparator.name
        return db

    def _count(self, db: DB) -> int:
        """The pairs of a store; CorruptionError is raised with those before it in ``_counted``."""
        self._counted = 0
        report = self._report("counting")
        for _ in db:
            self._counted += 1
            if report is not None and self._counted % _REPORT_EVERY == 0:
                report(self._counted, 0, "entries")
        return self._counted

    def _report(self, way: str) -> Progress | None:
        """The caller's progress, with the way before the phase."""
        progress = self._progress
        if progress is None:
            return None
        return lambda done, total, phase: progress(done, total, f"{way}, {phase}")


def _remarks(plan: RepairPlan) -> Iterator[str]:
    """Yield the remarks that the counts of a plan do not express."""
    if not plan.by_levels and not plan.survey.obsolete:
        yield "deleted keys may be back, since no MANIFEST says which tables are obsolete"
    lost = gaps(plan)
    if any(first == 0 for first, _ in lost):
        yield "an unknown number of writes is missing in the logs"
    elif lost:
        yield f"{_writes(lost)} missing in the logs"
    elif any(log.problems for log in plan.logs):
        yield "parts of the logs are damaged"
    if plan.unaccounted:
        yield f"{_writes(plan.unaccounted)} in no file: lost, or replaced by later ones"
    missing = sum(log.needed and log.size < 0 for log in plan.survey.logs)
    if missing:
        yield f"the writes of {count(missing, 'log')} are missing"
    if plan.left_in_lost:
        yield f"{count(len(plan.left_in_lost), 'log')} in lost/ cannot be added"


def _writes(spans: list[tuple[int, int]]) -> str:
    number = sum(last - first + 1 for first, last in spans)
    return f"{count(number, 'write')} {'is' if number == 1 else 'are'}"


def _best(ways: list[Way], better_kept: bool) -> str | None:
    """The way that is recommended; ``better_kept`` is the plan's opinion of stale entries."""
    working = {way.name: way for way in ways if way.works}
    if not working or AS_IS in working:
        return next(iter(working), None)
    best = next(iter(working.values()))
    if better_kept:
        best = working.get(KEEP_STALE, best)
    by_sequence = working.get(BY_SEQUENCE, best)
    return (by_sequence if by_sequence.entries > 2 * best.entries else best).name


def _copy_store(env: Env, path: str, target: str, progress: Progress | None) -> None:
    """Copy the files of a store, and those of its ``lost/``, durably."""
    with open_remains(env, path) as source, env.open_directory(target, create=True) as copied:
        names = source.names()
        refuse_certain(path, names)
        _refuse_open(source)
        chosen = [(source, copied, name) for name in names if _is_copied(name)]
        lost = source.subdirectory(LOST) if LOST in names else None
        try:
            if lost is not None:
                inner = copied.subdirectory(LOST, create=True)
                chosen += [(lost, inner, name) for name in lost.names()]
            total = sum(directory.size(name) for directory, _, name in chosen)
            free = copied.free_bytes()
            if free is not None and free < total:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.path.dirname(target))
            done = 0
            for directory, into, name in chosen:
                if progress is not None:
                    progress(done, total, "copying")
                with directory.open(name) as file:
                    copy(file, into, name, file.size)
                    done += file.size
        finally:
            if lost is not None:
                lost.close()


def _is_copied(name: str) -> bool:
    parsed = parse_filename(name)
    return parsed is not None and parsed[1] in _COPIED


def _refuse_open(directory: Directory) -> None:
    """Raise :class:`LockedError` if a process has the store open, since its files may change."""
    path = f"{directory.path}/{LOCK}"
    holder = directory.lock_holder(LOCK) if directory.exists(LOCK) else None
    if holder is not None:
        raise LockedError(path, holder or None)
    if directory.is_shared(SHARED):
        raise LockedError(path, None, shared=True)
