r"""Bitcoin Core's chain state: the unspent outputs.

========================  ====================================================================
key                       value
========================  ====================================================================
``\x0e\0obfuscate_key``   the mask, after a byte for its length; all other values are combined
                          with it by XOR, over and over
``C`` transaction number  an output: height * 2 + (1 if mined), amount, script, all compressed
``B``                     the hash of the newest block
========================  ====================================================================

Hashes are shown as Bitcoin shows them, last byte first.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.errors import CorruptionError
from lsmkv.files.programs.reading import Find, Reader

OBFUSCATE_KEY: Final = b"\x0e\x00obfuscate_key"
_HASH: Final = 32
_COIN: Final = 100_000_000
_WORDS: Final = {
    OBFUSCATE_KEY: "the mask of all values",
    b"B": "the newest block",
    b"H": "blocks between which a flush was interrupted",
}
_SCRIPTS: Final = {
    0: (20, "public key hash (P2PKH)"),
    1: (20, "script hash (P2SH)"),
    **dict.fromkeys((2, 3, 4, 5), (32, "public key (P2PK)")),
}
_SPECIAL: Final = 6
_WITNESSES: Final = {
    b"\x00\x14": "witness public key hash (P2WPKH)",
    b"\x00\x20": "witness script hash (P2WSH)",
    b"\x51\x20": "taproot (P2TR)",
}


def is_coin(key: bytes) -> bool:
    """True for the key of an output: a transaction, and a number of at most 5 bytes."""
    number = key[1 + _HASH :]
    ends = [byte < 128 for byte in number]
    return key[:1] == b"C" and len(ends) <= 5 and ends == [False] * (len(ends) - 1) + [True]


def is_block_index(key: bytes) -> bool:
    """True for the key of a block or of a file of blocks."""
    return (key[:1], len(key)) in ((b"b", 1 + _HASH), (b"f", 5))


class Bitcoin:
    """The texts of the chain state.  Without its mask, values have none."""

    def __init__(self, find: Find) -> None:
        masks = [value[1:] for key, value in find(OBFUSCATE_KEY, 1) if key == OBFUSCATE_KEY]
        self._mask = masks[0] if masks else b""

    def key(self, key: bytes) -> str | None:
        """An output, as its transaction, a colon and its number; None for another key."""
        if is_coin(key):
            return f"output {_hash(key[1 : 1 + _HASH])}:{_number(Reader(key, 1 + _HASH))}"
        return _WORDS.get(key)

    def value(self, key: bytes, value: bytes) -> str | None:
        """The amount, height and script of an output, or the hash of a block; None otherwise."""
        if key == OBFUSCATE_KEY:
            return value[1:].hex()
        if not self._mask:
            return None
        plain = self._unmasked(value)
        if key == b"B" and len(plain) == _HASH:
            return _hash(plain)
        try:
            return _coin(Reader(plain)) if is_coin(key) else None
        except CorruptionError:
            return None

    def _unmasked(self, value: bytes) -> bytes:
        mask = (self._mask * (len(value) // len(self._mask) + 1))[: len(value)]
        plain = int.from_bytes(value, "big") ^ int.from_bytes(mask, "big")
        return plain.to_bytes(len(value), "big")


def _hash(data: bytes) -> str:
    return data[::-1].hex()


def _number(reader: Reader) -> int:
    """Bitcoin's own varint: most significant bits first, one added for each byte that follows."""
    found = 0
    while found < 1 << 64:
        byte = reader.byte()
        found = found << 7 | byte & 127
        if byte < 128:
            return found
        found += 1
    raise CorruptionError("a number that is too large", None, reader.at)


def _amount(packed: int) -> str:
    """Satoshis, as Bitcoin packs them: without the zeros at the end; as bitcoins."""
    if packed:
        packed, zeros = divmod(packed - 1, 10)
        if zeros < 9:
            packed, digit = divmod(packed, 9)
            packed = packed * 10 + digit + 1
        else:
            packed += 1
        packed *= 10**zeros
    return f"{packed // _COIN}.{packed % _COIN:08} BTC"


def _coin(reader: Reader) -> str:
    height, is_mined = divmod(_number(reader), 2)
    amount = _amount(_number(reader))
    script = _script(reader)
    if not reader.at_end:
        raise CorruptionError("something follows the coin", None, reader.at)
    return f"{amount}, height {height}{', mined' if is_mined else ''}, {script}"


def _script(reader: Reader) -> str:
    kind = _number(reader)
    if kind in _SCRIPTS:
        size, words = _SCRIPTS[kind]
        return f"to {words} {reader.take(size).hex()}"
    script = reader.take(kind - _SPECIAL)
    if script[:2] in _WITNESSES and len(script) == 2 + script[1]:
        return f"to {_WITNESSES[script[:2]]} {script[2:].hex()}"
    return f"to script {script.hex() or '(empty)'}"
