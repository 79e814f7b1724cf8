"""Numbers and keys in messages for people.

``escape`` writes bytes that are not printable UTF-8 as ``\\xNN``, and tab, newline, carriage return
and backslash as ``\\t``, ``\\n``, ``\\r`` and ``\\\\``.
"""

from __future__ import annotations

_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def count(number: int, noun: str) -> str:
    """A number and what it counts, in the singular or the plural.

    Counts for people have thousands separators.  Offsets, sequences and file numbers, which
    identify a place or a thing, do not.

    >>> count(1, "table"), count(1200, "entry"), count(2, "batch"), count(0, "key")
    ('1 table', '1,200 entries', '2 batches', '0 keys')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The regular plural of an English noun.

    >>> plural("index")
    'indexes'
    """
    if noun.endswith(("ch", "s", "sh", "x")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def percent(share: float | None) -> str:
    """A share, for people; a dash if it is not known.

    >>> percent(0.0091), percent(None)
    ('0.91%', '-')
    """
    return "-" if share is None else f"{share:.2%}"


def size(number: float) -> str:
    """A number of bytes, for people.

    >>> size(0), size(1023), size(4096), size(3_602_695), size(3 << 30)
    ('0 B', '1,023 B', '4.0 KiB', '3.4 MiB', '3.0 GiB')
    """
    if number < 1024:
        return f"{number:,.0f} B"
    for unit in ("KiB", "MiB"):
        number /= 1024
        if number < 1024:
            return f"{number:.1f} {unit}"
    return f"{number / 1024:,.1f} GiB"


def shortened(key: bytes) -> str:
    """A key as Python writes it; only the beginning of a long one.

    >>> shortened(b"key"), shortened(b"long" * 1000)
    ("b'key'", "b'longlong'...")
    """
    return repr(key) if len(key) <= 32 else f"{key[:8]!r}..."


def escape(data: bytes) -> str:
    r"""One line of printable text that stands for ``data``.

    >>> print(escape("caf\u00e9\t".encode() + b"\xff\\"))
    café\t\xff\\
    """
    text = data.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return printable(text)


def printable(message: str) -> str:
    """A message with control characters escaped, safe for a terminal."""
    return message if message.isprintable() else "".join(map(_printable, message))


def quoted(key: bytes, longest: int = 64) -> str:
    """A key in quotes, escaped; only the beginning of a long one, and its size.

    At most ``longest`` characters, 3 or more, stand between the quotes.

    >>> print(quoted(b"a\\xff"), quoted(b"key" * 1000, 8))
    'a\\xff' 'keykeyke'... (3,000 bytes)
    """
    begin = _first_bytes(key, longest)
    while len(escape(begin)) > longest:
        begin = _first_bytes(key, len(begin) * 3 // 4)
    rest = "" if len(begin) == len(key) else f"... ({count(len(key), 'byte')})"
    return f"'{escape(begin)}'{rest}"


def _first_bytes(key: bytes, longest: int) -> bytes:
    """The key, cut to that many bytes, or a few less so that no UTF-8 character is split."""
    if len(key) <= longest:
        return key
    end = longest
    while end > max(0, longest - 3) and key[end] & 0xC0 == 0x80:
        end -= 1
    return key[:end]


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    if character in _SHORT:
        return _SHORT[character]
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
