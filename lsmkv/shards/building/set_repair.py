"""Repairs a shard set: a new set of the sound shards, and of what the damaged ones keep.

A version never changes, so the result is another set.  Objects of sound shards are copied.  A
damaged shard is repaired as a store is (:mod:`lsmkv.repair`), and its pairs are written as a shard
again.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lsmkv.engine.db.db import DB
from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.errors import NotFoundError, raise_typed
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.options import TableArguments
from lsmkv.engine.util.progress import Progress
from lsmkv.files.repair.plan import RepairPlan
from lsmkv.files.repair.repair import plan_repair, repair_db
from lsmkv.files.repair.report import DAMAGED
from lsmkv.shards.building.assemble import write_shard
from lsmkv.shards.building.merging import Chunk
from lsmkv.shards.building.publish import publish
from lsmkv.shards.building.tables import TABLE_BYTES, TableSettings, table_settings
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.remote.objects.open import open_objects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits
from lsmkv.shards.verify import ShardSurvey, verify_version
from lsmkv.shards.version import ShardEntry, VersionDocument
from lsmkv.shards.versions import newest_version

_DAMAGED, _SOUND = "damaged", "sound"  # directories in memory
_PAIRS = 512


class ShardRepair(NamedTuple):
    """The effect of a repair on a damaged shard.  Plain data: it raises nothing and costs nothing.

    >>> import lsmkv.bulk, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six")], here)
    ...     next(pathlib.Path(here).rglob("CURRENT")).unlink()
    ...     (shard,) = lsmkv.bulk.repair(here).shards
    >>> shard.number, shard.stated, shard.kept
    (0, 1, 1)
    """

    number: int
    """From 0."""
    stated: int
    """The pairs that the version states."""
    kept: int
    """Those that can be read, and are in the shard's range."""
    plan: RepairPlan | None
    """The plan of its repair; None if none of its files is there."""


class SetRepair(NamedTuple):
    """The result of :func:`repair`.  Plain data: it raises nothing and costs nothing.

    >>> import lsmkv.bulk, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six")], here)
    ...     found = lsmkv.bulk.repair(here)
    >>> found.source.pairs, found.shards, found.made
    (1, (), None)
    """

    source: VersionDocument
    """The version that was repaired."""
    shards: tuple[ShardRepair, ...]
    """The damaged shards."""
    made: VersionDocument | None
    """The version of the new set; None if none was to be made."""


def repair(
    url: str | os.PathLike[str],
    into: str | os.PathLike[str] | None = None,
    *,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> SetRepair:
    """Make a sound shard set ``into`` of what can be read of the newest version at ``url``.

    ``into`` is a URL or a directory, without any object.  Without it nothing is made, and the
    result states what would be kept.  The set at ``url`` is not changed.  The new shards have a
    filter of the version's policy if that is a LevelDB policy, or else lsmkv's default.
    ``options`` and ``limits`` are those of both stores of objects.  ``progress`` is called with the
    amount done, the total, and the phase.  Raises :class:`NotFoundError`, :class:`CorruptionError`
    for a damaged version document, ``FileExistsError`` if ``into`` has objects, and
    :class:`IOError`.  Cost: a request for each object, and one more for each that is copied.  A
    damaged shard is in memory, three times at most.

    >>> import lsmkv.bulk, lsmkv.shards, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], f"{here}/set", shards=2)
    ...     next(pathlib.Path(here, "set").rglob("CURRENT")).unlink()
    ...     made = lsmkv.bulk.repair(f"{here}/set", f"{here}/new").made
    ...     with lsmkv.shards.open(f"{here}/new") as shards:
    ...         made.pairs, shards.get(b"a"), shards.verify().severity
    (2, b'1', 0)
    """
    try:
        with open_objects(url, options=options, limits=limits) as source:
            document = newest_version(source)
            if into is None:
                found = verify_version(source, document, progress)
                damaged = [shard for shard in found.shards if shard.severity == DAMAGED]
                kept = [_Repair(source, document, shard).shown() for shard in damaged]
                return SetRepair(document, tuple(kept), None)
            with open_objects(into, options=options, limits=limits, create=True) as target:
                if target.list(""):
                    where = os.fsdecode(into)
                    raise FileExistsError(errno.EEXIST, "there are objects already", where)
                found = verify_version(source, document, progress)
                try:
                    return _repair_into(source, document, found.shards, target)
                except BaseException:
                    target.delete([info.name for info in target.list("")])
                    raise
    except OSError as error:
        raise_typed(error)


def _repair_into(
    source: ObjectStore,
    document: VersionDocument,
    shards: tuple[ShardSurvey, ...],
    target: ObjectStore,
) -> SetRepair:
    tables = _tables_like(document)
    entries: list[ShardEntry] = []
    done: list[ShardRepair] = []
    for shard in shards:
        if shard.severity != DAMAGED:
            for name, _ in shard.entry.objects():
                target.put(name, source.get(name))
            entries.append(shard.entry)
            continue
        job = _Repair(source, document, shard)
        path = f"shards/{document.build}/{shard.number:04d}-{secrets.token_hex(4)}"
        entry = write_shard(job.chunks(), target, path, shard.entry.first, tables)
        entries.append(entry)
        done.append(ShardRepair(shard.number, shard.entry.pairs, entry.pairs, job.plan))
    policy = tables.options().filter_policy
    draft = document._replace(
        shards=tuple(entries), filter_policy=None if policy is None else policy.name
    )
    return SetRepair(document, tuple(done), publish(target, draft, after=0))


class _Repair:
    """The repair of one damaged shard, in memory.  ``chunks`` is called at most once."""

    def __init__(self, source: ObjectStore, document: VersionDocument, shard: ShardSurvey) -> None:
        self._env = MemoryEnv()
        self._shard = shard
        further = document.shards[shard.number + 1 :]
        self._stop = further[0].first if further else None
        self.plan: RepairPlan | None = None
        with self._env.open_directory(_DAMAGED, create=True) as directory:
            for file in shard.entry.files:
                try:
                    data = source.get(f"{shard.entry.path}/{file.name}")
                except FileNotFoundError:
                    continue
                with directory.create(file.name) as output:
                    output.append(data)
        try:
            self.plan = plan_repair(_DAMAGED, env=self._env)
        except NotFoundError:
            pass  # no file of it is there

    def shown(self) -> ShardRepair:
        """Return the repair that would be made."""
        entry = self._shard.entry
        kept = sum(len(keys) for keys, _ in self.chunks())
        return ShardRepair(self._shard.number, entry.pairs, kept, self.plan)

    def chunks(self) -> Iterator[Chunk]:
        """Its pairs in the shard's range, as :func:`write_shard` takes them."""
        if self.plan is None:
            return
        repair_db(_DAMAGED, into=_SOUND, env=self._env)
        keys: list[bytes] = []
        values: list[bytes] = []
        first = self._shard.entry.first
        with DB(_SOUND, read_only=True, env=self._env) as db:
            for key, value in db.iterator(start=first or None, stop=self._stop):
                keys.append(key)
                values.append(value)
                if len(keys) == _PAIRS:
                    yield keys, values
                    keys, values = [], []
        if keys:
            yield keys, values


def _tables_like(document: VersionDocument) -> TableSettings:
    """Settings for tables that are filtered as those of the version are."""
    arguments: TableArguments = {}
    if document.filter_policy is None:
        arguments["bloom_filter_bits"] = 0
    elif document.filter_policy == BloomFilterPolicy().name:
        arguments["bloom_filter_bits"] = 10
    return table_settings(TABLE_BYTES, arguments)
