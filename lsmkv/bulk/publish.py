"""Publishing a version of a shard set: one conditional put makes it the version in force.

Versions are numbered from 1, and each number is taken once: publishers race for the next one with
``ObjectStore.put_if_absent``, and the one that loses goes on to the
number after it.  A publisher that dies leaves the version that was in force, or its own complete
one.  No clock and no lock is involved.

A reply may be lost.  A document therefore carries a random nonce: a publisher that finds its number
taken reads the document, and if the nonce is its own, it has succeeded.

Left out: taking versions back.  The content of an older one can be published again under a new
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

from lsmkv.errors import ConflictError, CorruptionError, IOError, NotFoundError
from lsmkv.shards.remote.objects.base import PERMANENT_ERRNOS, ObjectStore
from lsmkv.shards.version import VersionDocument, utc_now, version_name
from lsmkv.shards.versions import list_versions, read_version

PROBE_PREFIX = "versions/probe-"
"""How the names of probes begin, of which a killed publisher may leave one."""

_ATTEMPTS = 8
_FIRST_WAIT = 0.05
"""Seconds; the longest wait doubles with each attempt."""

_passed: weakref.WeakSet[ObjectStore] = weakref.WeakSet()
_passed_lock = threading.Lock()


def publish(
    objects: ObjectStore, draft: VersionDocument, *, after: int | None = None
) -> VersionDocument:
    """Publish a draft under the next free number, and return it as published.

    With ``after``, it is published only if that is the number of the version in force (0: none was
    published); otherwise :class:`~lsmkv.errors.ConflictError` is raised, and nothing is published.

    All files that the draft names must be there: :class:`~lsmkv.errors.CorruptionError` names one
    that is missing or has another size, or a damaged document that has taken the number.
    ``ValueError`` if the draft cannot be a version, and errors of the store as they come.  After a
    *transient* one the version may have been published, if the store could not be asked any more.

    Costs a listing of ``versions/``, one of each build that the shards are from, a put, and what
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
            raise ConflictError(f"{objects.url}: version {number} was published meanwhile")
        else:
            number += 1


def newest_after(objects: ObjectStore, after: int | None) -> int:
    """The number of the version in force, 0 for none; :class:`ConflictError` if it is not
    ``after``, unless that is None.  One listing."""
    newest = max(list_versions(objects), default=0)
    if after is not None and newest != after:
        raise ConflictError(f"{objects.url}: the newest version is {newest}, not {after}")
    return newest


def probe(objects: ObjectStore) -> None:
    """Make sure that the store's ``put_if_absent`` refuses a name that is taken.

    :class:`~lsmkv.errors.IOError` with ``ENOTSUP`` if it does not: publishers would overwrite each
    other's versions.  Three requests, and none for a store object that has passed before.
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
        _raise_unsupported(objects, "overwrites an object that was to be put if absent", None)
    with _passed_lock:
        _passed.add(objects)


def _put(objects: ObjectStore, document: VersionDocument) -> VersionDocument | None:
    """Try to take the document's number.

    Returns the document that has the number now, this one or another's, or ``None`` if none has.
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
        raise IOError(errno.EAGAIN, f"refused {refused} times, and yet not there", url)
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
                # The first put may be refused: the store was busy with it, or a reply was lost.
                if attempt > 0:
                    return True
            if stored == 2:
                return False
        return True
    finally:
        try:
            objects.delete([name])
        except OSError:  # not everybody may; what the puts have told counts, and prune removes it
            pass


def _raise_unsupported(objects: ObjectStore, what: str, cause: OSError | None) -> NoReturn:
    reason = f"nothing can be published here: the store {what}"
    raise IOError(errno.ENOTSUP, reason, objects.url) from cause
