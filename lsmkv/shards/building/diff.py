"""The differences between two versions of a shard set, without reading the shards that they share.

Both versions are cut at the bounds that they share, and the ranges between them are compared one by
one.  If a range is one shard in both, with the same SHA-256s, it is equal and is not read.  That
happens if a build took over shards or made the same files again.  Everything else is read in both
versions, side by side, in constant memory.  Damage in a shared shard is therefore not noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from enum import StrEnum
from typing import NamedTuple, Protocol

from lsmkv.engine.util.comparator import BytewiseComparator
from lsmkv.engine.util.pair_diff import Pair, pair_differences
from lsmkv.shards.version import ShardEntry, VersionDocument


class Change(StrEnum):
    """The kind of a change.

    >>> Change("added") is Change.ADDED, f"{Change.REMOVED}"
    (True, 'removed')
    """

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class PairChange(NamedTuple):
    """A key that differs between the versions.

    >>> PairChange(Change.CHANGED, b"ant", b"6", b"six").new
    b'six'
    """

    kind: Change
    key: bytes
    old: bytes | None
    """Its value; None if it was added."""
    new: bytes | None
    """Its value; None if it was removed."""


class PairStream(Protocol):
    """Pairs in the order of their keys: an iterator of a database, or a generator."""

    def __iter__(self) -> Iterator[Pair]: ...

    def close(self) -> None:
        """Close it before its end."""


OpenRange = Callable[[VersionDocument, bytes, bytes | None], PairStream]
"""Opens the pairs of a version from one key up to another, exclusive; ``None`` means the end."""


class KeyRange(NamedTuple):
    """Keys from ``start`` up to ``stop``, exclusive; ``None`` means the end."""

    start: bytes
    stop: bytes | None


def ranges_to_compare(old: VersionDocument, new: VersionDocument) -> list[KeyRange]:
    """The ranges in which two versions may differ: in order, disjoint, and joined if adjacent.

    O(number of shards), without reading.
    """
    cuts = {b""} | ({shard.first for shard in old.shards} & {shard.first for shard in new.shards})
    starts: list[bytes] = sorted(cuts)
    stops: list[bytes | None] = [*starts[1:], None]
    ranges: list[KeyRange] = []
    for start, stop in zip(starts, stops, strict=True):
        if _same_shard(_shards_in(old, start, stop), _shards_in(new, start, stop)):
            continue
        if ranges and ranges[-1].stop == start:
            start = ranges.pop().start
        ranges.append(KeyRange(start, stop))
    return ranges


def diff_versions(
    old: VersionDocument,
    new: VersionDocument,
    open_range: OpenRange,
    advance: Callable[[int], None] = lambda _: None,
) -> Generator[PairChange, None, None]:
    """The changes from ``old`` to ``new``, in key order.

    ``open_range`` is called for both versions, for each range that may differ; it may return the
    iterators of a shard reader.  ``advance`` is called with the number of keys compared, from time
    to time.  Errors are those of reading.
    """
    compare = BytewiseComparator().compare
    for start, stop in ranges_to_compare(old, new):
        with (
            closing(open_range(old, start, stop)) as before,
            closing(open_range(new, start, stop)) as after,
        ):
            for key, a, b in pair_differences(iter(before), iter(after), compare, advance):
                yield PairChange(_kind(a, b), key, a, b)


def _shards_in(
    version: VersionDocument, start: bytes, stop: bytes | None
) -> tuple[ShardEntry, ...]:
    """The shards of a range whose ends are bounds of the version."""
    low = max(version.shard_for(start), 0)
    high = len(version.shards) if stop is None else version.shard_for(stop)
    return version.shards[low:high]


def _same_shard(old: tuple[ShardEntry, ...], new: tuple[ShardEntry, ...]) -> bool:
    """True if a range certainly has the same pairs in both versions."""
    if not old and not new:
        return True
    return len(old) == len(new) == 1 and _digests(old[0]) == _digests(new[0])


def _digests(shard: ShardEntry) -> list[tuple[str, str]]:
    """Identifies the content of a shard.  META is left out, because it also depends on how the
    shard was built."""
    return sorted((file.name, file.sha256) for file in shard.files)


def _kind(old: bytes | None, new: bytes | None) -> Change:
    if old is None:
        return Change.ADDED
    return Change.REMOVED if new is None else Change.CHANGED
