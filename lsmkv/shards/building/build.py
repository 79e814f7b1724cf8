"""``lsmkv.bulk.build``: plan, sort, assemble, publish.

1. Each part of the input is sorted into *runs*, by as many workers as there are. 2. The runs'
samples give the ranges of the shards: about equal in bytes. 3. Each shard is merged from its range
of every run, into tables, by as many workers as there are. 4. The shards are published as one
immutable version.

Workers exchange only objects in the store.  This process receives only names, sizes and samples.
The same input gives the same bytes, however many workers there are and however often a task runs.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple, Unpack

from lsmkv.engine.errors import ConflictError, raise_typed
from lsmkv.engine.options import MIB, TableArguments
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.urls import is_url
from lsmkv.shards.building.assemble import ShardTask, build_shard
from lsmkv.shards.building.merging import Merge
from lsmkv.shards.building.place import Place
from lsmkv.shards.building.plan import shard_bounds
from lsmkv.shards.building.publish import newest_after, probe, publish
from lsmkv.shards.building.runs import Run
from lsmkv.shards.building.scratch_directory import scratch_directory
from lsmkv.shards.building.sorting import SortTask, sort_part
from lsmkv.shards.building.sources.arrow import ArrowPart
from lsmkv.shards.building.sources.part import PackedPart, Part
from lsmkv.shards.building.sources.parts import parts_of
from lsmkv.shards.building.stored import StoredPart
from lsmkv.shards.building.tables import TABLE_BYTES, TableSettings, table_settings
from lsmkv.shards.building.tasks import TaskRunner
from lsmkv.shards.building.workers import RenewedPool, Workers
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits
from lsmkv.shards.version import COMPARATOR, ShardEntry, VersionDocument

_LEAST_MEMORY = MIB
_OF_THIS_MACHINE = (Workers, ProcessPoolExecutor, ThreadPoolExecutor)


class _Plan(NamedTuple):
    """State shared by all steps of one build."""

    build: str
    work: Place
    target: Place
    tables: TableSettings
    executor: Executor | None
    memory_limit: int
    merge: Merge | None
    attempts: int
    progress: Progress | None

    def run(self, function: Callable[[Any], Any], tasks: Iterable[Any], phase: str) -> list[Any]:
        """Run tasks, and report their progress under the name of a phase."""
        known = len(tasks) if isinstance(tasks, list) else 0

        def report(done: int, begun: int) -> None:
            if self.progress is not None:
                self.progress(done, max(begun, known), phase)

        report(0, 0)
        return TaskRunner(self.executor, function, self.attempts, report).run(tasks)


def build(
    parts: Any,
    url: str | os.PathLike[str],
    *,
    shards: int | None = None,
    executor: Executor | None = None,
    key: str = "key",
    value: str = "value",
    merge: Merge | None = None,
    after: int | None = None,
    memory_limit: int = 256 * MIB,
    table_bytes: int = TABLE_BYTES,
    work_url: str | os.PathLike[str] | None = None,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    attempts: int = 5,
    progress: Progress | None = None,
    **tables: Unpack[TableArguments],
) -> VersionDocument:
    """Build shards of all pairs in ``parts``, and publish them at ``url`` as the next version.

    ``parts``: anything that :func:`lsmkv.bulk.parts_of` accepts: pairs, files of ``lsmkv export``,
    Parquet and CSV files, Arrow tables, Dask dataframes, or a list of these.  ``key`` and ``value``
    name the columns.  If several pairs have the same key, the last one wins, in the order of the
    parts.  Alternatively ``merge(key, values)`` returns the value; it must be a function that can
    be pickled.

    ``url``: a directory, or ``s3://bucket/name``, ``gs://``, ``az://`` and others (the extra
    ``remote``); ``options`` are passed on to the store: credentials, region, endpoint.

    ``shards``: the number of shards; by default one per 512 MiB.  ``executor``: any
    :class:`concurrent.futures.Executor`; None works in this process.  :class:`Workers` are
    processes on this machine, ``Client.get_executor()`` is Dask's.  A task whose worker dies is run
    again.  Each worker takes about ``memory_limit`` bytes to sort.  A larger part is sorted in
    pieces, which are stored in ``work_url`` until the end.  That is a temporary directory by
    default, or below ``url`` if the executor may have other machines.  Building a shard takes three
    tables of memory, and 1 MB for each piece that has keys of the shard: see ``docs/scale.md``.
    For ``merge`` all values of one key are in memory together.

    ``after``: publish only if this is still the newest version; otherwise raise
    :class:`ConflictError`, before building if possible. ``table_bytes``, and the keywords of
    :class:`lsmkv.TableWriter`: how tables are made. ``progress``: called with the tasks done, the
    tasks known so far, and the phase: sorting (a task is a part), building (a task is a shard),
    publishing.

    Returns the version.  Raises ``TypeError`` and ``ValueError`` for wrong arguments,
    :class:`CorruptionError` for damaged input, :class:`IOError` if a store or a disk fails for
    good, and :class:`Error` for a task whose worker dies each time.  After an error, or Ctrl-C, the
    previous version stays current.  The exception: if it came while the new version was being
    published, the new one may be current.  The objects of a failed build are removed immediately,
    or by :func:`prune` after its grace time.

    Cost, for a pair of 16+100 bytes: about 4 us of one processor if lsmkv is compiled.  Each byte
    is written twice.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     version = lsmkv.bulk.build([(b"b", b"2"), (b"a", b"1")], here, shards=2)
    ...     with lsmkv.shards.open(here) as s:
    ...         version.number, version.pairs, s.get(b"a"), list(s)
    (1, 2, b'1', [(b'a', b'1'), (b'b', b'2')])
    """
    _check("shards", shards, 1)
    _check("attempts", attempts, 1)
    _check("memory_limit", memory_limit, _LEAST_MEMORY)
    if merge is not None and not callable(merge):
        raise TypeError(f"merge must be a function, not {type(merge).__name__}")
    settings = table_settings(table_bytes, tables)
    target = _target(url, options, limits)
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    try:
        sources = parts_of(parts, key=key, value=value)
        with (
            target.open(create=True) as objects,
            _work_place(work_url, target, name, executor) as work,
        ):
            probe(objects)
            if after is not None:
                newest_after(objects, after)
            with (
                _lasting(executor) as lasting,
                _removed_after(objects, f"shards/{name}/", BaseException),
            ):
                plan = _Plan(
                    name, work, target, settings, lasting, memory_limit, merge, attempts, progress
                )
                entries = _make(plan, sources, shards)
                if progress is not None:
                    progress(len(entries), len(entries), "publishing")
            # Any other error, and Ctrl-C, may come after the version is published.
            with _removed_after(objects, f"shards/{name}/", ConflictError):
                return publish(objects, _draft(plan, entries), after=after)
    except OSError as error:
        raise_typed(error)


def _make(plan: _Plan, sources: Iterator[Part], shards: int | None) -> list[ShardEntry]:
    """Sort, plan, and assemble."""
    found: list[list[Run]] = plan.run(sort_part, _sort_tasks(plan, sources), "sorting")
    runs = [run for some in found for run in some]
    bounds = shard_bounds(runs, shards)
    return plan.run(build_shard, list(_shard_tasks(plan, runs, bounds)), "building")


def _sort_tasks(plan: _Plan, sources: Iterator[Part]) -> Iterator[SortTask]:
    for number, part in enumerate(sources):
        if plan.executor is not None and isinstance(part, (PackedPart, ArrowPart)):
            # Workers read it from the store: an executor would keep it in memory, and copy it.
            if isinstance(part, ArrowPart):
                part = PackedPart.pack(part.pairs(), part.label)
            name = f"parts/{number:06d}"
            with plan.work.open() as objects:
                objects.put(name, part.blob)
            part = StoredPart(plan.work, name, part.label, part.size)
        yield SortTask(part, number, plan.work, plan.memory_limit, plan.merge is not None)


def _shard_tasks(plan: _Plan, runs: list[Run], bounds: list[bytes]) -> Iterator[ShardTask]:
    slim = [run._replace(samples=()) for run in runs]
    for number, (begin, end) in enumerate(zip(bounds, [*bounds[1:], None], strict=True)):
        inside = tuple(
            run for run in slim if run.last >= begin and (end is None or run.first < end)
        )
        yield ShardTask(
            number,
            begin,
            end,
            inside,
            plan.work,
            plan.target,
            plan.build,
            plan.tables,
            plan.memory_limit,
            plan.merge,
        )


def _draft(plan: _Plan, entries: list[ShardEntry]) -> VersionDocument:
    options = plan.tables.options()
    policy, extractor = options.filter_policy, options.prefix_extractor
    return VersionDocument(
        number=0,
        nonce="",
        build=plan.build,
        created="",
        comparator=COMPARATOR,
        filter_policy=None if policy is None else policy.name,
        prefix_extractor=None if extractor is None else extractor.name,
        shards=tuple(entries),
    )


def _target(
    url: str | os.PathLike[str], options: Mapping[str, object] | None, limits: Limits
) -> Place:
    place = Place.at(url, options, limits)
    if options and place.options is None:
        raise ValueError(f"a local directory takes no options: {sorted(options)}")
    return place


@contextmanager
def _work_place(
    url: str | os.PathLike[str] | None, target: Place, name: str, executor: Executor | None
) -> Iterator[Place]:
    """Make a place for runs; it is removed when the build ends."""
    if url is None and is_url(target.url) and _is_of_this_machine(executor):
        with scratch_directory("lsmkv-bulk-") as path:
            yield Place(path, durable=False)
        return
    base = target.below("work") if url is None else Place.at(url, target.options, target.limits)
    place = base.below(name)._replace(durable=False)
    place.open(create=True).close()
    try:
        yield place
    finally:
        # Created through the directory above, so that the directory is removed with its last file.
        above, prefix = (target, f"work/{name}/") if url is None else (base, f"{name}/")
        with above.open() as objects:
            _remove(objects, prefix)


@contextmanager
def _lasting(executor: Executor | None) -> Iterator[Executor | None]:
    """An executor that still takes tasks after it has lost a process."""
    if isinstance(executor, ProcessPoolExecutor):
        with RenewedPool(executor) as pool:
            yield pool
    else:
        yield executor


def _is_of_this_machine(executor: Executor | None) -> bool:
    return executor is None or isinstance(executor, _OF_THIS_MACHINE)


@contextmanager
def _removed_after(objects: ObjectStore, prefix: str, error: type[BaseException]) -> Iterator[None]:
    """Remove objects after an error that comes before anything names them."""
    try:
        yield
    except error:
        _remove(objects, prefix)
        raise


def _remove(objects: ObjectStore, prefix: str) -> None:
    """Remove objects, as far as possible now; ``prune`` removes the rest."""
    try:
        objects.delete([found.name for found in objects.list(prefix)])
    except OSError:
        pass


def _check(name: str, value: int | None, least: int) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value is not None and value < least:
        raise ValueError(f"{name} must be {least} or more, not {value}")
