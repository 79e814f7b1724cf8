"""Lab 6: a table, which becomes the only one of a store."""

from __future__ import annotations

import functools
import itertools
import os
import random
from types import ModuleType

import lsmkv
from lsmkv.course.failure import (
    CheckFailure,
    require,
    require_bytes,
    require_equal,
    require_refused,
    shown,
)
from lsmkv.course.given import crc32c, masked_crc32c
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs import block
from lsmkv.course.labs.formats import (
    FOOTER_SIZE,
    KIND_DELETION,
    KIND_VALUE,
    MAGIC,
    NO_COMPRESSION,
    SNAPPY,
    TRAILER_SIZE,
    entries_in,
    footer_of,
    sealed,
    table_of,
)
from lsmkv.course.labs.temporary_stores import (
    files_of,
    require_content,
    require_content_by_leveldb,
    require_same,
    scratch,
    store_with_table,
)
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.files import BlockHandle, make_key, parse_footer, parse_handle, parse_key
from lsmkv.tools.text import count

Entries = list[tuple[bytes, bytes]]
Content = dict[bytes, bytes | None]

ORDER = InternalKeyComparator(lsmkv.BytewiseComparator())


def key_of(user_key: bytes, sequence: int = 1, kind: int = KIND_VALUE) -> bytes:
    """An internal key."""
    return make_key(user_key, sequence, kind)


SAMPLE: Entries = [
    (key_of(b"antelope", 3), b"swift"),
    (key_of(b"antler", 1), b"hard"),
    (key_of(b"cat", 2), b"sly"),
]
SAMPLE_BLOCK_SIZE = 40


def built(entries: Entries, block_size: int) -> bytes:
    """The engine's table, uncompressed."""
    options = lsmkv.Options()._replace(block_size=block_size, compression=NO_COMPRESSION)
    return table_of(entries, options)


def some_entries(seed: int, number: int) -> Entries:
    """Versions of keys in order: some keys are prefixes of others, some have many versions."""
    dice = random.Random(seed)
    keys = {bytes(dice.choices(b"\x00\x01ab\xff", k=dice.randrange(7))) for _ in range(number)}
    keys |= {b"user%04d" % dice.randrange(10000) for _ in range(number)}
    found: Entries = []
    for key in sorted(keys):
        for sequence in range(dice.choice((1, 1, 1, 2, 9)), 0, -1):
            kind = KIND_DELETION if dice.randrange(8) == 0 else KIND_VALUE
            value = b"" if kind == KIND_DELETION else b"version %d" % sequence
            found.append((key_of(key, sequence, kind), value))
    return found


def cases() -> list[tuple[Entries, int, str]]:
    """Entries, the size of blocks, and a description; small ones first."""
    found: list[tuple[Entries, int, str]] = [
        ([], 4096, "no entries"),
        (SAMPLE[:1], 4096, "the key antelope alone"),
        (SAMPLE, 4096, "three keys in one block"),
        (SAMPLE, SAMPLE_BLOCK_SIZE, "three keys in two blocks"),
        (SAMPLE, 1, "three keys in three blocks"),
    ]
    for seed, number, block_size in ((1, 20, 100), (2, 60, 1000), (3, 400, 4096), (4, 30, 1)):
        entries = some_entries(seed, number)
        found.append(
            (entries, block_size, f"{len(entries):,} entries in blocks of {block_size:,} bytes")
        )
    return found


def seals(code: ModuleType) -> str:
    """Blocks with their trailers."""
    contents = (b"", b"abc", bytes(100), random.Random(6).randbytes(4096))
    for data in contents:
        got = code.seal_block(data)
        expected = sealed(data)
        known = {
            crc32c(data + b"\0"): "That is the CRC itself: mask it.",
            masked_crc32c(data): "That covers only the contents: include the type byte.",
            masked_crc32c(b"\0" + data): "The type byte comes after the contents, not before them"
            " as in the log.",
        }
        hint = "After the contents: a type byte of 0, then the masked checksum of both."
        if isinstance(got, bytes) and got[: len(data) + 1] == data + b"\0":
            number = int.from_bytes(got[-4:], "little")
            hint = known.get(number, hint)
            if got[-4:] == expected[-4:][::-1]:
                hint = "The checksum is stored little-endian: the lowest byte first."
        require_bytes(
            got,
            expected,
            f"the stored block of {count(len(data), 'byte')}",
            functools.partial(sealed_meaning, len(data)),
            hint,
        )
    return f"{len(contents)} blocks"


