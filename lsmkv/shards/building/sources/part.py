"""Parts: the interface, and parts of pairs in memory or from a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.format.batch import as_put
from lsmkv.shards.building.blob import pack_pairs, unpack_pairs

Pair = tuple[bytes, bytes]
"""Key and value."""

_ADVICE = "a pair must be a tuple (key, value) of two bytes objects"


@runtime_checkable
class Part(Protocol):
    """Some of a build's pairs, in any order.

    It is pickled and sent to another process.  A program may define its own classes.
    """

    @property
    def label(self) -> str:
        """The name of the part in messages."""

    @property
    def size(self) -> int | None:
        """About how many bytes are read for it, for progress; None if unknown."""

    def pairs(self) -> Iterator[Pair]:
        """All pairs, from the first.  A task that failed runs again, and calls this again."""


@dataclass(frozen=True)
class PackedPart:
    """Pairs in a blob of :mod:`lsmkv.bulk.blob`.

    >>> part = PackedPart.pack([(b"b", b"1"), (b"a", b"2")], "two pairs")
    >>> list(part.pairs())
    [(b'b', b'1'), (b'a', b'2')]
    """

    blob: bytes = field(repr=False)
    label: str

    @classmethod
    def pack(cls, pairs: Iterable[Pair], label: str) -> PackedPart:
        """A part of these pairs.  Costs and errors are those of :func:`pack_pairs`."""
        return cls(pack_pairs(pairs), label)

    @property
    def size(self) -> int:
        """Bytes of the blob."""
        return len(self.blob)

    def pairs(self) -> Iterator[Pair]:
        """The pairs; ``CorruptionError`` names the part."""
        try:
            keys, values = unpack_pairs(self.blob)
        except CorruptionError as error:
            raise error.located(self.label) from None
        return zip(keys, values, strict=True)


@dataclass(frozen=True)
class CallablePart:
    """The pairs of a mapping, or of an iterable, that ``function()`` returns.

    It is called again for each attempt, in another process, and must give the same pairs each time.
    Only a function at the top of a module can be pickled, or a ``functools.partial`` of one.

    >>> def squares():
    ...     for number in range(3):
    ...         yield b"%d" % number, b"%d" % number**2
    >>> list(CallablePart(squares, "squares").pairs())
    [(b'0', b'0'), (b'1', b'1'), (b'2', b'4')]
    """

    function: Callable[[], Iterable[Pair] | Mapping[bytes, bytes]]
    label: str

    @property
    def size(self) -> None:
        """Unknown."""

    def pairs(self) -> Iterator[Pair]:
        """Call the function.  See :func:`checked_pairs` for errors."""
        try:
            pairs = self.function()
            iterator = iter(pairs.items() if isinstance(pairs, Mapping) else pairs)
        except Exception as error:
            error.add_note(f"while {self.label} made its pairs")
            raise
        return checked_pairs(iterator, self.label)


@dataclass(frozen=True)
class CheckedPart:
    """A part of a program's own class, whose pairs are converted to ``bytes``.

    >>> class Two:
    ...     label, size = "two pairs", None
    ...     def pairs(self):
    ...         return iter([(b"a", b"1"), (bytearray(b"b"), b"2")])
    >>> list(CheckedPart(Two()).pairs())
    [(b'a', b'1'), (b'b', b'2')]
    """

    part: Part

    @property
    def label(self) -> str:
        """The label of the part."""
        return self.part.label

    @property
    def size(self) -> int | None:
        """The size of the part."""
        return self.part.size

    def pairs(self) -> Iterator[Pair]:
        """The part's pairs.  See :func:`checked_pairs` for errors."""
        return checked_pairs(self.part.pairs(), self.part.label)


def checked_pairs(pairs: Iterable[Any], label: str) -> Iterator[Pair]:
    """The pairs of a program, one by one, with keys and values as ``bytes``.

    ``TypeError`` for what is not a pair, and ``ValueError`` for a key or value of 4 GiB or more,
    name the part and the pair, counted from 0.  An error in the program's code gets a note that
    names the part.  Bytes-like keys and values are copied.  Cost: 0.1 us per pair.
    """
    at = 0
    try:
        for item in pairs:
            try:
                key, value = item
            except (TypeError, ValueError):
                raise TypeError(f"{label}: pair {at}: {_no_pair(item)}") from None
            if type(key) is not bytes or type(value) is not bytes:
                key, value = _as_bytes(key, value, f"{label}: pair {at}")
            yield key, value
            at += 1
    except Exception as error:
        error.add_note(f"while pair {at} of {label} was read")
        raise


def _as_bytes(key: object, value: object, place: str) -> Pair:
    try:
        user_key, content = as_put(key, value)
    except TypeError as error:
        raise TypeError(f"{place}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    assert content is not None
    return user_key, content


def _no_pair(item: object) -> str:
    if isinstance(item, (tuple, list)):
        return f"{_ADVICE}, not a tuple of {len(item)}"
    return f"{_ADVICE}, not {type(item).__name__}"
