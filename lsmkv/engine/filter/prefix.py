"""Prefix extractors: they decide which beginning of each key goes into a table's prefix filter.

A scan of one prefix asks the prefix filter of each table in its way, and skips the table if the
filter says no.  Source: RocksDB, ``include/rocksdb/slice_transform.h``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from librt.vecs import append, vec
from mypy_extensions import i64

from lsmkv.engine.errors import Error
from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.engine.util.arguments import as_bytes
from lsmkv.engine.util.comparator import after_prefix
from lsmkv.engine.util.value import Value


class PrefixExtractor(Protocol):
    """Says which beginning of a key counts as its prefix.

    Any object with these members is accepted.  The *name* is stored with the filters: a table whose
    prefix filter has another name is read without it.

    Contract: the result depends only on the beginning of the key.  If ``extract(p)`` is ``p``, then
    it is ``p`` for every key that begins with ``p``; otherwise a scan would miss keys.  So
    ``key[:2]`` is wrong, since it returns ``b"k"`` for the key ``b"k"``: return None for keys that
    are too short.

    Cost: ``extract`` is called for each key that a flush or a compaction writes, and twice for each
    scan; a table whose filter lacks the prefix saves the scan a block or more.  If it raises, or
    returns bytes with which the key does not begin, the scan raises an :class:`~lsmkv.Error`; if
    that happens in a flush or compaction, every later write does.

    >>> class Country:
    ...     name = "example.Country"
    ...     def extract(self, key):
    ...         return key[:2] if key[:1].isupper() and len(key) >= 2 else None
    >>> import lsmkv
    >>> with lsmkv.DB(":memory:", prefix_extractor=Country()) as db:
    ...     for key in (b"ATwien", b"CHbern"):
    ...         db.put(key, b"")
    ...     db.flush()
    ...     list(db.iterator(prefix=b"BE", include_value=False)), db.stats().blocks_read
    ([], 0)
    """

    @property
    def name(self) -> str:
        """Stored on disk.  Change it whenever ``extract`` changes."""
        ...

    def extract(self, key: bytes, /) -> bytes | None:
        """The prefix of ``key``, with which it begins; None for a key that has none."""
        ...


class FixedPrefix(Value):
    """The first ``size`` bytes; a shorter key has no prefix.

    >>> FixedPrefix(4).extract(b"2026-11-26"), FixedPrefix(4).extract(b"202")
    (b'2026', None)
    >>> FixedPrefix(4).name
    'lsmkv.FixedPrefix.4'

    Raises ``TypeError`` for a size that is not an int, and ``ValueError`` for one below 1.
    """

    def __init__(self, size: int) -> None:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"the size of a prefix must be an int, not {type(size).__name__}")
        if size < 1:
            raise ValueError(f"a prefix has at least 1 byte, not {size}")
        self.size = size

    @property
    def name(self) -> str:
        """The name on disk: it holds the size."""
        return f"lsmkv.FixedPrefix.{self.size}"

    def _arguments(self) -> tuple[Any, ...]:
        return (self.size,)

    def __reduce__(self) -> tuple[type[FixedPrefix], tuple[int]]:
        return FixedPrefix, (self.size,)

    def extract(self, key: bytes, /) -> bytes | None:
        """The prefix of ``key``, or None.  O(size)."""
        return key[: self.size] if len(key) >= self.size else None


class DelimitedPrefix(Value):
    """Everything up to and including the first delimiter; a key without one has no prefix.

    >>> DelimitedPrefix(b":").extract(b"user:ann"), DelimitedPrefix(b":").extract(b"user")
    (b'user:', None)
    >>> DelimitedPrefix(b":").name
    'lsmkv.DelimitedPrefix.3a'

    Raises ``TypeError`` for a delimiter that is not bytes, and ``ValueError`` for an empty one.
    """

    def __init__(self, delimiter: bytes) -> None:
        if not isinstance(delimiter, bytes):
            raise TypeError(f"a delimiter must be bytes, not {type(delimiter).__name__}")
        self.delimiter = as_bytes(delimiter, "delimiter")
        if not self.delimiter:
            raise ValueError("a delimiter has at least one byte")

    @property
    def name(self) -> str:
        """The name on disk: it holds the delimiter, in hexadecimal digits."""
        return f"lsmkv.DelimitedPrefix.{self.delimiter.hex()}"

    def _arguments(self) -> tuple[Any, ...]:
        return (self.delimiter,)

    def __reduce__(self) -> tuple[type[DelimitedPrefix], tuple[bytes]]:
        return DelimitedPrefix, (self.delimiter,)

    def extract(self, key: bytes, /) -> bytes | None:
        """The prefix of ``key``, or None.  O(length of the prefix)."""
        at = key.find(self.delimiter)
        return key[: at + len(self.delimiter)] if at >= 0 else None


class CallablePrefix(Value):
    """A function as a prefix extractor, under a name that is stored.

    >>> first_two = CallablePrefix(lambda key: key[:2] if len(key) >= 2 else None, "example.First2")
    >>> first_two.extract(b"abc"), first_two.extract(b"a")
    (b'ab', None)
    """

    def __init__(self, function: Callable[[bytes], bytes | None], name: str) -> None:
        self._function = function
        self.name = name

    def _arguments(self) -> tuple[Any, ...]:
        return self._function, self.name

    def extract(self, key: bytes, /) -> bytes | None:
        """Return the result of the function."""
        return self._function(key)


def is_own(extractor: PrefixExtractor | None) -> bool:
    """True if an extractor is one of lsmkv's, or None: another process can load it by its name."""
    return extractor is None or type(extractor) in (FixedPrefix, DelimitedPrefix)


