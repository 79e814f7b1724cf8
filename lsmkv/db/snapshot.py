"""Snapshots: a store as it was."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, TypeVar, Unpack, overload

from mypy_extensions import mypyc_attr

from lsmkv.db.batch import BytesLike, as_bytes
from lsmkv.db.iterator import Iterator, IteratorArguments
from lsmkv.errors import ClosedError

T = TypeVar("T")


class SnapshotSource(Protocol):
    """What a snapshot reads from: the store's handle."""

    def get_at(self, sequence: int, key: bytes, fill_cache: bool, /) -> bytes | None:
        """The value that ``key`` had at ``sequence``."""
        ...

    def iterator_at(
        self, sequence: int, /, **arguments: Unpack[IteratorArguments]
    ) -> Iterator:
        """An iterator over the store as it was at ``sequence``."""
        ...

    def release_at(self, sequence: int, /) -> None:
        """The sequence is no longer looked at by its snapshot."""
        ...


@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Snapshot:
    """A store as it was when the snapshot was taken, whatever is written after.

    Costs next to nothing to take; while it is held, versions that it sees are kept on disk.
    Close it, or use it in a ``with`` block; forgetting it does the same.
    """

    _db: SnapshotSource | None = None

    def __init__(self, db: SnapshotSource, sequence: int) -> None:
        """``sequence`` is registered already; the snapshot releases it."""
        self._db = db
        self._sequence = sequence

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
        value = self._open().get_at(self._sequence, as_bytes(key, "key"), fill_cache)
        return default if value is None else value

    def iterator(self, **arguments: Unpack[IteratorArguments]) -> Iterator:
        """As ``DB.iterator``, at the time of the snapshot."""
        return self._open().iterator_at(self._sequence, **arguments)

    def __iter__(self) -> Iterator:
        return self.iterator()

    @property
    def sequence(self) -> int:
        """The number of the last write that the snapshot sees."""
        return self._sequence

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._db is None

    def close(self) -> None:
        """Let go of the versions that the snapshot keeps.  Closing twice is harmless."""
        db = self._db
        if db is not None:
            self._db = None
            db.release_at(self._sequence)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _open(self) -> SnapshotSource:
        if self._db is None:
            raise ClosedError("the snapshot is closed")
        return self._db
