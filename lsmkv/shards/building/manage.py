"""Manages the versions of a shard set: lists them, compares them, removes old ones.

Each function opens the objects below a URL, and closes them.  ``url``, ``options`` and ``limits``
are those of :func:`lsmkv.bulk.build`.  All raise :class:`CorruptionError` for a damaged version,
:class:`IOError` if the store fails, and ``ImportError`` if the extra ``remote`` is needed but not
installed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing

from lsmkv.engine.errors import NotFoundError, raise_typed
from lsmkv.shards.building.diff import PairChange, PairStream, diff_versions
from lsmkv.shards.building.prune import GRACE, Pruned
from lsmkv.shards.building.prune import prune as prune_objects
from lsmkv.shards.remote.objects.open import open_objects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits
from lsmkv.shards.shards import Shards
from lsmkv.shards.version import VersionDocument
from lsmkv.shards.versions import list_versions, read_version


def versions(
    url: str | os.PathLike[str],
    *,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[VersionDocument]:
    """The versions of a shard set, from the oldest; the last one is current.

    An empty list if nothing is published.  A version that is removed during the call is left out.
    Costs a listing, and a request per version.  Raises :class:`CorruptionError` for a damaged
    version, and :class:`IOError`.

    >>> import lsmkv.bulk, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1")], here)
    ...     _ = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], here)
    ...     [(version.number, version.pairs) for version in lsmkv.bulk.versions(here)]
    [(1, 1), (2, 2)]
    """
    try:
        with open_objects(url, options=options, limits=limits) as objects:
            found: list[VersionDocument] = []
            for number in list_versions(objects):
                try:
                    found.append(read_version(objects, number))
                except NotFoundError:  # pruned after the listing
                    continue
            return found
    except OSError as error:
        raise_typed(error)


def prune(
    url: str | os.PathLike[str],
    *,
    keep: int = 2,
    grace: float = GRACE,
    dry_run: bool = False,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Pruned:
    """Remove all but the newest ``keep`` versions, and the objects that no remaining version needs.

    Nothing younger than ``grace`` seconds is removed.  ``grace`` must exceed the duration of a
    build, and the time for which a reader keeps an old version.  ``dry_run`` only reports what
    would be removed.  Costs three listings, a request for each version that stays, and the removal.
    Raises ``ValueError``, :class:`CorruptionError` for a damaged version that stays, and
    :class:`IOError`.

    >>> import lsmkv.bulk, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     for value in (b"1", b"2", b"3"):
    ...         _ = lsmkv.bulk.build([(b"a", value)], here)
    ...     pruned = lsmkv.bulk.prune(here, keep=1, grace=0)
    ...     pruned.versions, pruned.kept_versions, len(pruned.objects)
    ((1, 2), (3,), 8)
    """
    try:
        with open_objects(url, options=options, limits=limits) as objects:
            return prune_objects(objects, keep=keep, grace=grace, dry_run=dry_run)
    except OSError as error:
        raise_typed(error)


def diff(
    url: str | os.PathLike[str],
    a: int | None = None,
    b: int | None = None,
    *,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    advance: Callable[[int], None] = lambda _: None,
) -> Generator[PairChange, None, None]:
    """The changes from version ``a`` to version ``b``, in key order.

    ``b`` is the newest version by default, and ``a`` the one before ``b``.  Shards that both have
    are not read, so damage in them is not noticed.  ``advance`` is called with the number of keys
    compared, from time to time.

    The generator does its work, and raises errors, as it is iterated.  Close it, or iterate to the
    end.  Raises :class:`NotFoundError` if a version does not exist.  Cost: both versions of each
    shard that differs are read, in constant memory.

    >>> import lsmkv.bulk, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"a", b"1"), (b"b", b"2")], here)
    ...     _ = lsmkv.bulk.build([(b"b", b"3")], here)
    ...     for change in lsmkv.bulk.diff(here):
    ...         change.kind.value, change.key, change.old, change.new
    ('removed', b'a', b'1', None)
    ('changed', b'b', b'2', b'3')
    """
    a, b = versions_to_compare(url, a, b, options=options, limits=limits)
    with ExitStack() as stack:
        readers: dict[int, Shards] = {}
        for number in (a, b):
            if number not in readers:
                reader = Shards(
                    url, version=number, options=options, limits=limits, lru_cache_size=0
                )
                readers[number] = stack.enter_context(reader)

        def open_range(version: VersionDocument, start: bytes, stop: bytes | None) -> PairStream:
            return readers[version.number].iterator(start=start, stop=stop, fill_cache=False)

        old, new = readers[a].document, readers[b].document
        changes = stack.enter_context(closing(diff_versions(old, new, open_range, advance)))
        yield from changes


def versions_to_compare(
    url: str | os.PathLike[str],
    a: int | None,
    b: int | None,
    *,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[int, int]:
    """The two versions that :func:`diff` compares for ``a`` and ``b``.

    One listing, unless both are given.
    """
    if a is not None and b is not None:
        return a, b
    try:
        with open_objects(url, options=options, limits=limits) as objects:
            numbers = list_versions(objects)
            where = objects.url
    except OSError as error:
        raise_typed(error)
    if b is None:
        if not numbers:
            raise NotFoundError(errno.ENOENT, "no version of a shard set is published here", where)
        b = numbers[-1]
    if a is None:
        before = [number for number in numbers if number < b]
        if not before:
            raise NotFoundError(errno.ENOENT, f"there is no version before {b}", where)
        a = before[-1]
    return a, b
