"""Removes what no version of a shard set still needs: old versions, their files, leftovers.

Two rules.  The newest versions stay, with all objects that they name.  And nothing younger than a
grace period is removed.  It may belong to a build under way, or to a version that is published
while this runs.  Also, a number that was just taken must not become free for a slow publisher.

The order makes a crash harmless at any point: first the documents of old versions are removed, then
the files that no document names.  So every existing version is complete.  The next run removes
what a crash leaves.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from lsmkv.shards.building.publish import PROBE_PREFIX
from lsmkv.shards.remote.objects.base import ObjectInfo, ObjectStore
from lsmkv.shards.version import parse_version_name
from lsmkv.shards.versions import read_version

GRACE = 24 * 3600.0
"""Seconds."""


class Pruned(NamedTuple):
    """The removed objects, or those that a dry run would remove, and the kept ones.

    >>> Pruned(versions=(1,), kept_versions=(2, 3), objects=(), kept_objects=8, bytes=0).versions
    (1,)
    """

    versions: tuple[int, ...]
    """The versions that were removed, rising."""
    kept_versions: tuple[int, ...]
    objects: tuple[str, ...]
    """The names of the other objects that were removed: files of shards, work, probes."""
    kept_objects: int
    """The other objects below ``shards/`` and ``work/``, and probes."""
    bytes: int
    """The size of all that was removed."""


def prune(
    objects: ObjectStore,
    *,
    keep: int = 2,
    grace: float = GRACE,
    dry_run: bool = False,
    now: float | None = None,
) -> Pruned:
    """Remove all but the newest ``keep`` versions, and every object that these do not name.

    Nothing stored less than ``grace`` seconds before ``now`` is removed, versions included.
    ``grace`` must exceed the duration of a build, and the time for which a reader keeps an old
    version.  ``now`` is the current time by default, in seconds since 1970; the store's clock
    should agree.  A build that takes over shards of a version needs that version to be kept.
    Unfinished files of killed writers in a directory are also removed, but not counted.

    Looks below ``versions/``, ``shards/`` and ``work/``, and ignores names below ``versions/`` that
    lsmkv does not write.  If a version that stays cannot be read, nothing is removed.  Costs three
    listings, a request for each version that stays, and the removal.
    """
    if keep < 1:
        raise ValueError(f"keep must be 1 or more, not {keep}")
    before = (time.time() if now is None else now) - grace
    # Files are listed before versions, so files of a version published in between are not touched.
    found = objects.list("shards/") + objects.list("work/")
    listed = objects.list("versions/")
    found += [info for info in listed if info.name.startswith(PROBE_PREFIX)]
    versions = _by_number(listed)
    old = {n: versions[n] for n in sorted(versions)[:-keep] if versions[n].modified <= before}
    kept = sorted(versions.keys() - old.keys())
    needed = {name for number in kept for name, _ in read_version(objects, number).objects()}
    garbage = [info for info in found if info.name not in needed and info.modified <= before]
    if not dry_run:
        objects.delete([info.name for info in old.values()])
        objects.delete([info.name for info in garbage])
        objects.sweep(before)
    return Pruned(
        versions=tuple(old),
        kept_versions=tuple(kept),
        objects=tuple(info.name for info in garbage),
        kept_objects=len(found) - len(garbage),
        bytes=sum(info.size for info in [*old.values(), *garbage]),
    )


def _by_number(listed: list[ObjectInfo]) -> dict[int, ObjectInfo]:
    versions = {}
    for info in listed:
        number = parse_version_name(info.name)
        if number is not None:
            versions[number] = info
    return versions