def own_extractor(name: str) -> PrefixExtractor | None:
    """The one of lsmkv's extractors that has this name, or None.

    >>> own_extractor("lsmkv.FixedPrefix.8"), own_extractor("lsmkv.DelimitedPrefix.3a")
    (FixedPrefix(8), DelimitedPrefix(b':'))
    """
    kind, _, setting = name.rpartition(".")
    try:
        if kind == "lsmkv.FixedPrefix":
            return FixedPrefix(int(setting))
        if kind == "lsmkv.DelimitedPrefix":
            return DelimitedPrefix(bytes.fromhex(setting))
    except ValueError:
        pass
    return None


def prefix_of(extractor: PrefixExtractor, key: bytes) -> bytes | None:
    """The prefix of a key; :class:`~lsmkv.Error` if the extractor fails, or returns something
    else."""
    try:
        prefix = extractor.extract(key)
    except Exception as error:
        failure = f"the prefix extractor {extractor.name} failed on {key!r}: {error!r}"
        raise Error(failure) from error
    if prefix is None:
        return None
    if isinstance(prefix, bytes):
        exact = as_bytes(prefix, "prefix")
        if key.startswith(exact):
            return exact
    raise Error(
        f"the prefix extractor {extractor.name} returned {prefix!r}, with which {key!r} does"
        " not begin"
    )


def append_prefix_hashes(
    hashes: vec[i64], keys: list[bytes], extractor: PrefixExtractor, last: bytes | None
) -> tuple[vec[i64], bytes | None]:
    """``hashes`` with those of the keys' prefixes, and the last prefix.

    ``last`` is what the previous call returned.  A prefix equal to the one before it is left out.
    """
    steady = is_own(extractor)  # a key that begins with the last prefix has that prefix
    for key in keys:
        if steady and last is not None and key.startswith(last):
            continue
        prefix = prefix_of(extractor, key)
        if prefix is not None and prefix != last:
            hashes = append(hashes, xxh3_hash(prefix))
            last = prefix
    return hashes, last


def shared_prefix(
    extractor: PrefixExtractor, first: bytes, end: bytes, includes_end: bool
) -> bytes | None:
    """The prefix that every key from ``first`` to ``end`` has; None if that is not certain.

    The order is the bytewise one.  Keys shorter than a prefix, keys outside the extractor's
    domain, and ranges that reach into the next prefix have no prefix in common.
    """
    prefix = prefix_of(extractor, first)
    if prefix is None or not prefix or prefix_of(extractor, prefix) != prefix:
        return None
    # A function that cuts keys without regard to short ones breaks the contract; this detects it.
    if not is_own(extractor) and prefix_of(extractor, prefix + b"\0") != prefix:
        return None
    if end.startswith(prefix):
        return prefix
    return prefix if not includes_end and end == after_prefix(prefix) else None
