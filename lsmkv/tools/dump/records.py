"""The records of a dump, which are printed as text or as JSON.

A file gives a stream of records in its order: a log ``(Batch Operation*)*``, a MANIFEST ``Edit*``,
a table ``(Block (Entry | Handle | Filter)*)* Footer``, and CURRENT one ``Current``.  A
:class:`Fault` comes wherever the file is not what its format requires.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from lsmkv import files
from lsmkv.files import BlockHandle, BlockKind, Damage, Filter, InternalKey

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


class Batch(NamedTuple):
    """A record of a write-ahead log; its operations follow."""

    offset: int
    """The offset of its first fragment in the file."""
    end: int
    sequence: int
    """The sequence of the first operation; each later operation has the next one."""
    operations: int
    """The number of operations that its header states."""


class Operation(NamedTuple):
    """A put, or a deletion if ``value`` is None."""

    offset: int
    """The offset of its batch in the file."""
    sequence: int
    key: bytes
    value: bytes | None


class Edit(NamedTuple):
    """A record of a MANIFEST."""

    edit: files.Edit


class Block(NamedTuple):
    """A block of a table; its content follows."""

    kind: BlockKind
    handle: BlockHandle
    name: bytes
    """The name that the metaindex gives a meta block; empty for other blocks."""
    codec: str
    """The name of the compression."""
    plain_size: int
    """The bytes once decompressed."""
    restarts: list[int] | None
    """Offsets in the plain block; None for a filter, which has none."""


class Entry(NamedTuple):
    """A version of a key, in a data block."""

    block: int
    """The offset of its block in the file."""
    offset: int
    """The offset in the plain block."""
    restart: bool
    """Whether a restart point points to it."""
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


class Footer(NamedTuple):
    """The end of a table."""

    offset: int
    metaindex_handle: BlockHandle
    index_handle: BlockHandle


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


Record = (
    Fault
    | Heading
    | Current
    | Batch
    | Operation
    | Edit
    | Block
    | Entry
    | Handle
    | Filter
    | Footer
    | Piece
)