def sealed_meaning(size: int, at: int) -> str:
    """The meaning of a byte of a stored block."""
    if at < size:
        return "part of the contents"
    return "the type, 0" if at == size else f"byte {at - size - 1} of the masked checksum"


def unseals(code: ModuleType) -> str:
    """Check that blocks are opened, or refused if they are damaged."""
    for data in (b"", b"abc", bytes(100)):
        require_equal(
            code.unseal_block(sealed(data)),
            data,
            f"unseal_block(the stored block of {count(len(data), 'byte')})",
        )
    stored = sealed(b"abc")
    for at in range(len(stored)):
        bad = stored[:at] + bytes([stored[at] ^ 4]) + stored[at + 1 :]
        require_refused(
            functools.partial(code.unseal_block, bad),
            f"unseal_block on a block whose byte {at} is damaged ({sealed_meaning(3, at)})",
            hint="Verify the checksum of contents and type before you use them.",
        )
    for short in range(TRAILER_SIZE):
        require_refused(
            functools.partial(code.unseal_block, stored[:short]),
            f"unseal_block on {count(short, 'byte')}",
            hint="A stored block has at least the five bytes of its trailer.",
        )
    other = b"abc" + bytes([SNAPPY])
    checksum = masked_crc32c(other).to_bytes(4, "little")
    require_refused(
        functools.partial(code.unseal_block, other + checksum),
        "unseal_block on a block of type 1, whose checksum is right",
        hint="Type 1 is compressed by Snappy: its contents are not what is stored.",
    )
    return f"3 blocks, and {len(stored) + TRAILER_SIZE + 1} damaged ones"


def handles(code: ModuleType) -> str:
    """Block handles, byte for byte."""
    numbers = ((0, 0), (0, 127), (300, 4096), (1 << 21, 130), ((1 << 40) - 1, 1 << 20))
    for offset, size in numbers:
        expected = BlockHandle(offset, size).encode()
        first = len(BlockHandle(offset, 0).encode()) - 1
        require_bytes(
            code.block_handle(offset, size),
            expected,
            f"block_handle({offset}, {size})",
            functools.partial(handle_meaning, first),
            "Two varints: the offset, then the size of the contents, without the trailer.",
        )
    return f"{len(numbers)} handles"


def handle_meaning(first: int, at: int) -> str:
    """The meaning of a byte of a handle whose offset has ``first`` bytes."""
    return "part of the offset" if at < first else "part of the size"


SEPARATED: tuple[tuple[bytes, bytes, str], ...] = (
    (
        key_of(b"ant", 5),
        key_of(b"cat", 2),
        "The first byte that differs is raised by one, a to b, and what follows it is cut off.",
    ),
    (
        key_of(b"antelope", 5),
        key_of(b"antler", 2),
        "The keys share ant; the next byte, e, is raised by one, and the rest is cut off.",
    ),
    (
        key_of(b"ant", 5),
        key_of(b"bee", 2),
        "a raised by one would be b, which is not below the b of bee: the key stays as it is.",
    ),
    (
        key_of(b"ant", 5),
        key_of(b"anthill", 2),
        "The first key is a prefix of the second. There is nothing to raise: it stays.",
    ),
    (
        key_of(b"ant", 5),
        key_of(b"ant", 2),
        "Two versions of one key: there is no user key between them, so the internal key stays.",
    ),
    (
        key_of(b"ant", 5),
        key_of(b"anz", 2),
        "anu would be no shorter than ant. Only a key that gets shorter is replaced.",
    ),
    (
        key_of(b"an\xff\xff\xff", 5),
        key_of(b"b", 2),
        "a raised by one would be b, which is not below the b of the next key: the key stays.",
    ),
    (
        key_of(b"a\x00xyz", 5),
        key_of(b"a\xff", 2),
        "The byte 00 is raised to 01, and the rest is cut off.",
    ),
)
"""Last and first keys of neighboring blocks, and what the pair tests."""


