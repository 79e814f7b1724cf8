"""CRC-32C, plain and masked.

LevelDB stores a checksum *masked*, so that the CRC of bytes that contain CRCs of their own stays a
good one (source: LevelDB, ``util/crc32c.h``; the polynomial is Castagnoli's, RFC 3720, B.4).

``google-crc32c`` computes it where its C implementation is installed, else ``crcmod``.

Repair also uses this module: it finds the blocks of a damaged table by their checksums, with
:func:`find_sealed_end` and :class:`SealFinder`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

_MASK_DELTA: Final = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # its bits in reverse order, as CRCs of this kind run

_Calls = tuple[Callable[[bytes], int], Callable[[int, bytes], int]]
"""The CRC of some bytes, and that of more bytes after those with a given CRC."""


def _choose() -> _Calls:
    try:
        import google_crc32c  # noqa: PLC0415 - an optional dependency
    except ImportError:
        pass
    else:
        if google_crc32c.implementation != "python":
            fast: _Calls = google_crc32c.value, google_crc32c.extend
            return fast
    import crcmod.predefined  # noqa: PLC0415 - a millisecond that is not needed elsewhere

    portable = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
    return portable, lambda crc, data: portable(data, crc)


_CALLS = _choose()
_value: Final = _CALLS[0]
_extend: Final = _CALLS[1]

CRC32C_IMPLEMENTATION: Final = _value.__module__.partition(".")[0].replace("_", "-")
"""The package whose code computes checksums here."""


def crc32c(data: bytes) -> int:
    """The CRC-32C of ``data``.  O(len(data)): about 0.2 us for 4 KiB with google-crc32c."""
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
    return mask(_TABLE[(running ^ kind) & 0xFF] ^ running >> 8 ^ 0xFFFFFFFF)


def _byte_table() -> list[int]:
    """The XOR that shifting out a byte applies to a running CRC, for each byte."""
    table: list[int] = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


def _inverse_table(table: list[int]) -> list[int]:
    """The table for a step back; the top bytes of ``table`` are all different."""
    inverse = [0] * 256
    for byte, changed in enumerate(table):
        inverse[changed >> 24] = (changed << 8 & 0xFFFFFFFF) ^ byte
    return inverse


_TABLE: Final = _byte_table()
_INVERSE = _inverse_table(_TABLE)
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
    table = _TABLE
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
        table = _TABLE
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
