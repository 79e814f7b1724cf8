"""Opens the object store that a URL names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lsmkv.engine.env.base import Env
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.env.place import absolute
from lsmkv.engine.util.urls import is_url, scheme_of
from lsmkv.shards.remote.objects.base import ObjectStore
from lsmkv.shards.remote.objects.local import LocalObjects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits, RetryingObjects

CLOUD_SCHEMES = frozenset(
    ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https")
)
"""The schemes that obstore supports."""


def absolute_url(url: str | os.PathLike[str]) -> str:
    """The URL or absolute path, which a process with another working directory can open.

    >>> absolute_url("s3://bucket/set"), absolute_url("set") == os.path.abspath("set")
    ('s3://bucket/set', True)
    """
    text = os.fspath(url)
    return text if is_url(text) else absolute(text)


def open_objects(
    url: str | os.PathLike[str],
    *,
    options: Mapping[str, object] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    env: Env | None = None,
    create: bool = False,
    durable: bool = True,
) -> RetryingObjects:
    """The objects below a URL, or in a local directory.

    * A path, or ``file://``: a directory, through ``env`` (the local file system by default).  With
      ``create`` it is made if it is missing; else that is a ``FileNotFoundError``.  Without
      ``durable`` a put does not wait for the disk.  Other stores have no directories, and their
      buckets are not made here.
    * ``s3``, ``gs``, ``az``, ``abfs``, ``http`` and similar ones: by obstore, or else by fsspec.
    * Any other scheme: by fsspec.

    ``options`` go to obstore or fsspec, under their names: region, endpoint, credentials and so on.
    A local directory has no options.

    Raises ``ImportError`` if a package is missing, ``ValueError`` for an invalid URL or options,
    and ``OSError`` if a directory cannot be opened.  Makes no request.

    >>> from lsmkv.engine.env.memory import MemoryEnv
    >>> with open_objects("store", env=MemoryEnv(), create=True) as objects:
    ...     objects.put("a/b", b"content")
    ...     objects.get_range("a/b", 3, 100), [found.name for found in objects.list("a/")]
    (b'tent', ['a/b'])
    """
    text = os.fspath(url)
    scheme = scheme_of(text) if isinstance(url, str) else None
    if scheme is None or scheme == "file":
        path = text if scheme is None else _path_of(text)
        return RetryingObjects(_open_local(path, options, env, create, durable), limits)
    if env is not None:
        raise ValueError(f"env= can be combined only with a local directory, not with {text}")
    if "?" in text or "#" in text:
        raise ValueError(f"the URL of an object store cannot have a query or a fragment: {text}")
    place = text.rstrip("/")
    if "://" not in place:
        raise ValueError(f"the URL lacks a bucket: {text}")
    return RetryingObjects(_open_remote(scheme, place, options or {}, limits), limits)


def _open_local(
    path: str, options: Mapping[str, object] | None, env: Env | None, create: bool, durable: bool
) -> LocalObjects:
    if options:
        raise ValueError(f"a local directory takes no options: {sorted(options)}")
    if env is None:
        return LocalObjects(LocalEnv(), absolute(path), create, durable)
    return LocalObjects(env, path, create, durable)


def _path_of(url: str) -> str:
    """The path in a ``file://`` URL."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path:
        raise ValueError(f"not the URL of a local directory: {url} (use file:///path/to/it)")
    return unquote(parts.path, errors="surrogateescape")


def _open_remote(
    scheme: str, url: str, options: Mapping[str, object], limits: Limits
) -> ObjectStore:
    if scheme in CLOUD_SCHEMES:
        try:
            from lsmkv.shards.remote.objects.obstore_objects import (  # noqa: PLC0415 - an extra
                open_obstore,
            )

            return open_obstore(url, options, limits.timeout, limits.connections)
        except ImportError as error:
            _require_missing(error, "obstore")
    try:
        from lsmkv.shards.remote.objects.fsspec_objects import open_fsspec  # noqa: PLC0415 - an extra
    except ImportError as error:
        _require_missing(error, "fsspec")
        what = "obstore" if scheme in CLOUD_SCHEMES else "fsspec"
        why = f"{scheme}:// needs {what}: pip install '.[remote]' in lsmkv's checkout"
        raise ImportError(why, name=what) from None
    return open_fsspec(url, options)


def _require_missing(error: ImportError, package: str) -> None:
    """Raise the error again unless it says that the package is not installed."""
    if (error.name or "").partition(".")[0] != package:
        raise error
