"""Shards: reads a shard set in place, in a directory or an object store.

Any thread may call any method.  A reader uses one version at a time, which never changes;
:meth:`Shards.refresh` switches to a newer one.  It keeps the index and the filters of each open
shard in memory.  So a Get of an absent key makes no request, unless the key is a false positive.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from lsmkv.engine.db.db import DB
from lsmkv.engine.db.read.iterator import IteratorArguments, RangeArguments
from lsmkv.engine.errors import ClosedError, NotFoundError, raise_typed
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.options import MIB, OptionArguments, Prefixes
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.block_cache import BlockCache
from lsmkv.engine.util.compression import DEFAULT_MAX_BLOCK_BYTES
from lsmkv.engine.util.progress import Progress
from lsmkv.shards.explanation import ShardExplanation
from lsmkv.shards.iterator import ShardIterator
from lsmkv.shards.open_shards import OpenShard, OpenShards
from lsmkv.shards.remote.disk_cache import DiskCache
from lsmkv.shards.remote.objects.open import absolute_url, open_objects
from lsmkv.shards.remote.objects.retrying import DEFAULT_LIMITS, Limits, RetryingObjects
from lsmkv.shards.remote.remote_env import Expected, RemoteEnv
from lsmkv.shards.stats import ShardsStats, stats_of
from lsmkv.shards.verify import VersionSurvey, verify_version
from lsmkv.shards.version import ShardEntry, VersionDocument
from lsmkv.shards.versions import list_versions, newest_version, read_version

DB._import_for_methods()  # of the shards, which are opened later

S = TypeVar("S")
T = TypeVar("T")

CACHE_BYTES = 1024 * MIB

_OPENED_AT_ONCE = 8


class Shards:
    """A shard set, open for reading: ``lsmkv.shards.open``.  Close it, or use ``with``.

    Methods raise :class:`ClosedError` once it is closed, and :class:`IOError` if the network fails
    in every attempt.  For an object that is missing, short or damaged they raise
    :class:`CorruptionError` with its URL.

    >>> import lsmkv.bulk, lsmkv.shards, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six"), (b"bee", b"six")], here, shards=2)
    ...     with lsmkv.shards.open(here) as s:
    ...         s.get(b"ant"), s.multi_get([b"bee", b"cow"]), list(s.iterator(prefix=b"b"))
    ...         b"cow" in s, s.may_contain(b"bee")
    (b'six', [b'six', None], [(b'bee', b'six')])
    (False, True)

    Another version, and the cost of reading:

    >>> with tempfile.TemporaryDirectory() as here:
    ...     _ = lsmkv.bulk.build([(b"ant", b"six")], here)
    ...     s = lsmkv.shards.Shards(here)
    ...     s.warm()
    ...     _ = lsmkv.bulk.build([(b"ant", b"6")], here)
    ...     s.version, s.versions(), s.refresh(), s.version, s.get(b"ant"), s.document.pairs
    ...     s.explain(b"bee").requests, s.stats().gets_found
    ...     s.close()
    ...     s.closed
    (1, [1, 2], True, 2, b'6', 1)
    (0, 1)
    True
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        version: int | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_bytes: int = CACHE_BYTES,
        lru_cache_size: int = 32 * MIB,
        options: Mapping[str, object] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        filter_policy: FilterPolicy | None = None,
        prefix_extractor: Prefixes | None = None,
        prefix_extractor_name: str | None = None,
        max_block_bytes: int = DEFAULT_MAX_BLOCK_BYTES,
    ) -> None:
        """Open the newest version of the shard set at ``url``, or ``version``, for reading.

        ``url``: a directory, or ``s3://bucket/name``, ``gs://``, ``az://``, ``https://`` and
        others; ``options`` are the store's: credentials, region, endpoint.  ``cache_dir``: keeps at
        most ``cache_bytes`` of the bytes read on the local disk, for this and other processes,
        across restarts.  ``lru_cache_size``: bytes of blocks that are kept in memory.  ``limits``:
        timeouts, attempts, connections.  The others are those of ``lsmkv.DB``.  lsmkv's own filters
        need no ``filter_policy``: they are recognized by name.

        Cost: two requests, or one with ``version``.  A shard is opened when it is first needed, by
        one more request for its index and filters.  Raises :class:`NotFoundError` if there is no
        version, and ``ImportError`` if the extra ``remote`` is needed but not installed.
        """
        self.url = os.fspath(url)
        """The URL, as the caller gave it."""
        self._place = absolute_url(url)
        reading: OptionArguments = {
            "filter_policy": filter_policy,
            "prefix_extractor": prefix_extractor,
            "prefix_extractor_name": prefix_extractor_name,
            "max_block_bytes": max_block_bytes,
        }
        self._arguments: dict[str, Any] = {
            **reading,
            "cache_dir": None if cache_dir is None else absolute_url(cache_dir),
            "cache_bytes": cache_bytes,
            "lru_cache_size": lru_cache_size,
            "options": options,
            "limits": limits,
        }
        self._settings: OptionArguments = {
            **reading,
            "read_only": True,
            "lru_cache_size": 0,
            "block_cache": BlockCache(lru_cache_size) if lru_cache_size > 0 else None,
        }
        self._objects: RetryingObjects | None = None
        self._cache: DiskCache | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._connections = limits.connections
        self._lock = Lock()  # for the requests below; no caller waits for them
        self._refreshing = Lock()
        self._envs: weakref.WeakSet[RemoteEnv] = weakref.WeakSet()  # the shards use them
        self._every: weakref.WeakSet[OpenShard] = weakref.WeakSet()
        self._shards: OpenShards | None = None
        try:
            self._objects = open_objects(self.url, options=options, limits=limits)
            if cache_dir is not None:
                self._cache = DiskCache(os.fspath(cache_dir), cache_bytes)
            if version is None:
                document = newest_version(self._objects)
            else:
                document = read_version(self._objects, version)
            self._shards = self._open_version(document, {})
        except NotFoundError:
            self.close()
            raise
        except FileNotFoundError as error:
            self.close()
            raise NotFoundError(errno.ENOENT, "there is no shard set here", self.url) from error
        except OSError as error:
            self.close()
            raise_typed(error)
        except BaseException:
            self.close()
            raise

    # Reading

    @overload
    def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T: ...

    def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> bytes | T | None:
        """The value of ``key``, or ``default``; the keywords are those of ``DB.get``.

        Cost: no request if a filter rejects the key or its block is cached; otherwise one.
        """
        user_key = as_bytes(key, "key")
        shard = self._shard_of(user_key)
        if shard is None:
            return default
        value = shard.db.get(user_key, fill_cache=fill_cache)
        return default if value is None else value

    def multi_get(
        self, keys: Iterable[BytesLike], *, fill_cache: bool = True
    ) -> list[bytes | None]:
        """The values of several keys, in the same order; None for an absent key.

        Shards that are not open yet are opened concurrently.  Then the filters are asked.  The
        blocks of the keys that pass are read concurrently, over as many connections as the limits
        allow.
        """
        user_keys = [as_bytes(key, "key") for key in keys]
        shards = self._open()
        values: dict[bytes, bytes | None] = {}
        wanted: list[tuple[OpenShard, bytes]] = []
        indexes = {key: shards.index_for(key) for key in sorted(set(user_keys))}
        self._open_several(shards, indexes.values())
        for key, index in indexes.items():
            values[key] = None
            if index >= 0:
                shard = shards.shard(index)
                if shard.db.may_contain(key):
                    wanted.append((shard, key))
        found = self._at_once(partial(_get, fill_cache), wanted)
        values.update(zip((key for _, key in wanted), found, strict=True))
        return [values[key] for key in user_keys]

    def __contains__(self, key: object) -> bool:
        """True if ``key`` exists.  Costs what a Get costs."""
        return self.get(as_bytes(key, "key")) is not None

    def may_contain(self, key: BytesLike) -> bool:
        """False only if ``key`` does not exist.  No request once its shard is open."""
        user_key = as_bytes(key, "key")
        shard = self._shard_of(user_key)
        return shard is not None and shard.db.may_contain(user_key)

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        **arguments: Unpack[RangeArguments],
    ) -> ShardIterator[tuple[bytes, bytes]]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        **arguments: Unpack[RangeArguments],
    ) -> ShardIterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        **arguments: Unpack[RangeArguments],
    ) -> ShardIterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False],
        include_value: Literal[False],
        **arguments: Unpack[RangeArguments],
    ) -> ShardIterator[None]: ...

    @overload
    def iterator(self, **arguments: Unpack[IteratorArguments]) -> ShardIterator[Any]: ...

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> ShardIterator[Any]:
        """An iterator over all pairs, or over a range; the keywords are those of ``DB.iterator``.

        It reads ahead, and further ahead the longer it runs.  Shards outside the range are not
        opened.
        """
        return ShardIterator(self._open(), arguments, self._check_open)

    def __iter__(self) -> ShardIterator[tuple[bytes, bytes]]:
        """:meth:`iterator` over all pairs."""
        return self.iterator()

    def explain(self, key: BytesLike) -> ShardExplanation:
        """Explain a Get of ``key``, and the number of requests that filters and caches save."""
        user_key = as_bytes(key, "key")
        shards = self._open()
        index = shards.index_for(user_key)
        if index < 0:
            return ShardExplanation(user_key, self.version, -1, "", None)
        shard = shards.shard(index)
        explained = shard.db.explain(user_key)
        return ShardExplanation(user_key, self.version, index, shard.entry.path, explained)

    # The set

    @property
    def version(self) -> int:
        """The number of the version in use."""
        return self.document.number

    @property
    def document(self) -> VersionDocument:
        """The document of that version: its shards, their bounds and files."""
        return self._open().document

    def versions(self) -> list[int]:
        """The numbers of the published versions.  One request, or a few."""
        self._check_open()
        try:
            return list_versions(self._store())
        except OSError as error:
            raise_typed(error)

    def refresh(self, version: int | None = None) -> bool:
        """Switch to the newest version, or to ``version``.  Returns whether it differs from the old
        one.

        Shards that both versions have stay open.  Iterators continue in the version that they began
        with.
        """
        try:
            with self._refreshing:
                before = self._open()
                objects = self._store()
                if version is None:
                    document = newest_version(objects)
                else:
                    document = read_version(objects, version)
                if document.number == before.document.number:
                    return False
                taken = self._open_version(document, before.opened())
                with self._lock:
                    self._open()  # unless it was closed in between
                    self._shards = taken
                return True
        except OSError as error:
            raise_typed(error)

    def warm(self) -> None:
        """Open all shards now, eight at a time: one request each.

        Opening a shard takes about twice the memory that the open shard takes.
        """
        shards = self._open()
        self._open_several(shards, range(len(shards)))

    def stats(self) -> ShardsStats:
        """Counts of reads and of saved requests: see :class:`ShardsStats`."""
        shards = self._open()
        opened = [shard.db.stats() for shard in shards.opened().values()]
        counts = self._store().counters.snapshot()
        return stats_of(shards.document, opened, counts, self._cache)

    def verify(self, progress: Progress | None = None) -> VersionSurvey:
        """Read every byte of the version, and report what is wrong, and where: ``lsmkv verify``.

        Damage is not raised but recorded: see :class:`VersionSurvey`.  ``progress`` is called with
        the bytes done and the total.  Cost: a request for each object, and one for each shard; one
        table is in memory at a time.

        >>> import lsmkv.bulk, lsmkv.shards, tempfile
        >>> with tempfile.TemporaryDirectory() as here:
        ...     _ = lsmkv.bulk.build([(b"ant", b"six"), (b"bee", b"six")], here, shards=2)
        ...     with lsmkv.shards.open(here) as s:
        ...         survey = s.verify()
        >>> survey.severity, [len(shard.files) for shard in survey.shards]
        (0, [4, 4])
        """
        try:
            return verify_version(self._store(), self.document, progress)
        except OSError as error:
            raise_typed(error)

    def close(self) -> None:
        """Close all shards, connections and the cache.  A second close has no effect."""
        with self._lock:
            self._shards = None
            every, envs = list(self._every), list(self._envs)
        if self._threads is not None:
            self._threads.shutdown()
        for shard in every:
            shard.close()
        for env in envs:
            env.close()
        if self._cache is not None:
            self._cache.close()
        if self._objects is not None:
            self._objects.close()

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self._shards is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        shards = self._shards
        state = "closed" if shards is None else f"version {shards.document.number}"
        return f"<lsmkv.shards.Shards {self.url!r} ({state})>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickling opens it again, with the same version: in a worker, for example."""
        return _reopen, (self._place, self.version, self._arguments)

    def _open(self) -> OpenShards:
        shards = self._shards
        if shards is None:
            raise ClosedError("the shards are closed")
        return shards

    def _check_open(self) -> None:
        self._open()

    def _store(self) -> RetryingObjects:
        assert self._objects is not None
        return self._objects

    def _shard_of(self, key: bytes) -> OpenShard | None:
        shards = self._open()
        index = shards.index_for(key)
        return None if index < 0 else shards.shard(index)

    def _open_version(self, document: VersionDocument, carried: dict[str, OpenShard]) -> OpenShards:
        expected = {name: Expected(file.size, file.sha256) for name, file in document.objects()}
        env = RemoteEnv(self._store(), self._cache, expected=expected)
        with self._lock:
            self._envs.add(env)

        def open_shard(entry: ShardEntry) -> OpenShard:
            arguments: OptionArguments = {**self._settings, "env": env}
            shard = OpenShard(entry, DB(entry.path, **arguments))
            env.forget_meta(entry.path)  # all tables are open: they keep what they need of it
            with self._lock:
                self._every.add(shard)
                closed = self._shards is None
            if closed:  # in between
                shard.close()
                raise ClosedError("the shards are closed")
            return shard

        return OpenShards(document, open_shard, carried)

    def _open_several(self, shards: OpenShards, indexes: Iterable[int]) -> None:
        """Open those of these shards that are not open, a few at a time to limit memory."""
        wanted = shards.closed(indexes)
        for first in range(0, len(wanted), _OPENED_AT_ONCE):
            self._at_once(shards.shard, wanted[first : first + _OPENED_AT_ONCE])

    def _at_once(self, call: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """The call's results for the items, in order, with many concurrent calls."""
        if len(items) < 2:
            return [call(item) for item in items]
        pool = self._pool()
        try:
            results = pool.map(call, items)
        except RuntimeError:  # no more calls are accepted: it was closed
            self._check_open()
            raise
        return list(results)

    def _pool(self) -> ThreadPoolExecutor:
        """The threads for concurrent requests."""
        with self._lock:
            self._open()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(
                    self._connections, thread_name_prefix="lsmkv-shards"
                )
            return self._threads


def _get(fill_cache: bool, wanted: tuple[OpenShard, bytes]) -> bytes | None:
    shard, key = wanted
    return shard.db.get(key, fill_cache=fill_cache)


def _reopen(url: str, version: int, arguments: dict[str, Any]) -> Shards:
    return Shards(url, version=version, **arguments)
