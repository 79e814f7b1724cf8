r"""Text of JavaScript values in IndexedDB: Blink's envelope, and V8's serialization in it.

A value begins with ``FF``, the version of Blink, from 21 on ``FE`` and 12 bytes about a trailer,
then ``FF`` and the version of V8.  ``FF 11 01`` says that the value is in a separate file, and
``FF 11 02`` that the rest is compressed with Snappy.  V8's values are a letter and what it needs:

===========================  ===================================================================
``_ 0 T F``                  undefined, null, true, false
``I U N Z``                  integer (zigzag varint), unsigned (varint), double, bigint
``" c S``                    a string in Latin-1, UTF-16 or UTF-8, after its length in bytes
``o`` ... ``{``              an object: alternating names and values, then their number
``A`` n ... ``$``            an array: n values, more names and values, two numbers
``a`` n ... ``@``            a sparse array: indexes and values, two numbers
``;`` ... ``:`` ``'`` ... ``,``  a map, a set; then a number
``D B V``                    date, array buffer, view of the buffer before it
``^``                        an object that was already there, by its number
``\``                        a browser object; only blobs and files are named
===========================  ===================================================================

Source: V8, ``src/objects/value-serializer.cc``; Blink, ``serialized_script_value.cc``.
"""

from __future__ import annotations

from typing import Final

from lsmkv.engine.errors import CorruptionError, UnsupportedCompressionError
from lsmkv.engine.indexeddb import Date
from lsmkv.engine.util.compression import SNAPPY, decompress
from lsmkv.files.programs.reading import DEEPEST, UNFINISHED, Reader, bare, in_hex, literal

_VERSION: Final = 0xFF
_TRAILER: Final = 0xFE
_TRAILER_BYTES: Final = 12
_PROCESSED: Final = 17
_IN_A_FILE: Final = 1
_COMPRESSED: Final = 2
_OF_NAMES: Final = ": "
_VIEWS_WITH_FLAGS: Final = 14
"""The version of V8 since which views have flags."""
_LONGEST_BIGINT: Final = 64
_CONSTANTS: Final = {
    "_": "undefined",
    "0": "null",
    "T": "true",
    "F": "false",
    "y": "true",
    "x": "false",
    "-": "<empty>",
}
_STRINGS: Final = {'"': "latin-1", "c": "utf-16-le", "S": "utf-8"}
_VIEWS: Final = {
    **{"b": "Int8Array", "B": "Uint8Array", "C": "Uint8ClampedArray", "w": "Int16Array"},
    **{"W": "Uint16Array", "d": "Int32Array", "D": "Uint32Array", "h": "Float16Array"},
    **{"f": "Float32Array", "F": "Float64Array", "q": "BigInt64Array", "Q": "BigUint64Array"},
    "?": "DataView",
}
_FLAGS: Final = "gimyusldv"
"""Of regular expressions, from the lowest bit on."""
_ERRORS: Final = {
    "E": "Eval",
    "R": "Range",
    "F": "Reference",
    "S": "Syntax",
    "T": "Type",
    "U": "URI",
}


def value_text(data: bytes) -> str | None:
    r"""A stored value as a line of text, up to the first byte that makes no sense; None if there
    is none before it.

    >>> value_text(bytes.fromhex("ff0f 6f 2201 61 4902 7b01"))
    '{a: 1}'
    >>> value_text(b"\xff\x0f\"\x01a"), value_text(b"\xff\x0f\"\x09a"), value_text(b"a")
    ('"a"', None, None)
    """
    values = _Values(data)
    try:
        values.read_headers()
        values.read()
    except (CorruptionError, UnsupportedCompressionError):
        if not values.texts:
            return None
        values.texts.append(UNFINISHED)
    return "".join(values.texts)


