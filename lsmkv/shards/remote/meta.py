"""META: the bytes that opening a directory of tables reads, gathered in one object.

Opening a database directory in an object store costs one request for each range that it reads.
META holds these ranges, so the directory opens with one request.  It only repeats bytes of the
files.  A directory without META also opens, with more requests.

Layout (integers and strings as in :mod:`lsmkv.engine.util.coding`)::

    7 bytes     magic: "lsmkvMT"
    1 byte      format version: 1
    varint32    number of files
    for each file, by name
        string      name, in UTF-8
        varint64    size of the file in bytes
        varint32    number of pieces
        for each piece, by offset
            varint64    its offset in the file
            string      its bytes
    fixed32     masked CRC-32C of all bytes before it

Pieces of one file do not overlap, none is empty, and none ends beyond the file.  CURRENT and
MANIFEST are one piece each.  A table is one piece, or two: its first data block, and everything
after its last one (filters, metaindex, index and footer).  The writer chooses the pieces: a reader
gets the rest from the files.

There is no compression: filters do not compress, and an index is small next to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lsmkv.engine.env.base import check_name
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.checksum import masked_crc32c
from lsmkv.engine.util.coding import (
    MAX_UINT64,
    decode_fixed32,
    decode_string,
    decode_varint32,
    decode_varint64,
    encode_fixed32,
    encode_string,
    encode_varint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

META: Final = "META"
"""The object's name in its directory."""

_MAGIC: Final = b"lsmkvMT"
_VERSION: Final = 1
_HEADER_SIZE: Final = 8
_CHECKSUM_SIZE: Final = 4


class Piece(NamedTuple):
    """Bytes of a file."""

    offset: int
    data: bytes


class FilePieces(NamedTuple):
    """A file of the directory, and its pieces in META."""

    name: str
    size: int
    """Bytes of the whole file."""
    pieces: list[Piece]
    """In ascending order of offset."""


def encode_meta(files: Sequence[FilePieces]) -> bytes:
    """META for these files, in any order.  O(bytes of the pieces).

    Raises ``ValueError`` for a name that is taken or not plain, a size out of range, or pieces that
    break the rules of the layout.
    """
    parts: list[bytes] = [_MAGIC, bytes([_VERSION]), encode_varint(len(files))]
    before = ""
    for file in sorted(files, key=_name_of):
        flaw = _flaw(file, before)
        if flaw != "":
            raise ValueError(f"{file.name!r}: {flaw}")
        before = file.name
        parts += [encode_string(file.name.encode()), encode_varint(file.size)]
        parts.append(encode_varint(len(file.pieces)))
        for piece in file.pieces:
            parts += [encode_varint(piece.offset), encode_string(piece.data)]
    body = b"".join(parts)
    return body + encode_fixed32(masked_crc32c(body))


def decode_meta(data: bytes) -> list[FilePieces]:
    """The files of a META, by name.  O(len(data)).

    Raises :class:`CorruptionError`, with the offset in ``data``, for any damage.
    """
    if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
        raise CorruptionError("not a META: wrong magic number", None, 0)
    end = len(data) - _CHECKSUM_SIZE
    if end < _HEADER_SIZE:
        raise CorruptionError(f"a META of only {len(data)} bytes", None, len(data))
    version = data[len(_MAGIC)]
    if version != _VERSION:
        reason = f"a META of format version {version}; this lsmkv reads version {_VERSION}"
        raise CorruptionError(reason, None, len(_MAGIC))
    body = data[:end]
    if decode_fixed32(data, end) != masked_crc32c(body):
        raise CorruptionError("the checksum of META does not match", None, end)
    return _decode_files(body)


def _decode_files(body: bytes) -> list[FilePieces]:
    count, at = decode_varint32(body, _HEADER_SIZE)
    files: list[FilePieces] = []
    before = ""
    for _ in range(count):
        start = at
        file, at = _decode_file(body, start)
        flaw = _flaw(file, before)
        if flaw != "":
            raise CorruptionError(f"{file.name!r}: {flaw}", None, start)
        before = file.name
        files.append(file)
    if at != len(body):
        raise CorruptionError("bytes after the last file of META", None, at)
    return files


def _decode_file(body: bytes, start: int) -> tuple[FilePieces, int]:
    """The file at ``start``, and the position after it."""
    raw_name, at = decode_string(body, start)
    try:
        name = raw_name.decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptionError("a file name that is not UTF-8", None, start) from None
    size, at = decode_varint64(body, at)
    count, at = decode_varint32(body, at)
    pieces: list[Piece] = []
    for _ in range(count):
        offset, at = decode_varint64(body, at)
        piece, at = decode_string(body, at)
        pieces.append(Piece(offset, piece))
    return FilePieces(name, size, pieces), at


def _name_of(file: FilePieces) -> str:
    return file.name


def _flaw(file: FilePieces, before: str) -> str:
    """Describe the flaw of a file that follows the name ``before``; empty if there is none."""
    try:
        check_name(file.name)
    except ValueError:
        return "not a plain file name"
    if file.name <= before:
        return "the name is taken" if file.name == before else "names out of order"
    if not 0 <= file.size <= MAX_UINT64:
        return f"an invalid size: {file.size}"
    end = 0
    for piece in file.pieces:
        if piece.offset < end:
            return f"a piece at {piece.offset}, before the end of another at {end}"
        end = piece.offset + len(piece.data)
        if len(piece.data) == 0:
            return f"an empty piece at {piece.offset}"
    if end > file.size:
        return f"a piece that ends at {end}, beyond the file's {file.size} bytes"
    return ""
