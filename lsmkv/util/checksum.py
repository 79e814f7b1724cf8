"""CRC-32C, plain and masked.

LevelDB stores a checksum *masked*, so that the CRC of bytes that contain CRCs of their own stays a
good one (source: LevelDB, ``util/crc32c.h``; the polynomial is Castagnoli's, RFC 3720, B.4).

``google-crc32c`` computes it where its C implementation is installed.  It has no wheel for musl,
nor for rarer processors, and its Python fallback is slow; there, this module computes it.

Repair also uses this module: it finds the blocks of a damaged table by their checksums, with
:func:`find_sealed_end` and :class:`SealFinder`.

Fast paths: :func:`_extend_by_tables` takes eight bytes a step (M. Kounavis and F. Berry,
"Novel table lookup-based algorithms for high-performance CRC generation", 2008), out of tables of
machine integers.  Compiled, that is 1.5 GB/s, where a byte a step is 0.4 GB/s and lists of Python's
integers make it 0.06 GB/s.  Interpreted, it is 0.01 GB/s however it is done.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from librt.strings import read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

_MASK_DELTA: Final = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # its bits in reverse order, as CRCs of this kind run

_Calls = tuple[Callable[[bytes], int], Callable[[int, bytes], int]]
"""The CRC of some bytes, and that of more bytes after those with a given CRC."""


def _find_google_crc32c() -> _Calls | None:
    """What ``google-crc32c`` has in C, if that is installed."""
    try:
        with warnings.catch_warnings():
            # Without its C implementation it warns that it is slow; it is not used then.
            warnings.simplefilter("ignore", RuntimeWarning)
            import google_crc32c  # noqa: PLC0415 - an optional dependency
    except ImportError:
        return None
    if google_crc32c.implementation == "python":
        return None
    found: _Calls = google_crc32c.value, google_crc32c.extend
    return found


def _tables(count: int) -> vec[i64]:
    """``count`` tables of 256, one after the other.

    The first has, for each byte, the XOR that shifting it out applies to a running CRC.  The n-th
    has that of a byte which n - 1 zero bytes follow.
    """
    tables = vec[i64](capacity=256 * count)
    for byte in range(256):
        crc: i64 = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables = append(tables, crc)
    for at in range(256 * (count - 1)):
        before: i64 = tables[at]
        tables = append(tables, tables[before & 0xFF] ^ before >> 8)
    return tables


def _extend_by_tables(crc: i64, data: bytes) -> i64:
    """The CRC-32C of bytes whose CRC is ``crc``, and then ``data``."""
    tables = _TABLES
    running: i64 = crc ^ 0xFFFFFFFF
    at: i64 = 0
    length: i64 = len(data)
    while at + 8 <= length:
        word: i64 = read_i64_le(data, at) ^ running
        running = (
            tables[1792 + (word & 0xFF)]
            ^ tables[1536 + (word >> 8 & 0xFF)]
            ^ tables[1280 + (word >> 16 & 0xFF)]
            ^ tables[1024 + (word >> 24 & 0xFF)]
            ^ tables[768 + (word >> 32 & 0xFF)]
            ^ tables[512 + (word >> 40 & 0xFF)]
            ^ tables[256 + (word >> 48 & 0xFF)]
            ^ tables[word >> 56 & 0xFF]
        )
        at += 8
    while at < length:
        running = tables[(running ^ data[at]) & 0xFF] ^ running >> 8
        at += 1
    return running ^ 0xFFFFFFFF


def _compute_by_tables(data: bytes) -> int:
    """The CRC-32C of ``data``."""
    return _extend_by_tables(0, data)


_GOOGLE = _find_google_crc32c()
_TABLES: Final = _tables(8 if _GOOGLE is None else 1)
_CALLS: _Calls = (_compute_by_tables, _extend_by_tables) if _GOOGLE is None else _GOOGLE
_value: Final = _CALLS[0]
_extend: Final = _CALLS[1]

CRC32C_IMPLEMENTATION: Final = "lsmkv" if _GOOGLE is None else "google-crc32c"
"""The package whose code computes checksums here."""


def crc32c(data: bytes) -> int:
    """The CRC-32C of ``data``.  O(len(data)): 4 KiB take 0.4 us with google-crc32c, else 3 us."""
    return _value(data)


def mask(crc: i64) -> int:
    """The form in which a CRC is stored: rotated right by 15 bits, plus a constant."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The inverse of :func:`mask`."""
    rotated = (masked - _MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """``mask(crc32c(data))``: as a log record's header or a block's trailer holds it."""
    return mask(_value(data))


_TYPE_CRCS: Final = [_value(bytes([kind])) for kind in range(5)]
"""The CRC of each type byte of a log record, by that byte."""


def typed_crc32c(kind: i64, data: bytes) -> int:
    """What :func:`masked_crc32c` gives for the byte ``kind`` < 5 and then ``data``, unjoined."""
    crc: i64 = _extend(_TYPE_CRCS[kind], data)
    return mask(crc)


def sealing_crc32c(data: bytes, kind: i64) -> int:
    """What :func:`masked_crc32c` gives for ``data`` and then the byte ``kind``, unjoined."""
    crc: i64 = _value(data)
    running: i64 = crc ^ 0xFFFFFFFF
    return mask(_TABLES[(running ^ kind) & 0xFF] ^ running >> 8 ^ 0xFFFFFFFF)


def _inverse_table() -> vec[i64]:
    """The table for a step back; the top bytes of the table of steps are all different."""
    inverse = vec[i64](256 * [0])
    for byte in range(256):
        changed: i64 = _TABLES[byte]
        inverse[changed >> 24] = (changed << 8 & 0xFFFFFFFF) ^ byte
    return inverse


_INVERSE: Final = _inverse_table()
_ONE = 0x80000000  # the polynomial 1, its bits in reverse order
_MOST_STARTS = 1 << 20
_CODECS = (0, 1, 2, 4)


def find_sealed_end(data: bytes, length: int, crc: int = -1) -> tuple[int, int]:
    """Find where a stored block that begins at ``data[0]`` may end, within ``data[:length]``.

    It ends in a type byte, which the masked CRC-32C of all bytes up to and with it follows.
    Returns ``(offset after the type byte, crc)``.  The offset is -1 if there is none; the search
    then goes on in the next bytes with this ``crc``.  ``data`` holds four bytes more than
    ``length``.  O(length): 0.15 us a byte in pure Python, since each byte needs the running value.
    """
    running = 0xFFFFFFFF if crc < 0 else crc
    table = _TABLES
    for at in range(length):
        byte = data[at]
        running = table[(running ^ byte) & 0xFF] ^ running >> 8
        if byte <= 4 and byte in _CODECS and _stored(data, at + 1) == mask(running ^ 0xFFFFFFFF):
            return at + 1, running
    return -1, running


class SealFinder:
    """Finds stored blocks in one pass, where only their possible starts are known.

    Call order: ``feed*``.

    A CRC is linear.  With A for the step over a zero byte and R(n) for the value that runs from 0
    at the stream's beginning, the CRC of the bytes from ``s`` to ``e`` has the value T exactly if

        A^-s (R(s) ^ 0xFFFFFFFF)  ==  A^-e (R(e) ^ T ^ 0xFFFFFFFF)

    The left side needs only the start and the right side only the end.  So all starts are tried at
    once: each end looks up its start in a dict.  A wrong pair turns up once in 2^32.

    No block ends in five zeros, of which the last would be its type: the bytes before the type are
    the end of a compressed stream, or the number of restart points, which is one or more.

    Cost: 0.25 us a byte in pure Python, and 3 us for each start and each byte that may be a type.
    """

    def __init__(self, position: int) -> None:
        """``position`` is that of the stream's first byte; all positions are counted from there."""
        self._position = position
        self._running = 0
        self._scale = _ONE  # A^-n, as the polynomial to multiply by
        self._starts: dict[int, int] = {}
        self._zeros = 0  # the length of the run of zeros that ends here

    def feed(self, data: bytes, length: int, starts: list[int]) -> list[tuple[int, int]]:
        """Search ``data[:length]``, where a block may begin at each of ``starts``, in rising order.

        Returns the start and the end (after the type byte) of each block found, by rising ends.
        ``data`` holds four bytes more than ``length``.
        """
        found: list[tuple[int, int]] = []
        running = self._running
        scale = self._scale
        table = _TABLES
        inverse = _INVERSE
        known = self._starts
        zeros = self._zeros
        coming = 0
        if len(known) + len(starts) > _MOST_STARTS:
            known.clear()  # only a crafted file has so many; this bounds memory
        for at in range(length):
            if coming < len(starts) and starts[coming] == at:
                coming += 1
                known[_multiply(running ^ 0xFFFFFFFF, scale)] = self._position + at
            byte = data[at]
            running = table[(running ^ byte) & 0xFF] ^ running >> 8
            scale = (scale << 8 & 0xFFFFFFFF) ^ inverse[scale >> 24]
            zeros = 0 if byte else zeros + 1
            if byte <= 4 and zeros < 5 and byte in _CODECS:
                wanted = running ^ unmask(_stored(data, at + 1)) ^ 0xFFFFFFFF
                start = known.get(_multiply(wanted, scale), -1)
                if start >= 0:
                    found.append((start, self._position + at + 1))
        self._running = running
        self._scale = scale
        self._zeros = zeros
        self._position += length
        return found


def _stored(data: bytes, at: int) -> int:
    """The fixed32 at ``at``."""
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials, in a CRC's bit order, modulo the CRC's polynomial."""
    product = 0
    bit = _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product
