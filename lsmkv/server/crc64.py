"""CRC-64 of Redis: the reflected polynomial of Jones, from 0 on, without a last inversion.

Fast paths: a long text is cut into columns of 256 bytes, whose checksums are computed together.
Each byte of all of them is a text, and a step translates it by a table.  1 MiB takes a sixth of the
time that it takes byte by byte.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_POLYNOMIAL: Final = 0x95AC9329AC4BC9B5
_COLUMN: Final = 256
_LONG: Final = 16 * _COLUMN


def crc64(data: bytes) -> int:
    """The checksum of some bytes.

    >>> hex(crc64(b"123456789"))
    '0xe9c6d914c4b8d9ca'
    """
    if len(data) < _LONG:
        return _continued(0, data)
    return _joined(_of_columns(bytes(-len(data) % _COLUMN) + data))  # zeros before it do not count


def _continued(checksum: int, data: bytes) -> int:
    table = _TABLE
    for byte in data:
        checksum = table[(checksum ^ byte) & 0xFF] ^ checksum >> 8
    return checksum


def _table() -> list[int]:
    found: list[int] = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        found.append(byte)
    return found


_TABLE: Final = _table()
_PLANES: Final = [bytes(entry >> shift & 0xFF for entry in _TABLE) for shift in range(0, 64, 8)]
"""Each byte of the entries of the table, for ``bytes.translate``."""


def _of_columns(data: bytes) -> list[bytes]:
    """The checksums of all columns: their lowest bytes, then the next ones, ..."""
    width = len(data) // _COLUMN
    planes = [0] * 8
    for at in range(_COLUMN):
        step = planes[0] ^ int.from_bytes(data[at::_COLUMN], "little")
        places = step.to_bytes(width, "little")
        translated = [int.from_bytes(places.translate(plane), "little") for plane in _PLANES]
        planes = [one ^ other for one, other in zip(translated, [*planes[1:], 0], strict=True)]
    return [plane.to_bytes(width, "little") for plane in planes]


def _joined(planes: list[bytes]) -> int:
    """The checksum of the columns, one after the other."""
    tables = _tables_behind_a_column()
    checksum = 0
    for column in zip(*planes, strict=True):
        moved = int.from_bytes(bytes(column), "little")
        for table in tables:
            moved ^= table[checksum & 0xFF]
            checksum >>= 8
        checksum = moved
    return checksum


@cache
def _tables_behind_a_column() -> list[list[int]]:
    """Tables of the effect of a column of zeros on each byte of a checksum."""
    bits = [_continued(1 << bit, bytes(_COLUMN)) for bit in range(64)]
    tables: list[list[int]] = []
    for start in range(0, 64, 8):
        table = [0]
        for bit in bits[start : start + 8]:
            table += [entry ^ bit for entry in table]
        tables.append(table)
    return tables
