r"""Minecraft's NBT as text, with the little-endian numbers of the Bedrock edition.

==================  =============================================================================
type                payload
==================  =============================================================================
1, 2, 3, 4          an integer of 1, 2, 4 or 8 bytes
5, 6                a float, a double
7, 11, 12           a number of elements (4 bytes), then bytes, integers, or integers of 8 bytes
8                   a text: its length in bytes (2 bytes), UTF-8
9                   a list: the type of all elements, their number (4 bytes), the payloads
10                  a compound: type, name (as a text) and payload of each member; then a byte 0
==================  =============================================================================

A value is one compound, or several in a row, each with a type and a name before it.
"""

from __future__ import annotations

import struct
from typing import Final

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.util.text import count
from lsmkv.files.programs.reading import DEEPEST, UNFINISHED, Reader, bare, literal

_END, _FLOAT, _DOUBLE, _STRING, _LIST, _COMPOUND = 0, 5, 6, 8, 9, 10
_INTEGERS: Final = {1: 1, 2: 2, 3: 4, 4: 8}
_ARRAYS: Final = {7: (1, "byte"), 11: (4, "integer"), 12: (8, "integer")}


def nbt_text(data: bytes) -> str | None:
    r"""The compounds of a value as a line of text, up to the first byte that makes no sense; None
    if it begins with no compound.

    >>> nbt_text(b"\x0a\x00\x00\x03\x02\x00Id\x07\x00\x00\x00\x00")
    '{Id: 7}'
    >>> nbt_text(b"\x0a\x00\x00\x03\x02\x00Id\x07"), nbt_text(b"")
    ('{Id: …', None)
    """
    tree = _Tree(data)
    try:
        while not tree.at_end:
            tree.read_root()
    except CorruptionError:
        if not tree.texts:
            return None
        tree.texts.append(UNFINISHED)
    return "".join(tree.texts) or None


class _Tree(Reader):
    """Reads compounds, and appends their texts."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.texts: list[str] = []
        self._depth = 0

    def read_root(self) -> None:
        """Read a compound with its name."""
        if self.byte() != _COMPOUND:
            raise CorruptionError("no compound")
        name = self._text()
        self.texts.append(", " if self.texts else "")
        self.texts.append(f"{bare(literal(name))}: " if name else "")
        self._read(_COMPOUND)

    def _text(self) -> str:
        return self.take(self.integer(2, signed=False)).decode("utf-8", "replace")

    def _read(self, kind: int) -> None:
        if kind in _INTEGERS:
            self.texts.append(str(self.integer(_INTEGERS[kind])))
        elif kind == _FLOAT:
            self.texts.append(f"{struct.unpack('<f', self.take(4))[0]:.7g}")
        elif kind == _DOUBLE:
            self.texts.append(literal(self.double()))
        elif kind == _STRING:
            self.texts.append(literal(self._text()))
        elif kind in _ARRAYS:
            size, noun = _ARRAYS[kind]
            number = self.integer(4)
            self.take(size * number)
            self.texts.append(f"<{count(number, noun)}>")
        elif kind in (_LIST, _COMPOUND):
            self._depth += 1
            if self._depth > DEEPEST:
                raise CorruptionError("nested too deeply to show")
            self._list() if kind == _LIST else self._compound()
            self._depth -= 1
        else:
            raise CorruptionError("unknown type")

    def _list(self) -> None:
        kind, number = self.byte(), self.integer(4)
        self.texts.append("[")
        for at in range(number if kind != _END else 0):
            if at:
                self.texts.append(", ")
            self._read(kind)
        self.texts.append("]")

    def _compound(self) -> None:
        self.texts.append("{")
        is_first = True
        while (kind := self.byte()) != _END:
            self.texts.append(f"{'' if is_first else ', '}{bare(literal(self._text()))}: ")
            is_first = False
            self._read(kind)
        self.texts.append("}")
