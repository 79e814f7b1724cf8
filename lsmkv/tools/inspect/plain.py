"""Keys, values and files as plain data for JSON: escaped, and cut where they are long."""

from __future__ import annotations

import re
from typing import Any

from lsmkv.format.version_edit import FileMetaData
from lsmkv.tools.text import escape

SHOWN = 96
"""The largest number of bytes of a key or value that are shown."""

Plain = dict[str, Any]
"""An object of JSON."""


_LONG_NUMBER = re.compile(r"(?<![\w.,/-])[1-9]\d{3,}(?!\.?\w)")
_QUOTED = re.compile(r"'.*'", re.DOTALL)  # from the first quotation mark to the last one


class NotThereError(LookupError):
    """What was asked for does not exist: a table, a block, a step."""


def shown_bytes(data: bytes, limit: int = SHOWN) -> Plain:
    r"""Some bytes as text that ``lsmkv scan`` would print; ``cut`` if they are longer than shown.

    >>> shown_bytes(b"<b>\x00"), shown_bytes(b"x" * 300, 3)
    ({'text': '<b>\\x00', 'bytes': 4}, {'text': 'xxx', 'bytes': 300, 'cut': True})
    """
    if len(data) <= limit:
        return {"text": escape(data), "bytes": len(data)}
    return {"text": escape(data[:limit]), "bytes": len(data), "cut": True}


def grouped(text: str) -> str:
    r"""A message in the page's number format: thousands are separated, except in names and in what
    is quoted.

    >>> print(grouped("000005.ldb: key '49161', for blocks at 6144 to 8191, at offset 49161"))
    000005.ldb: key '49161', for blocks at 6,144 to 8,191, at offset 49,161
    """
    quoted = _QUOTED.search(text)
    if quoted is None:
        return _LONG_NUMBER.sub(_grouped, text)
    before, after = text[: quoted.start()], text[quoted.end() :]
    return _LONG_NUMBER.sub(_grouped, before) + quoted[0] + _LONG_NUMBER.sub(_grouped, after)


def _grouped(number: re.Match[str]) -> str:
    return f"{int(number[0]):,}"


def shown_file(file: FileMetaData, name: str) -> Plain:
    """A table as the MANIFEST states it."""
    return {
        "name": name,
        "number": file.number,
        "size": file.size,
        "smallest": shown_bytes(file.smallest[:-8]),
        "largest": shown_bytes(file.largest[:-8]),
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