class _Values(Reader):
    """Reads values, and appends their texts."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.texts: list[str] = []
        self._version = 0
        self._depth = 0

    def read_headers(self) -> None:
        """Read all before the first letter; an uncompressed value takes the place of one that is
        compressed."""
        if self.peek() != _VERSION:
            raise CorruptionError("no version")
        while self.peek() == _VERSION:
            self.at += 1
            self._version = self.varint()
            if self._version == _PROCESSED and self.peek() == _COMPRESSED:
                self.data, self.at = decompress(self.data[self.at + 1 :], SNAPPY), 0
            elif self._version == _PROCESSED and self.peek() == _IN_A_FILE:
                self.at += 1
                self.texts.append(f"<{self.varint():,} bytes in a separate file>")
                return
            if self.peek() == _TRAILER:
                self.take(1 + _TRAILER_BYTES)

    def read(self) -> None:
        """Read a value, unless the headers were all."""
        if not self.texts:
            self._read()

    def _tag(self) -> str:
        while (tag := chr(self.byte())) in "\0?":  # padding; a count of objects to be verified
            if tag == "?":
                self.varint()
        return tag

    def _next_is(self, end: str) -> bool:
        """Skip padding, and take ``end`` if it is next."""
        while self.peek() == 0:
            self.at += 1
        if self.peek() != ord(end):
            return False
        self.at += 1
        return True

    def _read(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise CorruptionError("nested too deeply to show")
        self._read_tagged(self._tag())
        self._depth -= 1

    def _read_tagged(self, tag: str) -> None:
        if tag in _CONSTANTS:
            self.texts.append(_CONSTANTS[tag])
        elif tag in _STRINGS:
            self.texts.append(literal(self._string(tag)))
        elif tag == "I":
            number = self.varint()
            self.texts.append(str(number >> 1 ^ -(number & 1)))
        elif tag in "U^":
            number = self.varint()
            self.texts.append(str(number) if tag == "U" else f"<object {number}>")
        elif tag in "Nn":
            self.texts.append(literal(self.double()))
        elif tag in "Zz":
            self.texts.append(self._bigint())
        elif tag == "D":
            self.texts.append(literal(Date(self.double())))
        elif tag == "s":
            self.texts.append(literal(self._string(self._tag())))
        elif tag == "R":
            pattern, flags = self._string(self._tag()), self.varint()
            names = (name for at, name in enumerate(_FLAGS) if flags >> at & 1)
            self.texts.append(f"/{pattern}/{''.join(names)}")
        elif tag in "B~":
            self._buffer(tag)
        elif tag == "\\":
            self._of_the_browser()
        elif tag == "r":
            self._error()
        else:
            self._nested(tag)

    def _string(self, tag: str) -> str:
        if tag not in _STRINGS:
            raise CorruptionError("not a string")
        return self.take(self.varint()).decode(_STRINGS[tag], "replace")

    def _bigint(self) -> str:
        field = self.varint()
        digits = self.take(field >> 1)
        if len(digits) > _LONGEST_BIGINT:
            return f"<bigint of {in_hex(digits)}>"
        return f"{'-' if field & 1 else ''}{int.from_bytes(digits, 'little')}n"

    def _buffer(self, tag: str) -> None:
        size = self.varint()
        if tag == "~":  # resizable: its largest size
            self.varint()
        content = self.take(size)
        name = "ArrayBuffer"
        if self.peek() == ord("V"):
            self.at += 1
            name = _VIEWS.get(chr(self.byte()), "a view")
            start, length = self.varint(), self.varint()
            content = content[start : start + length]
            if self._version >= _VIEWS_WITH_FLAGS:
                self.varint()
        self.texts.append(f"{name} {literal(content)}")

    def _of_the_browser(self) -> None:
        tag = chr(self.byte())
        if tag not in "ie":
            self.texts.append("<a browser object>")
            raise CorruptionError("an object of unknown length")
        self.texts.append(f"<{'blob' if tag == 'i' else 'file'} {self.varint()}>")

    def _error(self) -> None:
        kind, message = "", ""
        while (tag := self._tag()) != ".":
            if tag in _ERRORS:
                kind = _ERRORS[tag]
            elif tag == "m":
                message = literal(self._string(self._tag()))
            elif tag in "sc":  # the stack, and the cause: any value
                at = len(self.texts)
                self._read()
                del self.texts[at:]
            else:
                raise CorruptionError("unknown part of an error")
        self.texts.append(f"{kind}Error({message})")

    def _nested(self, tag: str) -> None:
        if tag == "o":
            self._members("{", "{", "}", _OF_NAMES, numbers=1)
        elif tag == ";":
            self._members(":", "Map {", "}", " => ", numbers=1)
        elif tag == "'":
            self._members(",", "Set {", "}", "", numbers=1)
        elif tag == "a":
            self.varint()
            self._members("@", "[", "]", _OF_NAMES, numbers=2)
        elif tag == "A":
            self._members("$", "[", "]", _OF_NAMES, numbers=2, first=self.varint())
        else:
            raise CorruptionError("unknown type of value")

    def _members(
        self, end: str, opening: str, closing: str, between: str, numbers: int, first: int = 0
    ) -> None:
        """Names and values up to ``end``, with ``between`` in the middle, or values alone if that
        is empty; ``first`` values alone come before them."""
        self.texts.append(opening)
        number = 0
        while number < first or not self._next_is(end):
            if number:
                self.texts.append(", ")
            if number >= first and between:
                at = len(self.texts)
                self._read()
                if between == _OF_NAMES:
                    self.texts[at:] = [bare("".join(self.texts[at:]))]
                self.texts.append(between)
            self._read()
            number += 1
        for _ in range(numbers):
            self.varint()
        self.texts.append(closing)