def separators(code: ModuleType) -> str:
    """Keys between two blocks."""
    for last, first, hint in SEPARATED:
        expected = ORDER.find_shortest_separator(last, first)
        call = f"separator({described(last)}, {described(first)})"
        require_index_key(code.separator(last, first), expected, last, call, hint)
    entries = some_entries(5, 300)
    for (last, _), (first, _) in itertools.pairwise(entries):
        expected = ORDER.find_shortest_separator(last, first)
        call = f"separator({described(last)}, {described(first)})"
        require_index_key(code.separator(last, first), expected, last, call, "See the rules.")
    return f"{len(SEPARATED) + len(entries) - 1:,} pairs of keys"


def successors(code: ModuleType) -> str:
    """Keys after the last block."""
    keys = (
        (b"cat", "The first byte is raised by one, and what follows it is cut off."),
        (b"c", "d would be no shorter than c: the key stays as it is."),
        (b"\xff\xffcat", "Bytes of ff cannot be raised: the first other byte is."),
        (b"\xff\xff", "All bytes are ff: the key stays as it is."),
        (b"", "There is nothing to raise: the key stays as it is."),
    )
    for user_key, hint in keys:
        last = key_of(user_key, 7)
        expected = ORDER.find_short_successor(last)
        require_index_key(
            code.successor(last), expected, last, f"successor({described(last)})", hint
        )
    return f"{len(keys)} keys"


def require_index_key(got: object, expected: bytes, last: bytes, call: str, hint: str) -> None:
    """Fail unless an index key is the one expected."""
    require(isinstance(got, bytes), f"{call} must be bytes, not {shown(got)}.")
    assert isinstance(got, bytes)
    if got == expected:
        return
    if got == expected[:-8]:
        hint = "That is a user key. An index key is an internal key, and needs a tag."
    elif got[:-8] == expected[:-8]:
        hint = (
            "The tag of a shortened key has the largest sequence and the kind of a value: 01, and"
            " seven times ff. So it sorts before all versions of that key."
        )
        if expected == last:
            hint = "A key that is not shortened keeps its own tag."
    raise CheckFailure(
        f"{call} must be {described(expected)}, but your code returned {described(got)}.\n{hint}"
    )


def described(key: bytes) -> str:
    """An internal key in a message: the user key, and the tag in hexadecimal."""
    if len(key) < 8:
        return repr(key)
    return f"{key[:-8]!r} + {key[-8:].hex()}"


def footers(code: ModuleType) -> str:
    """Footers, byte for byte."""
    numbers = (
        (BlockHandle(0, 8), BlockHandle(13, 20)),
        (BlockHandle(10**6, 8), BlockHandle(10**6 + 13, 30000)),
        (BlockHandle(1 << 62, 1 << 62), BlockHandle(1 << 63, 1 << 61)),
    )
    for metaindex, index in numbers:
        expected = footer_of(metaindex, index)
        require_bytes(
            code.footer(metaindex.encode(), index.encode()),
            expected,
            f"the footer for {metaindex} and {index}",
            functools.partial(meaning_in, footer_parts(expected)),
            "The handles of metaindex and index, zeros up to 40 bytes, and the magic number of"
            " eight bytes, lowest byte first.",
        )
    return f"{len(numbers)} footers"


Parts = list[tuple[int, int, str]]


def footer_parts(data: bytes) -> Parts:
    """The parts of a footer: offset, size, and meaning."""
    footer = parse_footer(data)
    sizes = (
        (len(footer.metaindex.encode()), f"handle of the metaindex, {spelled(footer.metaindex)}"),
        (len(footer.index.encode()), f"handle of the index, {spelled(footer.index)}"),
    )
    found: Parts = []
    at = 0
    for size, what in sizes:
        found.append((at, size, what))
        at += size
    end = FOOTER_SIZE - len(MAGIC)
    found.append((at, end - at, "zeros"))
    found.append((end, len(MAGIC), "magic number"))
    return [part for part in found if part[1] > 0]


def spelled(handle: BlockHandle) -> str:
    """Describe a handle."""
    return f"{handle.size} bytes at {handle.offset}"


def blocks_in(data: bytes) -> list[tuple[str, BlockHandle]]:
    """The blocks of a table in their order, by name."""
    footer = parse_footer(data[-FOOTER_SIZE:])
    blocks = [
        (f"data block {number}", parse_handle(entry.value)[0])
        for number, entry in enumerate(entries_in(contents_of(data, footer.index)))
    ]
    return [*blocks, ("metaindex", footer.metaindex), ("index", footer.index)]


