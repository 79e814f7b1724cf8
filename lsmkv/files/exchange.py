r"""Formats of ``export`` and ``import``: JSON lines, and a raw format.

**JSON lines.**  An object a line, ``{"key": "ant", "value": "six legs"}``, all in ASCII.  Bytes
that are not valid UTF-8 are in fields of other names: :mod:`lsmkv.engine.util.json_fields`.  Other
fields are refused; blank lines are left out.

**Raw.**  It is faster, and detects damage and truncation.  Integers are varints and little-endian
fixed32s, as everywhere in LevelDB::

    file    := header frame* end
    header  := "lsmkv-raw 1\n"
    frame   := fixed32 CRC-32C of the rest, varint32 length of the records > 0, record+
    record  := varint32 length of the key, key, varint32 length of the value, value
    end     := fixed32 CRC-32C of the rest, varint32 0, varint64 number of all records

A record is in one frame, and a frame is checked before its first record is used.  Nothing
follows the end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import BinaryIO

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.checksum import crc32c
from lsmkv.engine.util.coding import (
    decode_fixed32,
    decode_string,
    decode_varint32,
    decode_varint64,
    encode_fixed32,
    encode_string,
    encode_varint,
)
from lsmkv.engine.util.json_fields import json_field, parse_json_object, take_field
from lsmkv.engine.util.text import count

Record = tuple[bytes, bytes]
"""Key and value."""

RAW_HEADER = b"lsmkv-raw 1\n"

_FRAME_BYTES = 64 * 1024
_CHUNK = 1024 * 1024


class Format(StrEnum):
    """The formats of an export."""

    JSON = "json"
    RAW = "raw"


def recognize(stream: BinaryIO) -> tuple[Format, Iterator[Record]]:
    """The format of a file, and its records.

    The records raise ``ValueError`` for an invalid line, and ``CorruptionError`` for a damaged
    frame; both say where.
    """
    head = stream.readline(len(RAW_HEADER))
    if head == RAW_HEADER:
        return Format.RAW, read_raw(stream)
    if head and not head.endswith(b"\n"):
        head += stream.readline()
    return Format.JSON, read_json_lines(itertools.chain([head], stream))


# JSON lines


def json_line(key: bytes, value: bytes, is_hex: bool = False) -> bytes:
    r"""A record as a line.

    >>> json_line("caf\u00e9".encode(), b"\xff")
    b'{"key": "caf\\u00e9", "value_base64": "/w=="}\n'
    """
    fields = json_field("key", key, is_hex) | json_field("value", value, is_hex)
    return json.dumps(fields).encode("ascii") + b"\n"


def parse_json_line(line: bytes) -> Record:
    """The record of a line; ``ValueError`` says what is wrong with it."""
    fields = parse_json_object(line)
    if "key_text" in fields:
        raise ValueError("decoded for people: export without --as, or with --as raw, to import")
    record = take_field(fields, "key"), take_field(fields, "value")
    if fields:
        raise ValueError(f"not a field of a record: {next(iter(fields))!r}")
    return record


def read_json_lines(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of these lines; ``ValueError`` names the line by its number."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = parse_json_line(line)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            yield record


# Raw


def write_raw(records: Iterable[Record]) -> Iterator[bytes]:
    """These records in the raw format, in pieces."""
    yield RAW_HEADER
    number = 0
    frame = bytearray()
    for key, value in records:
        number += 1
        frame += encode_string(key)
        frame += encode_string(value)
        if len(frame) >= _FRAME_BYTES:
            yield _checked(encode_varint(len(frame)) + frame)
            frame.clear()
    if frame:
        yield _checked(encode_varint(len(frame)) + frame)
    yield _checked(encode_varint(0) + encode_varint(number))


def read_raw(file: BinaryIO) -> Iterator[Record]:
    """The records of a file in the raw format, after its header.

    ``CorruptionError`` says what is wrong, and at which byte; a damaged frame gives no records.
    """
    offset = len(RAW_HEADER)
    number = 0
    while True:
        try:
            crc, size, head = _read_frame_head(file)
            if size == 0:
                _check_end(file, crc, head, number)
                return
            payload = _read_exactly(file, size)
            _check_crc(crc, head + payload)
            records = _split(payload)
        except CorruptionError as error:
            reason = f"{error.reason}, in the frame after record {number}"
            raise CorruptionError(reason, None, offset) from None
        yield from records
        number += len(records)
        offset += 4 + len(head) + size


def _checked(content: bytes) -> bytes:
    return encode_fixed32(crc32c(content)) + content


def _check_crc(crc: int, content: bytes) -> None:
    if crc32c(content) != crc:
        raise CorruptionError("checksum mismatch")


def _read_frame_head(file: BinaryIO) -> tuple[int, int, bytes]:
    """Checksum, length of the records, and the bytes that state that length."""
    crc = decode_fixed32(_read_exactly(file, 4), 0)
    head = _read_varint(file, 5)
    return crc, decode_varint32(head, 0)[0], head


def _check_end(file: BinaryIO, crc: int, head: bytes, number: int) -> None:
    content = _read_varint(file, 10)
    _check_crc(crc, head + content)
    stated, _ = decode_varint64(content, 0)
    if stated != number:
        promised = count(stated, "record")
        raise CorruptionError(f"the end states {promised}, and the file has {number:,}")
    if file.read(1):
        raise CorruptionError("something follows the end")


def _split(payload: bytes) -> list[Record]:
    records: list[Record] = []
    at = 0
    while at < len(payload):
        key, at = decode_string(payload, at)
        value, at = decode_string(payload, at)
        records.append((key, value))
    return records


def _read_varint(file: BinaryIO, most: int) -> bytes:
    """The bytes of a varint, at most ``most`` of them."""
    found = b""
    while len(found) < most:
        found += _read_exactly(file, 1)
        if found[-1] < 128:
            break
    return found


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    """Read ``size`` bytes, in pieces, so that a wrong length takes no memory."""
    pieces: list[bytes] = []
    left = size
    while left > 0:
        piece = file.read(min(left, _CHUNK))
        if not piece:
            raise CorruptionError("the file ends before its end marker")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
