"""Repair: an intact store from what can be read of a damaged one.

``lsmkv repair`` and user code call :func:`plan_repair` and :func:`repair_db`.  The plan
(``plan.py``) says what is kept; the job (``job.py``) writes it to a new directory, or in place
under the store's lock.  In either case no old file is changed or removed before the new store is
complete, so a repair may be killed at any point and run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Unpack

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.admin.staging import build_directory, refuse_taken
from lsmkv.engine.db.opening.directory import open_remains, take_lock
from lsmkv.engine.db.tree.stored_codec import with_codec_of
from lsmkv.engine.env.base import Directory, Env, FileLock
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import CorruptionError, LockedError, raise_typed
from lsmkv.engine.format.filenames import LOCK
from lsmkv.engine.format.foreign import too_many_levels
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.options import OptionArguments, Options, make_options
from lsmkv.engine.util.progress import Progress
from lsmkv.files.repair.in_order import blocks_out_of_order, survey_in_order
from lsmkv.files.repair.job import RepairJob
from lsmkv.files.repair.plan import RepairPlan
from lsmkv.files.repair.planning import Planner
from lsmkv.files.repair.report import Survey
from lsmkv.files.repair.survey import survey


def plan_repair(
    path: str | os.PathLike[str],
    *,
    keep_stale: bool = False,
    merge_all: bool = False,
    progress: Progress | None = None,
    **options: Unpack[OptionArguments],
) -> RepairPlan:
    """Return what :func:`repair_db` would do with the store in ``path``, which is only read.

    The store should not be open: files that a writer removes during the plan look like damage.
    Raises :class:`NotFoundError`, :class:`ComparatorMismatchError`, :class:`ForeignFormatError`,
    :class:`UnsupportedCompressionError`, and :class:`IOError`; damage is not raised, it is in the
    plan.  Cost: reads every table and log once, and the tables that a damaged one overlaps once
    more.

    >>> import tempfile
    >>> from lsmkv import DB
    >>> with tempfile.TemporaryDirectory() as path:
    ...     DB(path, create_if_missing=True).close()
    ...     plan_repair(path).needed
    False
    """
    where = os.fsdecode(path)
    settings = make_options(**options)
    try:
        with open_remains(_env(settings), where) as directory:
            return _plan(directory, options, keep_stale, merge_all, progress)[1]
    except OSError as error:
        raise_typed(error)


def repair_db(
    path: str | os.PathLike[str],
    *,
    into: str | os.PathLike[str] | None = None,
    keep_stale: bool = False,
    merge_all: bool = False,
    confirm: Callable[[RepairPlan], bool] | None = None,
    progress: Progress | None = None,
    **options: Unpack[OptionArguments],
) -> RepairPlan:
    """Make an intact store from what can be read of the one in ``path``; returns the plan.

    With ``into`` the intact store is a new directory, which must not exist, and ``path`` is not
    changed; undamaged tables are shared by hard links.  Without it, the store is repaired in place:
    files that are replaced are kept in its subdirectory ``lost``, and an undamaged store is left
    alone.

    Where the MANIFEST can be read, tables stay on their levels, and obsolete tables do not restore
    deleted keys.  Entries that an unreadable block may have overwritten or deleted are set
    aside as tables in ``lost``; ``keep_stale`` keeps them in the store.  Writes after a damaged
    part of the log are kept.  ``merge_all`` uses every table and every log that is there, merged by
    the sequences of their entries, as LevelDB's repair does: deleted keys may come back.

    ``confirm`` is called with the plan before anything is written; if it returns False, nothing is
    written.  Options are those of :class:`DB`; the comparator, if one is given, must be the
    store's, and the new tables get the requested filters and compression.  ``progress`` is called
    with the amount done, the total, and the phase.  Raises what :func:`plan_repair` raises, and
    :class:`LockedError` if the store is open.  Cost: that of the plan, and rewriting the damaged
    tables; without a MANIFEST, all tables.

    >>> import pathlib, tempfile
    >>> from lsmkv import DB
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with DB(path, create_if_missing=True) as db:
    ...         db.put(b"key", b"value")
    ...     pathlib.Path(path, "CURRENT").unlink()
    ...     plan = repair_db(path)
    ...     with DB(path) as db:
    ...         plan.needed, db.get(b"key")
    (True, b'value')
    """
    where = os.fsdecode(path)
    settings = make_options(**options)
    env = _env(settings)
    try:
        if into is not None:
            refuse_taken(env, os.fsdecode(into))  # before every file is read, not after
        with open_remains(env, where) as directory:
            lock = _lock(directory, into is None, settings.lock_timeout)
            try:
                settings, plan = _plan(directory, options, keep_stale, merge_all, progress)
                if confirm is not None and not confirm(plan):
                    return plan
                if into is not None:
                    _repair_into(env, os.fsdecode(into), directory, plan, settings, progress)
                elif plan.needed:
                    RepairJob(directory, directory, plan, settings, progress).run()
                return plan
            finally:
                if lock is not None:
                    lock.close()
    except OSError as error:
        raise_typed(error)


def _env(settings: Options) -> Env:
    return LocalEnv() if settings.env is None else settings.env


def _lock(directory: Directory, in_place: bool, timeout: float) -> FileLock | None:
    """The store's lock.  No LOCK file is created in a source that is only read."""
    if in_place:
        return take_lock(directory, timeout)
    if not directory.exists(LOCK):
        return None
    try:
        return take_lock(directory, timeout)
    except LockedError:
        raise
    except OSError:
        return None  # a read-only file system, for example: no process writes there


def _plan(
    directory: Directory,
    arguments: OptionArguments,
    keep_stale: bool,
    merge_all: bool,
    progress: Progress | None,
) -> tuple[Options, RepairPlan]:
    """The plan, and the settings for the tables of the repair: the order that the store names, and
    the codec of its tables."""

    def look(settings: Options) -> Survey:
        return survey(directory, settings, progress)

    settings, found = survey_in_order(directory.path, arguments, look)
    if blocks_out_of_order(found) > sum(table.blocks for table in found.tables):
        known = found.manifest is not None and found.manifest._state.comparator is not None
        if not known:
            raise CorruptionError(
                "the tables are not in the order of the comparator"
                f" {settings.comparator.name!r}: pass the one that the store was made with",
                directory.path,
            )
    if merge_all:
        found._use_all()
    if found.manifest is not None and found.manifest._state.deepest >= NUM_LEVELS:
        raise too_many_levels(directory.path, found.manifest._state.deepest)
    plan = Planner(found, directory, settings, keep_stale, progress).best()
    codecs = {table.number: table.codec for table in plan.survey.tables if table.needed}
    return with_codec_of(settings, codecs), plan


def _repair_into(
    env: Env,
    path: str,
    source: Directory,
    plan: RepairPlan,
    settings: Options,
    progress: Progress | None,
) -> None:
    def build(target: Directory) -> None:
        RepairJob(source, target, plan, settings, progress).run()

    build_directory(env, path, "repair", build)


keep_paths(plan_repair, repair_db)
