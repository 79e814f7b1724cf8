"""Finding and reading the versions of a shard set in an object store.

The version of the highest number is in force.  Other objects below ``versions/``, such as the
probes of :func:`lsmkv.bulk.publish.probe`, are no versions and are passed over.
"""

from __future__ import annotations

import errno

from lsmkv.errors import CorruptionError, NotFoundError
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.version import VersionDocument, parse_version_name, version_name

_ATTEMPTS = 5


def list_versions(objects: ObjectStore) -> list[int]:
    """The numbers of all versions, rising.  One listing."""
    numbers = (parse_version_name(info.name) for info in objects.list("versions/"))
    return sorted(number for number in numbers if number is not None)


def read_version(objects: ObjectStore, number: int) -> VersionDocument:
    """The version of this number.  One request.

    :class:`~lsmkv.errors.NotFoundError` if there is none, :class:`~lsmkv.errors.CorruptionError` if
    its document is damaged or is another's.
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
    """The version in force.  A listing and a request, unless versions are pruned meanwhile.

    Errors as :func:`read_version`; :class:`~lsmkv.errors.NotFoundError` if nothing was published.
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
    raise NotFoundError(errno.ENOENT, "no version of a shard set was published here", objects.url)
