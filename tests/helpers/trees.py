r"""Trees in text, for files of states (``states.py``).

====================  ============================================================================
key                   ``apple``; ``""`` is the empty one, and ``\x00`` a byte
internal key          ``apple#5``: user key, sequence (100 if left out); ``apple#5:del``: a deletion
entry                 ``apple#5:put=red``, ``apple#5:put=r*300``: 300 bytes, ``apple#5:del``
table, as known       ``4:[apple#5 .. cherry#7] 2MiB``: number, first and last key, size (1MiB if
                      left out; ``2MiB-1`` is a byte less)
table, with content   ``[apple#5:put=red cherry#7:del]``
range                 ``apple .. cherry``, ``apple ..``, ``..``: both ends are in it
order                 ``order: reverse``, one of ``ORDERS``; bytewise if left out
====================  ============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from orders import FOLDING
from states import Answer, Drawing, StatesError, answered

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    Entry,
    InternalKeyComparator,
    pack,
    sequence_in,
    unpack,
)
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.util.comparator import BYTEWISE, REVERSE_BYTEWISE, Comparator

MIB = 1 << 20


class Ranked:
    """Orders by ``<`` alone, as sorting and bisecting do."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def __lt__(self, other: Ranked) -> bool:
        return self.key < other.key


class ByRank:
    name = "test.ByRank"

    def compare(self, a: bytes, b: bytes) -> int:
        return (a > b) - (a < b)

    def sort_key(self, key: bytes) -> Ranked:
        return Ranked(key)

    def find_shortest_separator(self, start: bytes, limit: bytes) -> bytes:
        return start

    def find_short_successor(self, key: bytes) -> bytes:
        return key


ORDERS: dict[str, Comparator] = {
    "bytewise": BYTEWISE,
    "reverse": REVERSE_BYTEWISE,
    "folding": FOLDING,
    "ranked": ByRank(),
}

# As objects


def file(
    number: int,
    smallest: bytes,
    largest: bytes,
    *,
    size: int = MIB,
    sequences: tuple[int, int] = (100, 100),
) -> FileMetaData:
    """A table from a first to a last user key."""
    return FileMetaData(
        number, size, pack(smallest, sequences[0], 1), pack(largest, sequences[1], 1)
    )


def version(
    levels: Mapping[int, Iterable[FileMetaData]], comparator: Comparator = BYTEWISE
) -> Version:
    return Version(
        InternalKeyComparator(comparator),
        [list(levels.get(level, [])) for level in range(NUM_LEVELS)],
    )


def numbers(files: Iterable[FileMetaData]) -> list[int]:
    return [each.number for each in files]


def is_value(entry: Entry) -> bool:
    return entry[1][0] == KIND_VALUE


def newest_first(entries: Iterable[Entry], order: KeyOrder) -> list[Entry]:
    """Sorted by user key, and the versions of one key newest first."""
    return sorted(entries, key=lambda entry: (order.of(entry[0]), -sequence_in(entry[1])))


def seen_at(history: Iterable[Entry], sequence: int, order: KeyOrder) -> list[tuple[bytes, bytes]]:
    """What a reader at a sequence sees: for each key the newest version that is old enough."""
    newest: list[Entry] = []
    for entry in newest_first(history, order):
        is_known = bool(newest) and order.is_same(newest[-1][0], entry[0])
        if sequence_in(entry[1]) <= sequence and not is_known:
            newest.append(entry)
    return [(entry[0], entry[1][8:]) for entry in newest if is_value(entry)]


# From text


def key_of(text: str) -> bytes:
    if text == '""':
        return b""
    if not text or re.search(r'[#:\[\]="]', text):
        raise StatesError(f"not a key: {text}")
    return re.sub(
        rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode("ascii")
    )


def range_of(words: list[str]) -> tuple[bytes | None, bytes | None]:
    """Of the words of a command: ``b .. d``."""
    if ".." not in words[:2] or len(words) > 3:
        raise StatesError(f"not a range: {' '.join(words)}")
    at = words.index("..")
    begin, end = words[:at], words[at + 1 :]
    return (key_of(begin[0]) if begin else None), (key_of(end[0]) if end else None)


def internal_key_of(text: str) -> bytes:
    found = re.fullmatch(r"([^#:]+)(?:#(\d+))?(:del)?", text)
    if found is None:
        raise StatesError(f"not an internal key: {text}")
    kind = KIND_DELETION if found[3] else KIND_VALUE
    return pack(key_of(found[1]), int(found[2] or 100), kind)


def lookup_of(text: str) -> tuple[bytes, int]:
    """What is looked up: ``apple``, or ``apple#5`` for the newest version up to 5."""
    key, _, sequence = text.partition("#")
    return key_of(key), int(sequence or MAX_SEQUENCE)


