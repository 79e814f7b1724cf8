"""Common parts of all readers: damage, spans and fields, as plain data."""

from __future__ import annotations

from typing import Literal, NamedTuple

DamageKind = Literal["damage", "torn", "codec"]
"""``torn`` is what an interrupted write leaves at the end of a log; ``codec`` is a compression that
this installation does not support; everything else is ``damage``."""


class Span(NamedTuple):
    """Bytes ``start`` to ``end`` (not included) of a block, a record or a file.

    >>> from lsmkv.files import Span
    >>> start, end = Span(3, 7)
    >>> b"sequence"[start:end]
    b'uenc'
    """

    start: int
    end: int


class Field(NamedTuple):
    """One field of a record: its name, its bytes ``start`` to ``end``, and its value.

    >>> from lsmkv.files import edit_fields
    >>> list(edit_fields(bytes.fromhex("0203")))[1]
    Field(name='log number', start=1, end=2, value=3)
    """

    name: str
    start: int
    end: int
    value: int | bytes


class Damage(NamedTuple):
    """A place that is not what its format requires.

    >>> from lsmkv.files import Log
    >>> [(one.kind, one.offset, one.size, one.reason) for one in Log(b"no log").walk()]
    [('torn', 0, 6, 'too few bytes for a header')]
    """

    kind: DamageKind
    offset: int
    """Start of the record or the block in the file, or of the damaged bytes of a log."""
    size: int
    """The size of that record or block, or of that part of a log."""
    reason: str
    at: int | None = None
    """Offset in the record or in the plain block; None if all of it is damaged, and for logs."""
