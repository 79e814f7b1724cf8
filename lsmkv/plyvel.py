"""plyvel's API over lsmkv: a program runs unchanged after ``import lsmkv.plyvel as plyvel``.

Everything in plyvel's API reference has the same name, defaults and exceptions here. Four defaults
are plyvel's and not lsmkv's: no filters unless asked for (``bloom_filter_bits=0``), a block cache
of 8 MiB (``lru_cache_size``), batches that are written even if their ``with`` block raises
(``transaction=False``), and no warning about a store that was not closed. Checksums are verified
whatever ``verify_checksums`` says.

The classes derive from lsmkv's and have all of its methods, so a program can be moved to lsmkv line
by line.  ``docs/plyvel.md`` lists the differences from plyvel, and why.

>>> import lsmkv.plyvel as plyvel
>>> db = plyvel.DB(":memory:", create_if_missing=True)
>>> with db.write_batch() as batch:
...     batch.put(b"key", b"value")
>>> list(db.iterator(prefix=b"k"))
[(b'key', b'value')]
>>> db.close()
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, Never, Self, TypedDict, TypeVar, Unpack, cast, overload

from lsmkv.engine.db import db as engine
from lsmkv.engine.db.handles import prefixed
from lsmkv.engine.db.handles.scannable import Scannable
from lsmkv.engine.db.read.iterator import Iterator, IteratorArguments
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.env.local import is_write_protected
from lsmkv.engine.errors import CorruptionError, Error, IOError, IteratorInvalidError, NotFoundError
from lsmkv.engine.format import batch as batches
from lsmkv.engine.options import MIB, refuse_unknown
from lsmkv.engine.util.arguments import BytesLike
from lsmkv.files.repair import repair

__all__ = [
    "CorruptionError",
    "DB",
    "Error",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "PrefixedDB",
    "RawIterator",
    "Snapshot",
    "WriteBatch",
    "__leveldb_version__",
    "__version__",
    "destroy_db",
    "repair_db",
]

__version__ = "1.5.1"
"""The release of plyvel whose API this is; lsmkv's own number is ``lsmkv.__version__``."""
__leveldb_version__ = "1.23"
"""The release of LevelDB whose files are read and written; lsmkv contains no LevelDB."""

T = TypeVar("T")
D = TypeVar("D", bound="DB")

_CACHE_SIZE = 8 * MIB
"""LevelDB's default block cache, used unless ``lru_cache_size`` is given."""


class FlaggedRange(TypedDict, total=False):
    """The keywords of ``iterator`` except two: a flag may be None, which means False."""

    reverse: bool | None
    start: BytesLike | None
    stop: BytesLike | None
    include_start: bool | None
    include_stop: bool | None
    prefix: BytesLike | None
    limit: int | None
    verify_checksums: bool | None
    fill_cache: bool | None


class FlaggedArguments(FlaggedRange, total=False):
    """The keywords of ``iterator``: plyvel's, and ``limit``."""

    include_key: bool | None
    include_value: bool | None


_FLAGS = frozenset(
    {
        *("reverse", "include_start", "include_stop", "include_key", "include_value"),
        *("verify_checksums", "fill_cache"),
    }
)


def _flag(name: str, value: object) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError(f"{name} must be a bool, not {type(value).__name__}")


def _plain(arguments: FlaggedArguments) -> IteratorArguments:
    if arguments.get("prefix") is not None and (
        arguments.get("start") is not None or arguments.get("stop") is not None
    ):
        # As in plyvel: an error here is better than one when the program runs with plyvel.
        raise TypeError("give a prefix, or start and stop, not both")
    plain = {  # the iterator refuses an unexpected keyword
        name: _flag(name, value) if name in _FLAGS else value for name, value in arguments.items()
    }
    return cast(IteratorArguments, plain)


