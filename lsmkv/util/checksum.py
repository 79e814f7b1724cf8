"""CRC-32C, plain and masked.

LevelDB stores a checksum *masked*, so that the CRC of bytes that contain CRCs of their own stays a
good one (source: LevelDB, ``util/crc32c.h``; the polynomial is Castagnoli's, RFC 3720, B.4).

The work is done by ``google-crc32c`` where its C implementation is there, else by ``crcmod``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

_MASK_DELTA: Final = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78  # with its bits turned round, as CRCs of this kind run
_SHORT: Final = 1024
_TYPES: Final = 5

_Calls = tuple[Callable[[bytes], int], Callable[[int, bytes], int]]
"""For the CRC of some bytes, and of some behind others."""


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
    """``mask(crc32c(data))``: what stands in a log record's header or a block's trailer."""
    return mask(_value(data))


def typed_crc32c(kind: i64, data: bytes) -> int:
    """What :func:`masked_crc32c` gives for a byte below 5 and ``data``: they need not be joined.

    A CRC is linear: a byte in front changes it by what depends on that byte and on how many follow,
    and is looked up.  To hand the CRC of the one to the other would take a third more.
    """
    length: i64 = len(data)
    if length >= _SHORT:
        return mask(_extend(_value(bytes([kind])), data))
    change: i64 = _IN_FRONT[kind * _SHORT + length]
    if change < 0:
        change = _change(kind, length)
    plain: i64 = change ^ _value(data)
    return ((plain >> 15 | plain << 17) + _MASK_DELTA) & 0xFFFFFFFF  # as mask(), without a call


def _change(kind: i64, length: i64) -> i64:
    """By what a byte in front of so many changes their CRC; to be looked up from now on."""
    zeros = bytes(length)
    change: i64 = _value(bytes([kind]) + zeros) ^ _value(zeros)
    _IN_FRONT[kind * _SHORT + length] = change
    return change


_IN_FRONT: Final = [-1] * (_TYPES * _SHORT)
"""What :func:`_change` has found, by byte and length."""


def sealing_crc32c(data: bytes, kind: i64) -> int:
    """What :func:`masked_crc32c` gives for ``data`` and one byte more: they need not be joined."""
    crc: i64 = _value(data)
    running: i64 = crc ^ 0xFFFFFFFF
    return mask(_TABLE[(running ^ kind) & 0xFF] ^ running >> 8 ^ 0xFFFFFFFF)


def _byte_table() -> list[int]:
    """By byte: what a running CRC is changed by as that byte is pushed out of it."""
    table: list[int] = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


def _inverse_table(table: list[int]) -> list[int]:
    """The same for a step back; the bytes at the top of ``table`` are all different."""
    inverse = [0] * 256
    for byte, changed in enumerate(table):
        inverse[changed >> 24] = (changed << 8 & 0xFFFFFFFF) ^ byte
    return inverse


_TABLE: Final = _byte_table()
_INVERSE = _inverse_table(_TABLE)
_ONE = 0x80000000  # the polynomial 1, turned round
_MOST_STARTS = 1 << 20
_CODECS = (0, 1, 2, 4)


def find_sealed_end(data: bytes, length: int, crc: int = -1) -> tuple[int, int]:
    """Where in ``data[:length]`` a stored block may end: a type byte, then the masked CRC-32C of
    everything up to and with it, begun at the first byte.

    Returns ``(offset after the type byte, crc)``; the offset is -1 if there is none, and ``crc``
    goes on with the next bytes then.  ``data`` holds four bytes more than ``length``.
    O(length): 0.15 us a byte in pure Python, for the running value is wanted at every byte.
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
    """Finds stored blocks whose beginnings can only be guessed at: ``feed*``, in one pass.

    A CRC is linear.  With A for the step over a zero byte and R(n) for the value that runs from 0
    at the stream's beginning, the CRC of the bytes from ``s`` to ``e`` has the value T exactly if

        A^-s (R(s) ^ 0xFFFFFFFF)  ==  A^-e (R(e) ^ T ^ 0xFFFFFFFF)

    The left side needs the start alone and the right side the end alone, so that all starts are
    tried at once: each end looks its own up.  A pair turns up by chance once in 2^32.

    No block ends in five zeros, of which the last would be its type: before that stand what makes
    a compressed stream end, or how many restart points there are (one at least).

    Cost: 0.25 us a byte in pure Python, and 3 us for each start and each byte that may be a type.
    """

    def __init__(self, position: int) -> None:
        """The stream begins at ``position``, in which all positions are counted."""
        self._position = position
        self._running = 0
        self._scale = _ONE  # A^-n, as the polynomial to multiply by
        self._starts: dict[int, int] = {}
        self._zeros = 0  # how many bytes of zero were the last ones

    def feed(self, data: bytes, length: int, starts: list[int]) -> list[tuple[int, int]]:
        """Go on through ``data[:length]``; a block may begin at each of ``starts`` in it, rising.

        Returns where blocks begin and end (after the type byte), by their ends.  ``data`` holds
        four bytes more than ``length``.
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
            known.clear()  # only made-up files have so many; memory is worth more
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
    """The four bytes at ``at``, little-endian."""
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials, as CRCs hold them, modulo the CRC's own."""
    product = 0
    bit = _ONE
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product
