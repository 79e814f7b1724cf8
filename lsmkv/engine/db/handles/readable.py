"""The reading methods that snapshots and prefixed parts of a store share, declared once.

A class that derives from :class:`Readable` says how a key is looked up and how iterators are made;
the public signatures, with their overloads and defaults, are only here.  ``DB`` has its own
``get``, which goes straight to the reader: it is the call that a program makes most often.
"""

from __future__ import annotations

from typing import TypeVar, overload

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.handles.scannable import Scannable
from lsmkv.engine.db.read.raw_iterator import RawIterator
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.introspection import described

T = TypeVar("T")


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class Readable(Scannable):
    """The reading methods.  A subclass has ``_value``, ``_iterator`` and ``_raw_iterator``."""

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
        """As ``DB.get``."""
        value = self._value(as_bytes(key, "key"), fill_cache)
        return default if value is None else value

    def raw_iterator(
        self,
        *,
        prefix: BytesLike | None = None,
        verify_checksums: bool = True,
        fill_cache: bool = True,
    ) -> RawIterator:
        """As ``DB.raw_iterator``."""
        return self._raw_iterator(prefix, fill_cache)

    def __contains__(self, key: object) -> bool:
        """As ``key in db``."""
        return self._value(as_bytes(key, "key"), True) is not None

    def _value(self, key: bytes, fill_cache: bool) -> bytes | None:
        raise NotImplementedError

    def _raw_iterator(self, prefix: BytesLike | None, fill_cache: bool) -> RawIterator:
        raise NotImplementedError