class _Reading(Scannable):
    """The reading methods, with plyvel's flags, of stores, snapshots and parts.

    A class has one of lsmkv's as its next base, whose methods these call.
    """

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        **arguments: Unpack[FlaggedRange],
    ) -> Iterator[tuple[bytes, bytes]]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[False] | None,
        **arguments: Unpack[FlaggedRange],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False] | None,
        include_value: Literal[True] = True,
        **arguments: Unpack[FlaggedRange],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False] | None,
        include_value: Literal[False] | None,
        **arguments: Unpack[FlaggedRange],
    ) -> Iterator[None]: ...

    @overload
    def iterator(self, **arguments: Unpack[FlaggedArguments]) -> Iterator[Any]: ...

    def iterator(self, **arguments: Unpack[FlaggedArguments]) -> Iterator[Any]:
        """An iterator over all entries, or over a range: see :class:`Iterator`."""
        return self._iterator(_plain(arguments))

    @overload
    def get(
        self,
        key: BytesLike,
        default: None = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: BytesLike,
        default: T,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> bytes | T: ...

    def get(
        self,
        key: BytesLike,
        default: T | None = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> bytes | T | None:
        """The value of ``key``, or ``default``."""
        if verify_checksums is not False or fill_cache is not True:  # seldom
            _flag("verify_checksums", verify_checksums)
            fill_cache = _flag("fill_cache", fill_cache)
        return super().get(key, default, fill_cache=fill_cache)  # type: ignore[misc, no-any-return]

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> RawIterator:
        """LevelDB's own kind of iterator: see :class:`RawIterator`."""
        _flag("verify_checksums", verify_checksums)
        wanted = _flag("fill_cache", fill_cache)
        return super().raw_iterator(prefix=prefix, fill_cache=wanted)  # type: ignore[misc, no-any-return]


class _Writing:
    """The writing methods, with plyvel's flags, of stores and parts: as :class:`_Reading`."""

    def put(self, key: BytesLike, value: BytesLike, *, sync: bool | None = False) -> None:
        """Set ``key`` to ``value``; with ``sync``, wait until it survives a power cut."""
        super().put(key, value, sync=_flag("sync", sync))  # type: ignore[misc]

    def delete(self, key: BytesLike, *, sync: bool | None = False) -> None:
        """Remove ``key``; no error if it is absent."""
        super().delete(key, sync=_flag("sync", sync))  # type: ignore[misc]

    def write_batch(
        self, *, transaction: bool | None = False, sync: bool | None = False
    ) -> WriteBatch:
        """A batch that writes to this store: ``write()``, or the end of a ``with`` block.

        The end of the block writes it even if the block raised, unless ``transaction`` is true.
        """
        db, prefix = self._store_and_prefix()
        db._open_store()
        return WriteBatch(
            *(db, prefix),
            transaction=_flag("transaction", transaction),
            sync=_flag("sync", sync),
        )

    def _store_and_prefix(self) -> tuple[engine.DB, bytes]:
        """The store, and the prefix of the part."""
        raise NotImplementedError


class DB(_Reading, _Writing, engine.DB):
    """plyvel's ``DB``: :class:`lsmkv.DB` with plyvel's arguments and defaults.

    Raises :class:`Error` if there is no store at ``name`` without ``create_if_missing``, or if
    there is one with ``error_if_exists``; :class:`IOError` if it is in use;
    :class:`CorruptionError` for damage; ``RuntimeError`` once it is closed.  Costs are those of
    :class:`lsmkv.DB` without filters.

    >>> db = DB(":memory:", create_if_missing=True)
    >>> db.put(b"user:ann", b"41", sync=True)
    >>> with db.write_batch(transaction=True) as batch:
    ...     batch.put(b"user:bob", b"27")
    >>> before = db.snapshot()
    >>> db.delete(b"user:ann")
    >>> db.get(b"user:ann"), before.get(b"user:ann")
    (None, b'41')
    >>> list(db.iterator(prefix=b"user:")), list(db.prefixed_db(b"user:"))
    ([(b'user:bob', b'27')], [(b'bob', b'27')])
    >>> raw = db.raw_iterator()
    >>> raw.seek_to_first()
    >>> raw.key()
    b'user:bob'
    >>> db.get_property(b"leveldb.num-files-at-level0"), db.approximate_sizes((b"a", b"z"))
    (b'0', [0])
    >>> db.name
    ':memory:'
    >>> db.close()
    """

    def __init__(
        self,
        name: str | bytes | os.PathLike[str],
        *,
        create_if_missing: bool | None = False,
        error_if_exists: bool | None = False,
        paranoid_checks: object = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: str | bytes | None = "auto",
        bloom_filter_bits: int = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: bytes | None = None,
        **unknown: Never,
    ) -> None:
        """Open the store in directory ``name``.

        ``comparator`` takes two keys and returns a number as C's ``memcmp`` does; its name is
        stored on disk.  Sizes are in bytes; None means LevelDB's default.  ``TypeError`` for any
        other keyword.
        """
        if unknown:
            refuse_unknown(unknown, DB.__init__.__kwdefaults__ or (), "plyvel.DB")
        self._name = name
        try:
            super().__init__(
                os.fsdecode(name),
                create_if_missing=_flag("create_if_missing", create_if_missing),
                error_if_exists=_flag("error_if_exists", error_if_exists),
                paranoid_checks=bool(paranoid_checks),
                write_buffer_size=write_buffer_size,
                max_open_files=max_open_files,
                lru_cache_size=_CACHE_SIZE if lru_cache_size is None else lru_cache_size,
                block_size=block_size,
                block_restart_interval=block_restart_interval,
                max_file_size=max_file_size,
                compression=_compression(compression),
                bloom_filter_bits=_bits(bloom_filter_bits),
                comparator=comparator,
                comparator_name=_comparator_name(comparator_name),
            )
        except NotFoundError as error:
            # plyvel takes LOCK before it opens a database, and reports that this failed.
            path = os.fsdecode(name)
            if is_write_protected(path):
                raise IOError(errno.EACCES, os.strerror(errno.EACCES), path) from error
            raise

    @property
    def name(self) -> Any:
        """The path as it was given: ``str`` or ``bytes``."""
        return self._name

    def _store_and_prefix(self) -> tuple[engine.DB, bytes]:
        return self, b""

    def snapshot(self) -> Snapshot:
        """The store as it is now, for later reads."""
        return Snapshot(super().snapshot(), b"")

    def prefixed_db(self, prefix: BytesLike) -> PrefixedDB[Self]:
        """The part of the store whose keys begin with ``prefix``; its keys lack the prefix.

        Costs nothing until it is used.
        """
        return PrefixedDB(db=self, prefix=prefix)

    # plyvel takes bytes only.  An error here is better than one when the program runs with plyvel.
    def get_property(self, name: bytes) -> bytes | None:  # type: ignore[override]
        """A property by LevelDB's name for it, such as ``b"leveldb.stats"``, or None."""
        if not isinstance(name, bytes):
            raise TypeError(f"a property's name must be bytes, not {type(name).__name__}")
        return super().get_property(name)

    def approximate_sizes(self, *ranges: Iterable[BytesLike]) -> list[int]:
        """About how many bytes the tables use for keys from ``start`` up to ``stop``, by range.

        A range is any iterable of two keys.  Indexes are read, data blocks are not.
        """
        return super().approximate_sizes(*[(start, stop) for start, stop in ranges])

    def __del__(self) -> None:
        """No warning: programs for plyvel close a store by dropping the last reference."""
        if not self.closed:
            self.close()

    def __repr__(self) -> str:
        return f"<lsmkv.plyvel.DB {self._name!r}{' (closed)' if self.closed else ''}>"


class PrefixedDB(_Reading, _Writing, prefixed.PrefixedDB[D]):
    """plyvel's ``PrefixedDB``: :class:`lsmkv.PrefixedDB` with plyvel's defaults.

    Errors and costs are those of :class:`DB`.  plyvel has no ``raw_iterator`` here.

    >>> db = DB(":memory:")
    >>> users = db.prefixed_db(b"user:")
    >>> with users.write_batch() as batch:
    ...     batch.put(b"ann", b"41")
    >>> users.put(b"bob", b"27")
    >>> before = users.snapshot()
    >>> users.delete(b"ann")
    >>> users.get(b"ann"), list(users.iterator()), list(before)
    (None, [(b'bob', b'27')], [(b'ann', b'41'), (b'bob', b'27')])
    >>> raw = users.raw_iterator()
    >>> raw.seek_to_last()
    >>> raw.key()
    b'bob'
    >>> db.close()
    """

    def _store_and_prefix(self) -> tuple[engine.DB, bytes]:
        return self.db, self.prefix

    def snapshot(self) -> Snapshot:
        """Like ``DB.snapshot``."""
        return Snapshot(self.db.snapshot(), self.prefix)


class WriteBatch(prefixed.PrefixedWriteBatch):
    """plyvel's ``WriteBatch``: :class:`lsmkv.WriteBatch`, of a store or of a part of it.

    Every method raises ``RuntimeError`` once the store is closed, as plyvel's do.  Other errors and
    costs are those of :class:`lsmkv.WriteBatch`.

    >>> db = DB(":memory:")
    >>> batch, other = db.write_batch(), db.prefixed_db(b"user:").write_batch()
    >>> other.put(b"ann", b"41")
    >>> other.delete(b"bob")
    >>> batch.append(other)
    >>> batch.approximate_size(), list(db)
    (35, [])
    >>> batch.write()
    >>> batch.clear()
    >>> list(db)
    [(b'user:ann', b'41')]
    >>> db.close()
    >>> batch.put(b"k", b"v")
    Traceback (most recent call last):
    lsmkv.errors.ClosedError: the database is closed
    """

    def __init__(
        self, db: engine.DB, prefix: bytes, *, transaction: bool = False, sync: bool = False
    ) -> None:
        """Do not call this: use ``write_batch`` of a store."""
        super().__init__(db, prefix, transaction=transaction, sync=sync)
        self._whole = db

    def put(self, key: BytesLike, value: BytesLike) -> None:
        """Set ``key`` to ``value``."""
        self._whole._open_store()
        super().put(key, value)

    def delete(self, key: BytesLike) -> None:
        """Remove ``key``; no error if it is absent."""
        self._whole._open_store()
        super().delete(key)

    def append(self, source: batches.WriteBatch) -> None:
        """Add all operations of another batch after those of this one."""
        self._whole._open_store()
        super().append(source)

    def clear(self) -> None:
        """Drop all operations."""
        self._whole._open_store()
        super().clear()

    def approximate_size(self) -> int:
        """Bytes of the record that the batch makes in the log."""
        self._whole._open_store()
        return super().approximate_size()

    def __enter__(self) -> WriteBatch:
        self._whole._open_store()
        return self


class Snapshot(_Reading, prefixed.PrefixedSnapshot):
    """plyvel's ``Snapshot``: :class:`lsmkv.Snapshot`, of a store or of a part of it.

    Errors and costs are those of :class:`DB`.

    >>> db = DB(":memory:")
    >>> db.put(b"user:ann", b"41")
    >>> with db.prefixed_db(b"user:").snapshot() as before:
    ...     db.put(b"user:ann", b"42")
    ...     before.get(b"ann"), list(before.iterator(reverse=True)), before.sequence
    ...     raw = before.raw_iterator()
    ...     raw.seek_to_first()
    ...     raw.item()
    (b'41', [(b'ann', b'41')], 1)
    (b'ann', b'41')
    >>> before.close()  # once more is harmless
    >>> before.closed
    True
    >>> db.close()
    """


def destroy_db(name: str | bytes | os.PathLike[str]) -> None:
    """Remove the store in directory ``name`` with all its files; no error if there is none.

    If there are other files, they stay, and so does the directory.  Raises :class:`IOError` if the
    store is in use.  Cost: one removal per file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     DB(f"{place}/db", create_if_missing=True).close()
    ...     destroy_db(f"{place}/db")
    ...     os.listdir(place)
    []
    """
    from lsmkv.shared import destroying  # noqa: PLC0415 - few programs destroy a store

    destroying.destroy_db(os.fsdecode(name))


def repair_db(
    name: str | bytes | os.PathLike[str],
    *,
    paranoid_checks: object = None,
    write_buffer_size: int | None = None,
    max_open_files: int | None = None,
    lru_cache_size: int | None = None,
    block_size: int | None = None,
    block_restart_interval: int | None = None,
    max_file_size: int | None = None,
    compression: str | bytes | None = "auto",
    bloom_filter_bits: int = 0,
    comparator: Callable[[bytes, bytes], int] | None = None,
    comparator_name: bytes | None = None,
) -> None:
    """Make the store in directory ``name`` sound again, in place: :func:`lsmkv.repair_db`.

    Replaced files are kept in the subdirectory ``lost``; a sound store is not changed.  Raises
    :class:`Error` if there is no store, :class:`IOError` if it is in use.  Cost: reads all of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     DB(name, create_if_missing=True).close()
    ...     repair_db(name)
    """
    repair.repair_db(
        os.fsdecode(name),
        paranoid_checks=bool(paranoid_checks),
        write_buffer_size=write_buffer_size,
        max_open_files=max_open_files,
        lru_cache_size=lru_cache_size,
        block_size=block_size,
        block_restart_interval=block_restart_interval,
        max_file_size=max_file_size,
        compression=_compression(compression),
        bloom_filter_bits=_bits(bloom_filter_bits),
        comparator=comparator,
        comparator_name=_comparator_name(comparator_name),
    )


def _bits(bits: int) -> int:
    if not isinstance(bits, int):
        raise TypeError(f"bloom_filter_bits must be an int, not {type(bits).__name__}")
    return max(0, bits)


def _comparator_name(name: bytes | None) -> bytes | None:
    if name is not None and not isinstance(name, bytes):
        raise TypeError(f"comparator_name must be bytes, not {type(name).__name__}")
    return name


def _compression(name: str | bytes | None) -> Literal["auto", "snappy"] | None:
    if name is None:
        return None
    if name == "auto":
        return "auto"
    if not isinstance(name, (str, bytes)):
        raise TypeError(f"compression must be 'snappy' or None, not {type(name).__name__}")
    if name not in ("snappy", b"snappy"):
        raise ValueError(f"compression must be 'snappy' or None, not {name!r}")
    return "snappy"