def contents_of(data: bytes, handle: BlockHandle) -> bytes:
    """A block of a table."""
    return data[handle.offset : handle.offset + handle.size]


def parts(data: bytes) -> Parts:
    """The parts of a table in order: offset, size, and meaning."""
    found: Parts = []
    for name, handle in blocks_in(data):
        contents = contents_of(data, handle)
        for start, size, what in block.parts(contents):
            if name == "index" and "rest of the key" in what:  # which is the complete key
                user_key = contents[start : start + size - 8]
                what = f"{what.partition(':')[0]}: key, {user_key!r} and a tag"
            elif name == "index" and what.endswith(": value"):
                what = what.replace(": value", ": handle")
            found.append((handle.offset + start, size, f"{name}: {what}"))
        end = handle.offset + handle.size
        found.append((end, 1, f"{name}: type, 0"))
        found.append((end + 1, 4, f"{name}: masked checksum of contents and type"))
    start = len(data) - FOOTER_SIZE
    found += [
        (start + at, size, f"footer: {what}") for at, size, what in footer_parts(data[start:])
    ]
    return found


def meaning_in(found: Parts, wanted: int) -> str:
    """The meaning of the byte at an offset."""
    return next(
        f"{what}, byte {wanted - start}" if size > 1 else what
        for start, size, what in found
        if start <= wanted < start + size
    )


HINTS = {
    "data block": "A data block ends with the entry that raises its size estimate to block_size."
    " Its restart interval is 16.",
    "metaindex": "The metaindex comes after the data blocks, and has no entries.",
    "index": "The index comes after the metaindex. Its restart interval is 1. A block's index key"
    " is a separator, or the successor of the last key; its value is the block's handle: offset and"
    " size, without the trailer.",
    "footer": "The handle of the metaindex comes first, and then that of the index.",
}
"""Hints for the case that the first different byte is in one of these."""


def tables(code: ModuleType) -> str:
    """Tables, byte for byte."""
    for entries, block_size, what in cases():
        expected = built(entries, block_size)
        found = parts(expected)
        got = code.build_table(list(entries), block_size)
        hint = ""
        if isinstance(got, bytes) and got != expected:
            pairs = enumerate(zip(got, expected, strict=False))
            shorter = min(len(got), len(expected))
            at = next((at for at, (one, other) in pairs if one != other), shorter)
            name = meaning_in(found, min(at, len(expected) - 1))
            hint = next(hint for start, hint in HINTS.items() if name.startswith(start))
        meaning = functools.partial(meaning_in, found)
        require_bytes(got, expected, f"the table of {what}", meaning, hint)
    return f"{len(cases())} tables"


class Reads:
    """A table that is read by offset and length; it records the reads."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.noted: list[tuple[int, int]] = []

    def __call__(self, offset: int, length: int) -> bytes:
        require(
            offset >= 0 and length >= 0 and offset + length <= len(self.data),
            f"get reads {length} bytes at {offset} of a table of {len(self.data)} bytes.",
        )
        self.noted.append((offset, length))
        return self.data[offset : offset + length]


def newest(entries: Entries) -> Content:
    """A table's answer for each of its user keys; None is a deletion."""
    found: Content = {}
    for key, value in entries:
        user_key, _, kind = parse_key(key)
        found.setdefault(user_key, value if kind == KIND_VALUE else None)
    return found


def questions(entries: Entries) -> Content:
    """Present and absent keys of a table, with the answers."""
    there = newest(entries)
    asked = {b"", b"zzz", b"\xff" * 9, *there, *(key + b"\0" for key in there)}
    asked |= {key[:-1] for key in there}
    return {key: there.get(key) for key in sorted(asked)}


