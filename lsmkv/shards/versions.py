"""Finding and reading the versions of a shard set in an object store.

The highest version is current.  Other objects below ``versions/``, such as the probes of
:func:`lsmkv.shards.building.publish.probe`, are not versions and are skipped.
"""

from __future__ import annotations

import errno

from lsmkv.engine.errors import CorruptionError, NotFoundError
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.version import VersionDocument, parse_version_name, version_name

_ATTEMPTS = 5


def list_versions(objects: ObjectStore) -> list[int]:
    """The numbers of all versions, ascending.  One listing."""
    numbers = (parse_version_name(info.name) for info in objects.list("versions/"))
    return sorted(number for number in numbers if number is not None)


def read_version(objects: ObjectStore, number: int) -> VersionDocument:
    """The version of this number.  One request.

    Raises :class:`~lsmkv.errors.NotFoundError` if there is none,
    :class:`~lsmkv.errors.CorruptionError` if its document is damaged or belongs to another version.
    """
    name = version_name(number)
    url = objects.url_of(name)
    try:
        data = objects.get(name)
    except FileNotFoundError as error:
        raise NotFoundError(errno.ENOENT, f"there is no version {number}", url) from error
    document = VersionDocument.decode(data, url)
    if document.number != number:
        raise CorruptionError(f"it is the document of version {document.number}", url)
    return document


def newest_version(objects: ObjectStore) -> VersionDocument:
    """The current version.  A listing and a request, unless versions are pruned during the call.

    Errors as in :func:`read_version`; :class:`~lsmkv.errors.NotFoundError` if nothing is published.
    """
    missing: NotFoundError | None = None
    for _ in range(_ATTEMPTS):
        numbers = list_versions(objects)
        if not numbers:
            break
        try:
            return read_version(objects, numbers[-1])
        except NotFoundError as error:  # pruned since the listing: a newer one is there
            missing = error
    if missing is not None:
        raise missing
    raise NotFoundError(errno.ENOENT, "no version of a shard set is published here", objects.url)
