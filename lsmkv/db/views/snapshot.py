"""Snapshots: a store as it was."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar, Unpack, overload

from mypy_extensions import mypyc_attr

from lsmkv.db.pinned import Pin
from lsmkv.db.reader import Reader
from lsmkv.db.scan.iterator import Iterator, IteratorArguments
from lsmkv.db.scan.raw_iterator import RawIterator
from lsmkv.errors import ClosedError
from lsmkv.format.batch import BytesLike, as_bytes
from lsmkv.util.introspection import described

T = TypeVar("T")


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Snapshot:
    """A store as it was when the snapshot was taken, whatever is written after.

    Costs next to nothing to take; while it is held, versions that it sees are kept on disk.
    Close it, or use it in a ``with`` block; forgetting it does the same.  Its methods have the
    errors and costs of DB's, and raise :class:`~lsmkv.ClosedError` once it is closed.

    >>> import lsmkv
    >>> db = lsmkv.DB(":memory:")
    >>> db.put(b"k", b"old")
    >>> snapshot = db.snapshot()
    >>> db.put(b"k", b"new")
    >>> snapshot.get(b"k"), list(snapshot.iterator()), snapshot.sequence
    (b'old', [(b'k', b'old')], 1)
    >>> raw = snapshot.raw_iterator()
    >>> raw.seek_to_first()
    >>> raw.value()
    b'old'
    >>> snapshot.close()
    >>> snapshot.closed
    True
    >>> db.close()
    """

    _reader: Reader | None = None

    def __init__(self, reader: Reader, pin: Pin, owner: object) -> None:
        """Not called by users: ``db.snapshot()`` makes one.

        It keeps ``owner`` from being collected.
        """
        self._reader = reader
        self._pin = pin
        self._owner: object = owner

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
        """As ``DB.get``, at the time of the snapshot."""
        value = self._open().get(as_bytes(key, "key"), self._pin.sequence, fill_cache)
        return default if value is None else value

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """As ``DB.iterator``, at the time of the snapshot."""
        return self._open().iterator_at(self._pin.sequence, self._owner, arguments)

    def __iter__(self) -> Iterator:
        """:meth:`iterator` over everything."""
        return self.iterator()

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """As ``DB.raw_iterator``, at the time of the snapshot."""
        return self._open().raw_iterator_at(self._pin.sequence, self._owner, prefix, fill_cache)

    def __contains__(self, key: object) -> bool:
        """Whether the key had a value at the time of the snapshot.  Costs what a get costs."""
        return self._open().get(as_bytes(key, "key"), self._pin.sequence, True) is not None

    @property
    def sequence(self) -> int:
        """The number of the last write that the snapshot sees."""
        return self._pin.sequence

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._reader is None

    def close(self) -> None:
        """Let go of the versions that the snapshot keeps.  Closing twice is harmless."""
        self._reader = None
        self._owner = None
        self._pin.release()

    def release(self) -> None:
        """LevelDB's name for :meth:`close`.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     snapshot = db.snapshot()
        ...     snapshot.release()
        ...     snapshot.closed
        True
        """
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> Reader:
        if self._reader is None:
            raise ClosedError("the snapshot is closed")
        return self._reader