def reading(code: ModuleType) -> str:
    """Gets in the engine's tables."""
    asked = 0
    for entries, block_size, what in cases():
        data = built(entries, block_size)
        versions: dict[bytes, list[int]] = {}
        for key, _ in entries:
            versions.setdefault(key[:-8], []).append(key[-8])
        for key, value in questions(entries).items():
            asked += 1
            kinds = versions.get(key, [])
            hint = "Find the first index key whose user key is not below the key: read that block."
            if not kinds:
                hint = f"The table does not hold this key.\n{hint}"
            elif kinds[0] == KIND_DELETION:
                hint = "The newest version is a deletion (kind 0), so the key is absent."
            elif len(kinds) > 1:
                hint = (
                    f"It has {len(kinds)} versions, the newest first. They may fill several blocks:"
                    f" the first is the one.\n{hint}"
                )
            require_equal(
                code.get(Reads(data), len(data), key),
                value,
                f"get(..., {key!r}) in the table of {what}",
                hint,
            )
    return f"{asked:,} keys"


def few_reads(code: ModuleType) -> str:
    """Check that a get reads the footer, the index, and one data block."""
    entries, block_size, what = cases()[-2]
    data = built(entries, block_size)
    blocks = blocks_in(data)
    index = blocks[-1][1]
    most = max(handle.size for _, handle in blocks[:-2]) + TRAILER_SIZE
    ends = FOOTER_SIZE + index.size + TRAILER_SIZE
    for key in [*newest(entries), b"user", b"\xff" * 9]:
        reads = Reads(data)
        code.get(reads, len(data), key)
        behind = key == b"\xff" * 9
        allowed, enough = (2, ends) if behind else (3, ends + most)
        total = sum(length for _, length in reads.noted)
        hint = "Footer and index; the key is after the last index key, so it is in no block."
        if not behind:
            hint = "Footer, index, and the one data block that the index names."
        require(
            len(reads.noted) <= allowed and total <= enough,
            f"get(..., {key!r}) in the table of {what} makes {count(len(reads.noted), 'read')} of"
            f" {total:,} bytes in total; {allowed} of at most {enough:,} are enough.\n{hint}",
        )
    return f"at most 3 reads for each of {len(newest(entries)):,} keys"


def damaged(code: ModuleType) -> str:
    """Check that a get that reads damage reports it, and that others succeed."""
    data = built(SAMPLE, SAMPLE_BLOCK_SIZE)
    places = {what: start for start, _, what in parts(data)}
    value = next(start for what, start in places.items() if what.endswith("entry 1: value"))
    bad_places = {
        "the magic number": places["footer: magic number"] + 7,
        "the index": next(start for what, start in places.items() if what.startswith("index")),
        "the checksum of the index": len(data) - FOOTER_SIZE - 1,
        "the value": value,
    }
    for what, at in bad_places.items():
        bad = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        require_refused(
            functools.partial(code.get, Reads(bad), len(bad), b"antler"),
            f"get(..., b'antler') in a table in which {what} is damaged",
            hint="Compare the magic number, and open each block with unseal_block.",
        )
    bad = data[:value] + bytes([data[value] ^ 1]) + data[value + 1 :]
    try:
        got = code.get(Reads(bad), len(bad), b"cat")
    except (ValueError, lsmkv.CorruptionError):
        got = None
    require(
        got == b"sly",
        "get(..., b'cat') does not find the key in a table in which the value of antler is damaged."
        "\nThe block that holds cat is another, undamaged one: no other data block should be read.",
    )
    for size in (0, 20, FOOTER_SIZE - 1):
        require_refused(
            functools.partial(code.get, Reads(data[len(data) - size :]), size, b"cat"),
            f"get in a table of {count(size, 'byte')}",
            hint="A table has at least the 48 bytes of its footer. Check the size first.",
        )
    return f"{len(bad_places) + 4} damaged tables"


NUMBER = 1000


def versions() -> Entries:
    """The content of the last check's table: some keys have two versions, some are deleted."""
    found: Entries = []
    for n in range(NUMBER):
        key = b"user:%05d" % (3 * n)
        if n % 21 == 3:
            found.append((key_of(key, NUMBER + n, KIND_DELETION), b""))
        elif n % 3 == 0:
            found.append((key_of(key, NUMBER + n), b"new %d" % n))
        found.append((key_of(key, n + 1), b"value %d " % n * (n % 9)))
    return found


