"""Publishes a version of a shard set: one conditional put makes it current.

Versions are numbered from 1, and each number is taken once.  Publishers race for the next number
with ``ObjectStore.put_if_absent``, and the loser tries the number after it.  A publisher that dies
leaves the old version current, or its own complete one.  No clock and no lock is involved.

A reply may be lost.  A document therefore has a random nonce.  A publisher that finds its number
taken reads the document: if the nonce is its own, it has succeeded.

Not supported: withdrawing versions.  The content of an older one can be published again under a new
number.
"""

from __future__ import annotations

import errno
import random
import secrets
import threading
import time
import weakref
from typing import NoReturn

from lsmkv.engine.errors import ConflictError, CorruptionError, IOError, NotFoundError
from lsmkv.shards.remote.objects.base import PERMANENT_ERRNOS, ObjectStore
from lsmkv.shards.version import VersionDocument, utc_now, version_name
from lsmkv.shards.versions import list_versions, read_version

PROBE_PREFIX = "versions/probe-"
"""The prefix of the names of probes; a killed publisher may leave one."""

_ATTEMPTS = 8
_FIRST_WAIT = 0.05
"""Seconds; the upper bound of the wait doubles with each attempt."""

_passed: weakref.WeakSet[ObjectStore] = weakref.WeakSet()
_passed_lock = threading.Lock()


def publish(
    objects: ObjectStore, draft: VersionDocument, *, after: int | None = None
) -> VersionDocument:
    """Publish a draft under the next free number, and return it as published.

    With ``after``, it is published only if that is the number of the current version (0: no version
    is published).  Otherwise :class:`~lsmkv.errors.ConflictError` is raised, and nothing is
    published.

    All files that the draft names must exist.  :class:`~lsmkv.errors.CorruptionError` names a
    missing one, one of the wrong size, or a damaged document that has taken the number.  Raises
    ``ValueError`` if the draft is not a valid version, and the store's errors.  After a *transient*
    error the version may be published, if the store could not be asked.

    Costs a listing of ``versions/``, one of each build that made the shards, a put, and what
    :func:`probe` costs.
    """
    document = draft._replace(number=1, nonce=secrets.token_hex(16), created=utc_now())
    document.check()
    probe(objects)
    _check_files(objects, document)
    number = newest_after(objects, after) + 1
    refused = 0
    while True:
        document = document._replace(number=number)
        holder = _put(objects, document)
        if holder is not None and holder.nonce == document.nonce:
            return holder
        if holder is None:
            refused += 1
            _wait(objects, number, refused)
        elif after is not None:
            raise ConflictError(
                f"{objects.url}: version {number} was published by another publisher"
            )
        else:
            number += 1


def newest_after(objects: ObjectStore, after: int | None) -> int:
    """The number of the current version, 0 for none.  Raises :class:`ConflictError` if it is not
    ``after``, unless that is None.  One listing."""
    newest = max(list_versions(objects), default=0)
    if after is not None and newest != after:
        raise ConflictError(f"{objects.url}: the current version is {newest}, not {after}")
    return newest


def probe(objects: ObjectStore) -> None:
    """Verify that the store's ``put_if_absent`` refuses a name that is taken.

    Raises :class:`~lsmkv.errors.IOError` with ``ENOTSUP`` if not: publishers would overwrite each
    other's versions.  Three requests, or none for a store object that has passed before.
    """
    with _passed_lock:
        if objects in _passed:
            return
    try:
        refuses = _refuses_second_put(objects)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        _raise_unsupported(objects, "has no put that fails if the name is taken", error)
    if not refuses:
        _raise_unsupported(objects, "overwrites an object in a put that must not", None)
    with _passed_lock:
        _passed.add(objects)


def _put(objects: ObjectStore, document: VersionDocument) -> VersionDocument | None:
    """Try to take the document's number.

    Returns the document that has the number now, this one or another's, or ``None``.
    """
    try:
        objects.put_if_absent(version_name(document.number), document.encode())
    except FileExistsError:
        return _holder(objects, document.number)
    except OSError as error:
        if error.errno in PERMANENT_ERRNOS:
            raise
        holder = _holder(objects, document.number)
        if holder is None or holder.nonce != document.nonce:
            raise
        return holder
    return document


def _holder(objects: ObjectStore, number: int) -> VersionDocument | None:
    try:
        return read_version(objects, number)
    except NotFoundError:
        return None


def _wait(objects: ObjectStore, number: int, refused: int) -> None:
    """Wait before another attempt at a number that was refused but is free."""
    if refused == _ATTEMPTS:
        url = objects.url_of(version_name(number))
        raise IOError(errno.EAGAIN, f"refused {refused} times, although it does not exist", url)
    time.sleep(random.uniform(0, _FIRST_WAIT * 2**refused))


def _check_files(objects: ObjectStore, document: VersionDocument) -> None:
    builds = {"/".join(shard.path.split("/")[:2]) for shard in document.shards}
    sizes = {info.name: info.size for build in builds for info in objects.list(f"{build}/")}
    for name, file in document.objects():
        size = sizes.get(name)
        if size != file.size:
            found = "is missing" if size is None else f"has {size} bytes"
            reason = f"a file of {file.size} bytes that is to be published {found}"
            raise CorruptionError(reason, objects.url_of(name))


def _refuses_second_put(objects: ObjectStore) -> bool:
    name = f"{PROBE_PREFIX}{secrets.token_hex(16)}"
    stored = 0
    try:
        for attempt in range(3):
            try:
                objects.put_if_absent(name, b"")
                stored += 1
            except FileExistsError:
                # The first put may be refused: the store was busy with it, or its reply was lost.
                if attempt > 0:
                    return True
            if stored == 2:
                return False
        return True
    finally:
        try:
            objects.delete([name])
        except (
            OSError
        ):  # not every publisher may remove it; the puts have answered, and prune removes it
            pass


def _raise_unsupported(objects: ObjectStore, what: str, cause: OSError | None) -> NoReturn:
    reason = f"nothing can be published here: the store {what}"
    raise IOError(errno.ENOTSUP, reason, objects.url) from cause
