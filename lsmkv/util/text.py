"""Numbers and keys in messages for people."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """A number and what it counts, in the singular or the plural.

    Counts for people have thousands separated.  Offsets, sequences and file numbers, which name a
    place or a thing, do not.

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
    """A key as Python writes it; of a long one, how it begins.

    >>> shortened(b"key"), shortened(b"long" * 1000)
    ("b'key'", "b'longlong'...")
    """
    return repr(key) if len(key) <= 32 else f"{key[:8]!r}..."