def in_the_engine(code: ModuleType) -> str:
    """Check the student's table as the only one of a store, and the student's get in a store's
    table."""
    entries = versions()
    content = newest(entries)
    there = sum(value is not None for value in content.values())
    content |= {b"user:%05d" % (3 * n + 1): None for n in range(NUMBER)}
    table = code.build_table(list(entries), lsmkv.Options().block_size)
    require(isinstance(table, bytes), f"build_table returned {shown(table)}, not bytes.")
    what = "A store whose only table is yours"
    with scratch() as directory:
        ours, theirs = os.path.join(directory, "student"), os.path.join(directory, "engine")
        store_with_table(ours, table, entries[0][0], entries[-1][0], 2 * NUMBER)
        require_sound(ours, what)
        require_content(ours, content, what)
        by_leveldb = require_content_by_leveldb(ours, content, what)
        compacted(ours, content)
        with lsmkv.DB(theirs, create_if_missing=True, compression=None) as db:
            for key, value in content.items():
                db.put(key, value or b"")
            db.flush()
        (path,) = files_of(theirs, "table")
        with open(path, "rb") as file:
            data = file.read()
    written: Content = {key: value or b"" for key, value in content.items()}
    written[b"user"] = None
    found = {key: code.get(Reads(data), len(data), key) for key in written}
    require_same(found, written, "Your get reads a table of a store:")
    return (
        f"lsmkv finds {there:,} keys in your table of {len(table):,} bytes{by_leveldb}; a"
        f" compaction merges it; your get reads a store's own table"
    )


def require_sound(directory: str, what: str) -> None:
    """Fail if the engine's own check of a store finds damage."""
    try:
        with lsmkv.DB(directory, read_only=True) as db:
            db.check()
    except lsmkv.Error as error:
        raise CheckFailure(f"{what}: lsmkv finds it damaged. {error}") from None


def compacted(directory: str, content: Content) -> None:
    """Check that a compaction of the student's table and a new one keeps the entries."""
    what = "A store that has compacted your table"
    try:
        with lsmkv.DB(directory, compression=None) as db:
            db.put(b"user:", b"new")
            db.flush()
            db.compact_range()
            found = dict(db)
    except lsmkv.Error as error:
        raise CheckFailure(f"{what}: lsmkv finds it damaged. {error}") from None
    there = {key: value for key, value in content.items() if value is not None}
    require_same(
        {key: found.get(key) for key in content}, content, f"{what}: a scan with lsmkv reads"
    )
    require(len(found) == len(there) + 1, f"{what} has {len(found) - 1} keys, not {len(there)}.")


def drawing() -> str:
    """A table of three keys in two blocks, part by part."""
    data = built(SAMPLE, SAMPLE_BLOCK_SIZE)
    lines = [
        "antelope@3=swift, antler@1=hard, cat@2=sly; blocks of 40 bytes",
        "",
        f"{'offset':>6}  {'bytes':<26}  what",
    ]
    name = ""
    for start, size, what in outlined(data):
        new, _, rest = what.partition(": ")
        if new != name:
            lines.append(f"--- {new} ---")
            name = new
        piece = data[start : start + size]
        text = piece.hex(" ") if size <= 9 else f"{piece[:4].hex(' ')} .. {piece[-4:].hex(' ')}"
        lines.append(f"{start:6}  {text:<26}  {rest}")
    return "\n".join(lines) + "\n"


def outlined(data: bytes) -> Parts:
    """The parts of a table, with the contents of all blocks but the index as one."""
    found: Parts = []
    names = {name: handle for name, handle in blocks_in(data) if name != "index"}
    for start, size, what in parts(data):
        name = what.partition(": ")[0]
        handle = names.get(name)
        if handle is None or start >= handle.offset + handle.size:
            found.append((start, size, what))
        elif start == handle.offset:
            keys = [entry.key[:-8] for entry in entries_in(contents_of(data, handle))]
            held = ", ".join(key.decode() for key in keys) or "no entries"
            found.append((start, handle.size, f"{name}: contents, {handle.size} bytes: {held}"))
    return found


LAB = Lab(
    number=6,
    slug="table",
    title="A table",
    functions=(
        "seal_block",
        "unseal_block",
        "block_handle",
        "separator",
        "successor",
        "footer",
        "build_table",
        "get",
    ),
    checks=(
        Check("sealing a block", seals),
        Check("opening a block", unseals),
        Check("block handles", handles),
        Check("keys between blocks", separators),
        Check("the last index key", successors),
        Check("the footer", footers),
        Check("the bytes of a table", tables),
        Check("reading a table", reading),
        Check("the reads of a get", few_reads),
        Check("damaged tables", damaged),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