def entry_of(text: str) -> Entry:
    found = re.fullmatch(r"([^#:]+)#(\d+):(?:(del)|put=(.*))", text)
    if found is None:
        raise StatesError(f"not an entry: {text}")
    kind = KIND_DELETION if found[3] else KIND_VALUE
    value, _, times = (found[4] or "").partition("*")
    return key_of(found[1]), pack(b"", int(found[2]), kind) + value.encode() * int(times or 1)


def entries_of(text: str) -> list[list[Entry]]:
    """The entries within each pair of brackets."""
    if re.sub(r"\[[^\[\]]*\]", "", text).strip():
        raise StatesError(f"not entries in brackets: {text}")
    return [[entry_of(one) for one in some.split()] for some in re.findall(r"\[(.*?)\]", text)]


def size_of(text: str) -> int:
    """Bytes: ``7``, ``2MiB``, ``2MiB-1``."""
    found = re.fullmatch(r"(\d+)(MiB)?([+-]\d+)?", text)
    if found is None:
        raise StatesError(f"not a size: {text}")
    return int(found[1]) * (MIB if found[2] else 1) + int(found[3] or 0)


def files_of(text: str) -> list[FileMetaData]:
    """The tables that are drawn on a line."""
    pattern = r"(\d+):\[(\S+) \.\. (\S+)\](?: (\d+(?:MiB)?(?:[+-]\d+)?))?(?!\S)"
    if re.sub(pattern, "", text).strip():
        raise StatesError(f"not tables: {text}")
    return [
        FileMetaData(
            int(number),
            size_of(size) if size else MIB,
            internal_key_of(smallest),
            internal_key_of(largest),
        )
        for number, smallest, largest, size in re.findall(pattern, text)
    ]


def level_of(text: str) -> int:
    if not re.fullmatch(r"L[0-6]", text):
        raise StatesError(f"not a level: {text}")
    return int(text[1])


def is_level(label: str) -> bool:
    return label.startswith("L")


def order_of(drawing: Drawing) -> Comparator:
    return ORDERS[dict(drawing).get("order", "bytewise")]


def version_of(drawing: Drawing) -> Version:
    """The tables by level, as the lines ``L0:`` to ``L6:`` draw them."""
    levels = {level_of(label): files_of(text) for label, text in drawing if is_level(label)}
    return version(levels, order_of(drawing))


# To text


def key_text(key: bytes) -> str:
    plain = "".join(
        chr(byte) if 0x21 <= byte <= 0x7E and byte not in b'\\#:[]="' else f"\\x{byte:02x}"
        for byte in key
    )
    return plain or '""'


def internal_key_text(internal_key: bytes) -> str:
    key, sequence, kind = unpack(internal_key)
    return f"{key_text(key)}#{sequence}{'' if kind else ':del'}"


def size_text(size: int) -> str:
    """As :func:`size_of` reads it: a byte less or more than MiBs is said so."""
    whole, rest = divmod(size + 1, MIB)
    if not whole or rest > 2:
        return str(size)
    return f"{whole}MiB{('-1', '', '+1')[rest]}"


def entry_text(entry: Entry) -> str:
    key, sequence, kind = unpack(entry[0] + entry[1][:8])
    value = entry[1][8:].decode()
    if len(value) > 20 and len(set(value)) == 1:
        value = f"{value[0]}*{len(value)}"
    return f"{key_text(key)}#{sequence}:{f'put={value}' if kind else 'del'}"


def table_text(entries: Iterable[Entry]) -> str:
    return f"[{' '.join(entry_text(each) for each in entries)}]"


def words_text(words: Iterable[object]) -> str:
    """The words in a row, or ``none``."""
    return " ".join(map(str, words)) or "none"


def levels_text(of: Version) -> str:
    """The numbers of the tables of each level that has any."""
    return (
        "\n".join(
            f"L{level}: {words_text(numbers(files))}"
            for level, files in enumerate(of.levels)
            if files
        )
        or "none"
    )


def on_each_level(drawing: Drawing, words: list[str], answer: Answer) -> str:
    """``on L1 .. L6 COMMAND``: what is answered when the line ``L*:`` is each of these levels."""
    first, last, command = level_of(words[1]), level_of(words[3]), words[4:]
    found: dict[str, list[int]] = {}
    for level in range(first, last + 1):
        here = [(f"L{level}" if label == "L*" else label, text) for label, text in drawing]
        text = answered(answer, here, command).replace(f"level {level}", "level *")
        found.setdefault(text, []).append(level)
    return "; ".join(
        f"{text} (L{levels[0]}{f' .. L{levels[-1]}' if levels[1:] else ''})"
        for text, levels in found.items()
    )
