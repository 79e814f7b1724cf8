"""CRC-32C, plain and masked.

LevelDB stores a checksum *masked*, so that the CRC of bytes that contain CRCs stays a good one
(source: LevelDB, ``util/crc32c.h``; the polynomial is Castagnoli's, RFC 3720, B.4).

The fastest installed library computes it: ``google-crc32c`` if it has its C code; ``crc32c``, if a
user has installed it; ``crcmod``, which lsmkv depends on.  If none of them has C code, a table of
256 entries is used: 0.4 GB/s where this module is compiled, 0.01 GB/s where it is not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

from librt.vecs import append, vec
from mypy_extensions import i64

from lsmkv.engine.util.coding import decode_fixed32

_MASK_DELTA: Final = 0xA282EAD8
POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's polynomial, with its bits in reverse order, as these CRCs need it."""


class _Crc32c:
    """An implementation."""

    def __init__(
        self,
        package: str,
        value: Callable[[bytes], int],
        extend: Callable[[int, bytes], int],
    ) -> None:
        self.package = package
        self.value = value
        """The CRC of some bytes."""
        self.extend = extend
        """The CRC of the bytes whose CRC is given, followed by more bytes."""


def _google() -> _Crc32c | None:
    import google_crc32c  # noqa: PLC0415 - not installed everywhere

    if google_crc32c.implementation == "python":
        return None
    return _Crc32c("google-crc32c", google_crc32c.value, google_crc32c.extend)


def _crc32c() -> _Crc32c | None:
    import crc32c as package  # noqa: PLC0415 - where a user has installed it

    return _Crc32c("crc32c", package.crc32c, lambda crc, data: package.crc32c(data, crc))


def _crcmod() -> _Crc32c | None:
    # crcmod and crcmod-plus have the same modules: removing one of the two breaks the other.
    import crcmod._crcfunext  # noqa: PLC0415 - its C code; see above
    import crcmod.predefined  # noqa: PLC0415

    value = crcmod.predefined.mkPredefinedCrcFun("crc-32c")
    return _Crc32c("crcmod", value, lambda crc, data: value(data, crc))


def _table() -> vec[i64]:
    """For each byte, the XOR that shifting it out applies to a running CRC."""
    table = vec[i64](capacity=256)
    for byte in range(256):
        crc: i64 = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        table = append(table, crc)
    return table


TABLE: Final = _table()
"""For each byte, the XOR that shifting it out applies to a running CRC."""


def _extend_by_table(crc: i64, data: bytes) -> i64:
    table = TABLE
    running: i64 = crc ^ 0xFFFFFFFF
    for at in range(i64(len(data))):
        running = table[(running ^ data[at]) & 0xFF] ^ running >> 8
    return running ^ 0xFFFFFFFF


def _value_by_table(data: bytes) -> i64:
    return _extend_by_table(0, data)


def _implementation() -> _Crc32c:
    """The first that is installed with C code; the table if there is none."""
    with warnings.catch_warnings():
        # google-crc32c warns that it is slow without its C code; then it is not used.
        warnings.simplefilter("ignore", RuntimeWarning)
        for find in (_google, _crc32c, _crcmod):
            try:
                found = find()
            except (ImportError, AttributeError):  # not installed, or half removed
                found = None
            if found is not None:
                return found
    return _Crc32c("lsmkv", _value_by_table, _extend_by_table)


_CRC32C = _implementation()
_value: Final = _CRC32C.value
_extend: Final = _CRC32C.extend

CRC32C_IMPLEMENTATION: Final = _CRC32C.package
"""The package whose code computes checksums here: its name, or ``lsmkv``."""


def crc32c(data: bytes) -> int:
    """The CRC-32C of ``data``.

    O(len(data)): 4 KiB take 0.4 us with google-crc32c or crc32c, and 10 us with crcmod.
    """
    return _value(data)


def mask(crc: i64) -> int:
    """The form in which a CRC is stored: rotated right by 15 bits, plus a constant."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The inverse of :func:`mask`."""
    rotated = (masked - _MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """``mask(crc32c(data))``, as in a log record's header or a block's trailer."""
    return mask(_value(data))


_TYPE_CRCS: Final = [_value(bytes([kind])) for kind in range(5)]
"""The CRC of each type byte of a log record, by that byte."""


def typed_crc32c(kind: i64, data: bytes) -> int:
    """The result of :func:`masked_crc32c` for the byte ``kind`` < 5 and then ``data``, without
    joining them."""
    crc: i64 = _extend(_TYPE_CRCS[kind], data)
    return mask(crc)


def sealing_crc32c(data: bytes, kind: i64) -> int:
    """The result of :func:`masked_crc32c` for ``data`` and then the byte ``kind``, without joining
    them."""
    crc: i64 = _value(data)
    running: i64 = crc ^ 0xFFFFFFFF
    return mask(TABLE[(running ^ kind) & 0xFF] ^ running >> 8 ^ 0xFFFFFFFF)


def is_sealed(sealed: bytes) -> bool:
    """Return True if bytes end in the masked CRC of those before it, as a block does.

    They are not copied: the CRC of all is compared with that of any bytes followed by this end.
    """
    masked: i64 = decode_fixed32(sealed, len(sealed) - 4)
    running: i64 = unmask(masked) ^ 0xFFFFFFFF ^ masked
    for _ in range(4):
        running = TABLE[running & 0xFF] ^ running >> 8
    crc: i64 = _value(sealed)
    return crc == running ^ 0xFFFFFFFF
