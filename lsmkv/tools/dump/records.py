"""What a dump consists of, whatever it is printed as.

A file gives a stream of these, in the order of the file: for a log ``(Batch Operation*)*``, for a
MANIFEST ``Edit*``, for a table ``(Block (Entry | Handle | Filter)*)* Footer``, for CURRENT one
``Current``.  A :class:`Fault` may stand anywhere: where the file is not what it must be.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from lsmkv.format.version_edit import VersionEdit
from lsmkv.table.format import BlockHandle

BlockKind = Literal["data", "filter", "full filter", "meta", "metaindex", "index"]
FaultKind = Literal["damage", "torn", "codec", "unreadable"]


class Fault(NamedTuple):
    """Something that could not be shown, where it stands."""

    kind: FaultKind
    """``torn`` is what a write cut short leaves at the end of a log; ``codec`` is a compression
    that this installation does not know; ``unreadable`` is what the system refused."""
    offset: int | None
    """In the file, in bytes; None for the file as a whole."""
    reason: str


class Heading(NamedTuple):
    """A file begins."""

    name: str
    kind: str
    size: int
    """In bytes."""


class Current(NamedTuple):
    """What CURRENT says."""

    manifest: str


class Batch(NamedTuple):
    """A record of a write-ahead log; its operations follow."""

    offset: int
    """In the file, of its first fragment."""
    end: int
    sequence: int
    """Of the first operation; each one after it has the next."""
    operations: int
    """How many there are, as its header states."""


class Operation(NamedTuple):
    """A put, or a deletion if ``value`` is None."""

    offset: int
    """Of its batch, in the file."""
    sequence: int
    key: bytes
    value: bytes | None


class Edit(NamedTuple):
    """A record of a MANIFEST."""

    offset: int
    end: int
    edit: VersionEdit


class Block(NamedTuple):
    """A block of a table; what it holds follows."""

    kind: BlockKind
    handle: BlockHandle
    name: bytes
    """Of a filter or another meta block, as the metaindex has it; empty for the other kinds."""
    codec: str
    """How it is compressed, in a word."""
    plain_size: int
    """Bytes once decompressed."""
    restarts: list[int] | None
    """Offsets in the plain block; None for a filter, which has none."""


class InternalKey(NamedTuple):
    """A key of a table, taken apart; ``sequence`` and ``kind`` are None if it is no internal key,
    and ``user_key`` is all of it then."""

    user_key: bytes
    sequence: int | None
    kind: int | None


class Entry(NamedTuple):
    """A version of a key, in a data block."""

    block: int
    """Offset of its block in the file."""
    offset: int
    """In the plain block."""
    restart: bool
    """Whether a restart point leads to it."""
    key: InternalKey
    value: bytes


class Handle(NamedTuple):
    """An entry of the index or the metaindex: a key, and the block that it stands for."""

    block: int
    offset: int
    restart: bool
    key: InternalKey | bytes
    """A name in the metaindex, else a separator."""
    handle: BlockHandle


class Filter(NamedTuple):
    """One filter of a filter block, or the whole table's."""

    block: int
    offset: int
    """In the block."""
    number: int
    first: int | None
    """It speaks for the data blocks that start from here ..."""
    last: int | None
    """... to here, in the file; both None if it speaks for all of them."""
    policy: bytes
    data: bytes
    """As the policy made it; empty if no keys went into it."""


class Footer(NamedTuple):
    """The end of a table."""

    offset: int
    metaindex_handle: BlockHandle
    index_handle: BlockHandle


class Piece(NamedTuple):
    """Some bytes of a file, and what they are.

    Those with ``block`` -1 cover the file: each byte stands in one of them.  The others show what
    is in a compressed block once it is decompressed.
    """

    offset: int
    """In the file, or in the plain block."""
    data: bytes
    meaning: str
    block: int = -1
    """Offset in the file of the compressed block that these bytes come out of."""


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
