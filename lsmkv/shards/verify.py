"""Verifies a version of a shard set: reads every byte, and reports what is wrong, and where.

Each object is fetched once, and compared with the size and the SHA-256 that the version states.
Each shard is then surveyed as a database (:mod:`lsmkv.repair.survey`): every block and record,
order, filters, and what its MANIFEST states.  META must repeat the bytes of the files.  The keys
must be in the shard's range, and their number must be the one that the version states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lsmkv.engine.format.keys import unpack
from lsmkv.engine.options import make_options
from lsmkv.engine.util.progress import Progress
from lsmkv.engine.util.text import count, quoted
from lsmkv.files.repair.report import DAMAGED, SOUND, FileSurvey, TableSurvey
from lsmkv.files.repair.survey import survey
from lsmkv.shards.fetched import FetchedShard
from lsmkv.shards.remote.meta import META
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.version import ShardEntry, VersionDocument


class ShardSurvey(NamedTuple):
    """One shard: its files, and the state of each.  ``Shards.verify`` makes it.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six")], here)
    ...     with lsmkv.shards.open(here) as s:
    ...         (shard,) = s.verify().shards
    >>> shard.severity, [table.name for table in shard.tables]
    (0, ['000002.ldb'])
    """

    number: int
    """From 0."""
    entry: ShardEntry
    """The version's entry for it."""
    files: tuple[FileSurvey, ...]
    problems: tuple[str, ...]
    """Faults of its pairs as a whole, found only if its files are intact."""

    @property
    def severity(self) -> int:
        """The severity of the worst file: 0 sound, 1 remarks, 2 damaged."""
        worst = max(file.severity for file in self.files)
        return DAMAGED if self.problems else worst

    @property
    def tables(self) -> list[TableSurvey]:
        """Its tables."""
        return [file for file in self.files if isinstance(file, TableSurvey)]


class VersionSurvey(NamedTuple):
    """A version, and all its shards.  ``Shards.verify`` makes it.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six")], here)
    ...     with lsmkv.shards.open(here) as s:
    ...         survey = s.verify()
    >>> survey.severity, survey.document.pairs
    (0, 1)
    """

    url: str
    document: VersionDocument
    shards: tuple[ShardSurvey, ...]

    @property
    def severity(self) -> int:
        """The severity of the worst shard: 0 sound, 1 remarks, 2 damaged."""
        return max((shard.severity for shard in self.shards), default=SOUND)


def verify_version(
    objects: ObjectStore, document: VersionDocument, progress: Progress | None = None
) -> VersionSurvey:
    """Read and check a whole version; damage is not raised but recorded.

    ``progress`` is called with the bytes done, the total, and the shard.  Raises ``OSError`` if the
    store fails, :class:`UnsupportedCompressionError` and :class:`ForeignFormatError`.  Cost: a
    request for each object, and a listing for each shard; one table is in memory at a time.
    """
    done = 0
    total = document.bytes
    shards: list[ShardSurvey] = []

    def fetched(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            progress(done, max(total, done), f"shard {len(shards)}")

    for number, entry in enumerate(document.shards):
        further = document.shards[number + 1 :]
        shards.append(
            _verify_shard(objects, number, entry, further[0].first if further else None, fetched)
        )
    return VersionSurvey(objects.url, document, tuple(shards))


def _verify_shard(
    objects: ObjectStore,
    number: int,
    entry: ShardEntry,
    stop: bytes | None,
    fetched: Callable[[int], None],
) -> ShardSurvey:
    with FetchedShard(objects, entry, fetched) as shard:
        found = survey(shard, make_options(lru_cache_size=0))
        for name in shard.names():
            if name not in shard.seen:  # the survey does not use it
                shard.open(name).close()
        files = _with_all_named({file.name: file for file in found.files}, shard, entry)
    for flaw in shard.flaws:
        files[flaw.name].note(flaw.offset, 0, flaw.reason)
    surveyed = ShardSurvey(number, entry, tuple(files.values()), ())
    if surveyed.severity == DAMAGED:
        return surveyed
    return surveyed._replace(problems=tuple(_wrong_pairs(surveyed.tables, entry, stop)))


def _with_all_named(
    files: dict[str, FileSurvey], shard: FetchedShard, entry: ShardEntry
) -> dict[str, FileSurvey]:
    """META first, then the files of a survey, missing files, and files that nothing names."""
    meta = FileSurvey(META, entry.meta.size, True)
    found = {META: meta} | files
    for stated in (entry.meta, *entry.files):
        file = found.setdefault(stated.name, FileSurvey(stated.name, stated.size, True))
        if not shard.exists(stated.name):
            file.size = -1
            if not file.problems:
                file.note(0, 0, "missing")
    for name, size in sorted(shard.others.items()):
        file = found.setdefault(name, FileSurvey(name, size, False))
        file.remarks.append("left over: the version does not name it")
    return found


def _wrong_pairs(tables: list[TableSurvey], entry: ShardEntry, stop: bytes | None) -> list[str]:
    wrong: list[str] = []
    pairs = sum(table.entries - table.deletions for table in tables)
    if pairs != entry.pairs:
        wrong.append(f"{count(pairs, 'pair')}, but the version states {entry.pairs:,}")
    for table in tables:
        first, last = unpack(table.smallest)[0], unpack(table.largest)[0]
        if first < entry.first or (stop is not None and last >= stop):
            bounds = f"{quoted(first)} to {quoted(last)}"
            wrong.append(f"{table.name} has the keys from {bounds}, outside the shard's range")
    return wrong
