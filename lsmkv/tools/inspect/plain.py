"""Keys, values and files as plain data for JSON: escaped, and truncated if they are long."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from lsmkv.engine.indexeddb import IndexedDBComparator, decode_key
from lsmkv.files import TableFile
from lsmkv.tools.text import escape, printable, shown

SHOWN = 96
"""The most bytes of a key or value that are shown."""
_NOTE: Final = 16  # characters of "… (1,000 bytes)", which follows a truncated text
# More bytes always take more room than the note.  A character has four bytes at most; of one that
# the limit divides, three may be escaped.
_ALWAYS_CUT: Final = 4 * _NOTE + 64
_DECODED: Final = 4096  # bytes of a key that are decoded

Plain = dict[str, Any]
"""A JSON object."""


_LONG_NUMBER = re.compile(r"(?<![\w.,/-])[1-9]\d{3,}(?!\.?\w)")


class NotThereError(LookupError):
    """The object of a question does not exist: a table, a block, a step."""


def shown_bytes(data: bytes, limit: int = SHOWN) -> Plain:
    r"""Some bytes as text that ``lsmkv scan`` would print; ``cut`` if it is the beginning alone.

    The page then says how many they are, so they are cut only where all of them take more room.

    >>> shown_bytes(b"<b>\x00 "), shown_bytes(b"x" * 300, 3), shown_bytes(b"1234", 3)
    ... # doctest: +NORMALIZE_WHITESPACE
    ({'text': '<b>\\x00\\x20', 'bytes': 5}, {'text': 'xxx', 'bytes': 300, 'cut': True},
     {'text': '1234', 'bytes': 4})
    """
    begin = escape(data[:limit])
    if len(data) <= limit + _ALWAYS_CUT:
        whole = shown(data, False)
        if len(whole) <= len(begin) + _NOTE:
            return {"text": whole, "bytes": len(data)}
    return {"text": begin, "bytes": len(data), "cut": True}


def grouped(text: str) -> str:
    r"""A message in the page's number format: thousands are separated, except in names and
    quotations.

    >>> print(grouped("000005.ldb: key '49161', for blocks at 6144 to 8191, at offset 49161"))
    000005.ldb: key '49161', for blocks at 6,144 to 8,191, at offset 49,161
    """
    first, last = text.find("'"), text.rfind("'")
    if first == last:
        return _LONG_NUMBER.sub(_grouped, text)
    before, quoted, after = text[:first], text[first : last + 1], text[last + 1 :]
    return _LONG_NUMBER.sub(_grouped, before) + quoted + _LONG_NUMBER.sub(_grouped, after)


def _grouped(number: re.Match[str]) -> str:
    return f"{int(number[0]):,}"


def shown_key(key: bytes, comparator: str | None) -> Plain:
    """A user key: its bytes, and ``meaning`` where the comparator's keys are known to have one.

    >>> shown_key(bytes.fromhex("0001010103000000000000f03f"), "idb_cmp1")["meaning"]
    'database 1, object store 1: record 1.0'
    """
    fields = shown_bytes(key)
    if comparator == IndexedDBComparator.name:
        meaning = printable(str(decode_key(key[:_DECODED])))
        whole = len(meaning) <= SHOWN + _NOTE
        fields["meaning"] = meaning if whole else f"{meaning[:SHOWN]}…"
    return fields


def shown_file(file: TableFile, name: str, show: Callable[[bytes], Plain] = shown_bytes) -> Plain:
    """A table as the MANIFEST states it; ``show`` is for its keys."""
    return {
        "name": name,
        "number": file.number,
        "size": file.size,
        "smallest": show(file.smallest.user_key),
        "largest": show(file.largest.user_key),
    }


def whole_number(text: str | None, what: str, default: int | None = None) -> int:
    """A number from a URL; ``ValueError`` names what is wrong.

    >>> whole_number("12", "step"), whole_number(None, "from", 0)
    (12, 0)
    """
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(f"{what} must be a number, not {text!r}")
    return int(text)
