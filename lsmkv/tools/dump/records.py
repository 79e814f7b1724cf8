"""The records of a dump, which are printed as text or as JSON.

A file gives a stream of records in its order: a log ``(LogRecord Operation*)*``, a MANIFEST
``Edit*``, a table ``(Block (Entry | Handle | Filter)*)* Footer``, and CURRENT one ``Current``.  A
:class:`Fault` comes wherever the file is not what its format requires.  Most of them are those of
:mod:`lsmkv.files`; here are the others.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from lsmkv.engine.errors import CorruptionError
from lsmkv.files import (
    Block,
    BlockHandle,
    Damage,
    Edit,
    Filter,
    Footer,
    InternalKey,
    LogRecord,
    Operation,
)

FaultKind = Literal["damage", "torn", "codec", "unreadable"]


class Fault(NamedTuple):
    """A place of a file that could not be read."""

    kind: FaultKind
    """``torn`` is what a write cut short leaves at the end of a log; ``codec`` is a compression
    that this installation does not know; ``unreadable`` is a file that the system refuses."""
    offset: int | None
    """The offset in the file; None for the file as a whole."""
    reason: str


def fault_of(damage: Damage, what: str = "block") -> Fault:
    """Damage that was found in a file; ``what`` is a record or a block."""
    where = "" if damage.at is None else f", at byte {damage.at} of the {what}"
    return Fault(damage.kind, damage.offset, damage.reason + where)


def kind_word(kind: int | None) -> str:
    """The word for a version's kind in LevelDB's dump."""
    return {0: "del", 1: "val"}.get(-1 if kind is None else kind, str(kind))


class Heading(NamedTuple):
    """The beginning of a file."""

    name: str
    kind: str
    size: int
    """The file's size in bytes."""


class Current(NamedTuple):
    """The content of CURRENT."""

    manifest: str


class Entry(NamedTuple):
    """A version of a key, in a data block."""

    block: int
    """The offset of its block in the file."""
    offset: int
    """The offset in the plain block."""
    restart: bool
    """True if a restart point refers to it."""
    key: InternalKey
    value: bytes


class Handle(NamedTuple):
    """An entry of the index or the metaindex: a key and the handle of a block."""

    block: int
    offset: int
    restart: bool
    key: InternalKey | bytes
    """A name in the metaindex, a separator in the index."""
    handle: BlockHandle


class Piece(NamedTuple):
    """Some bytes of a file, and their meaning.

    The pieces with ``block`` -1 cover the file: each byte is in one of them.  The others show the
    content of a compressed block.
    """

    offset: int
    """The offset in the file, or in the plain block."""
    data: bytes
    meaning: str
    block: int = -1
    """The offset in the file of the compressed block that holds these bytes."""


LogPart = LogRecord | Operation | Edit | Current
TablePart = Block | Entry | Handle | Filter | Footer
Record = Heading | LogPart | TablePart | Piece | Fault


def restarts_of(block: Block) -> list[int] | None:
    """The restart points of a block, of which a fault reports the damage; None for a filter, which
    has none."""
    if block.place.kind not in ("data", "index", "metaindex"):
        return None
    try:
        return block.restart_points()
    except CorruptionError:
        return []
