"""Lab 1: varints and internal keys, the parts of a batch in a log and of a data block."""

from __future__ import annotations

import functools
import os
import random
from types import ModuleType

import lsmkv
from lsmkv.course.failure import (
    require,
    require_bytes,
    require_equal,
    require_refused,
    shown,
)
from lsmkv.course.given import Block, BlockBuilder, encode_varint
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.formats import KIND_DELETION, KIND_VALUE, MAX_SEQUENCE, frame
from lsmkv.course.labs.temporary_stores import (
    require_content,
    require_content_by_leveldb,
    scratch,
    store_with_log,
)
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.files import make_key, parse_key

NUMBERS = (0, 1, 127, 128, 300, 16383, 16384, 2**32 - 1, 2**32, 2**56 - 1, 2**63, 2**64 - 1)
KEYS: tuple[tuple[bytes, int, int], ...] = (
    (b"ant", 1, KIND_VALUE),
    (b"ant", 258, KIND_DELETION),
    (b"", 3, KIND_VALUE),
    (b"\xff\x00", MAX_SEQUENCE, KIND_VALUE),
)


def some_numbers(seed: int) -> list[int]:
    """Numbers of all lengths, small ones first."""
    dice = random.Random(seed)
    return [dice.getrandbits(bits) for bits in range(65)]


def encoded(code: ModuleType) -> str:
    """Varints, byte for byte."""
    for value in (*NUMBERS, *some_numbers(1)):
        expected = encode_varint(value)
        require_bytes(
            code.encode_varint(value),
            expected,
            f"encode_varint({value})",
            functools.partial(group, value, len(expected)),
            "Seven bits a byte, the lowest first. The top bit says that another byte follows.",
        )
    return f"{len(NUMBERS) + 65} numbers"


def group(value: int, length: int, at: int) -> str:
    """The meaning of a byte of a varint."""
    more = "the last byte, so its top bit is 0" if at == length - 1 else "more follow: top bit 1"
    return f"bits {7 * at} to {7 * at + 6} of {value} ({more})"


def decoded(code: ModuleType) -> str:
    """Check decoded numbers, and the positions after them, at any place in the data."""
    for value in (*NUMBERS, *some_numbers(2)):
        data = encode_varint(value)
        got = code.decode_varint(data, 0)
        hint = "Each byte has seven bits, worth 2**7 times those of the byte before it."
        if isinstance(got, tuple) and got[:1] == (value,):
            hint = "The number is right. The second result is the position after the varint."
        require_equal(got, (value, len(data)), f"decode_varint({data!r}, 0)", hint)
        within = b"\xff" + data + b"\xff"
        require_equal(
            code.decode_varint(within, 1),
            (value, 1 + len(data)),
            f"decode_varint({within!r}, 1)",
            "It starts at the position, and the second result is the position after the varint in"
            " the data, not its length.",
        )
    return f"{len(NUMBERS) + 65} numbers"


def refused(code: ModuleType) -> str:
    """Check that invalid varints raise ValueError."""
    for data, why in (
        (b"", "there is no byte at the position"),
        (b"\x80", "the last byte says that another one follows"),
        (b"\xff\xff\xff", "the last byte says that another one follows"),
        (b"\x80" * 10 + b"\x01", "a varint has at most ten bytes"),
    ):
        require_refused(
            functools.partial(code.decode_varint, data, 0), f"decode_varint({data!r}, 0)", why
        )
    return "4 cases"


def packed(code: ModuleType) -> str:
    """Internal keys, byte for byte."""
    for user_key, sequence, kind in KEYS:
        require_bytes(
            code.pack_key(user_key, sequence, kind),
            make_key(user_key, sequence, kind),
            f"pack_key({user_key!r}, {sequence}, {kind})",
            functools.partial(part, len(user_key)),
            "The tag is sequence << 8 | kind, as eight bytes, little-endian.",
        )
    return f"{len(KEYS)} keys"


def part(size: int, at: int) -> str:
    """The meaning of a byte of an internal key."""
    if at < size:
        return f"byte {at} of the user key"
    if at == size:
        return "the tag's lowest byte, the kind"
    return f"byte {at - size} of the tag: bits {8 * (at - size - 1)} and up of the sequence"


def unpacked(code: ModuleType) -> str:
    """Check the parts of keys, and that keys without a tag are refused."""
    for parts in KEYS:
        key = make_key(*parts)
        user_key, sequence, kind = parts
        got = code.unpack_key(key)
        hint = "The last eight bytes are the tag, whatever the user key contains."
        turned = int.from_bytes(key[-8:], "big")
        if got == (user_key, turned >> 8, turned & 0xFF):
            hint = "The tag is little-endian: its first byte is the lowest."
        elif got == (user_key, kind, sequence):
            hint = "The sequence comes before the kind."
        require_equal(got, parts, f"unpack_key({key!r})", hint)
    for size in (0, 7):
        key = bytes(size)
        require_refused(
            functools.partial(code.unpack_key, key), f"unpack_key({key!r})", "a tag has eight bytes"
        )
    return f"{len(KEYS)} keys, and 2 invalid ones"


def compared(code: ModuleType) -> str:
    """Check that user keys ascend, and that the newest version of a user key comes first."""
    order = InternalKeyComparator(lsmkv.BytewiseComparator())
    user_keys = (b"", b"a", b"a\x00", b"aa", b"b", b"\x7f", b"\x80", b"a" + bytes(8), b"a\xff")
    keys = [
        make_key(user_key, sequence, kind)
        for user_key in user_keys
        for sequence, kind in ((1, 1), (1, 0), (2, 0), (255, 1), (256, 1), (1 << 40, 1))
    ]
    for a in keys:
        for b in keys:
            expected = order.compare(a, b)
            got = code.compare_keys(a, b)
            call = f"compare_keys of {tuple(parse_key(a))} and {tuple(parse_key(b))}"
            require(isinstance(got, int), f"{call} must be a number, not {shown(got)}.")
            words = {-1: "below 0", 0: "0", 1: "above 0"}[expected]
            hint = "User keys are compared first, byte by byte; one that is a prefix comes first."
            if a[:-8] == b[:-8]:
                hint = (
                    "Of one user key, the version with the larger tag comes first: it is the "
                    "newer one."
                )
            require(
                (got > 0) - (got < 0) == expected,
                f"{call} (user key, sequence, kind) must be {words}, but is {got}.\n{hint}",
            )
    return f"{len(keys) ** 2:,} pairs"


def in_the_engine(code: ModuleType) -> str:
    """Recover a batch of the student's varints, and search a block of the student's keys."""
    content = {b"key%d" % n: b"v" * (n * n) for n in range(40)} | {b"key7": None, b"k" * 300: b"x"}
    with scratch() as directory:
        store = os.path.join(directory, "store")
        store_with_log(store, frame(batch(code, content), 0))
        what = "A store whose log has a batch with your varints"
        require_content(store, content, what)
        by_leveldb = require_content_by_leveldb(store, content, what)
    versions = search(code)
    return (
        f"a store recovered {len(content)} operations with your varints{by_leveldb};"
        f" {versions} lookups among your internal keys found the right versions"
    )


def batch(code: ModuleType, content: dict[bytes, bytes | None]) -> bytes:
    """A write batch as stored in a log, with the student's varints for all lengths."""
    parts = [(1).to_bytes(8, "little"), len(content).to_bytes(4, "little")]
    for key, value in content.items():
        parts += [bytes([value is not None]), code.encode_varint(len(key)), key]
        if value is not None:
            parts += [code.encode_varint(len(value)), value]
    return b"".join(parts)


def search(code: ModuleType) -> int:
    """Build a data block of the student's keys, in the student's order, and search it."""
    dice = random.Random(3)
    versions = {
        (b"user%02d" % dice.randrange(30), sequence): dice.randrange(4) > 0
        for sequence in dice.sample(range(1, 1 << 20), 200)
    }
    keys = [code.pack_key(key, sequence, int(kind)) for (key, sequence), kind in versions.items()]
    builder = BlockBuilder(16)
    for key in sorted(keys, key=functools.cmp_to_key(code.compare_keys)):
        builder.add(key, b"value of " + key)
    block = Block(builder.finish())
    order = KeyOrder(lsmkv.BytewiseComparator())
    asked = 0
    for user_key in sorted({key for key, _ in versions}):
        for at in (0, 1 << 18, 1 << 19, MAX_SEQUENCE):
            seen = [(s, kind) for (key, s), kind in versions.items() if key == user_key and s <= at]
            tag, _ = block.get(user_key, at, order)
            newest = max(seen, default=(0, False))
            require(
                tag == (newest[0] << 8 | newest[1]),
                f"In a block of your keys, in your order, the engine looked for {user_key!r} as of"
                f" sequence {at}, and found sequence {tag >> 8}, kind {tag & 255}, in place of"
                f" sequence {newest[0]}, kind {int(newest[1])}.",
            )
            asked += 1
    return asked


def drawing() -> str:
    """Two varints and an internal key, byte by byte."""
    lines: list[str] = []
    for value in (3, 300):
        data = encode_varint(value)
        lines.append(f"varint of {value}: {data.hex(' ')}")
        for at, byte in enumerate(data):
            more = "the last byte" if byte < 128 else "another one follows"
            lines.append(f"  {at}  {byte:02x}  {byte >> 7} {byte & 127:07b}  {more}")
        lines.append("")
    user_key, sequence, kind = KEYS[1]
    key = make_key(user_key, sequence, kind)
    lines.append(f"internal key of {user_key!r}, sequence {sequence}, a deletion: {key.hex(' ')}")
    shown_bytes = len(key.rstrip(b"\0"))
    for at, byte in enumerate(key[:shown_bytes]):
        lines.append(f"  {at:2}  {byte:02x}  {part(len(user_key), at)}")
    lines.append(f"  bytes {shown_bytes} to {len(key) - 1}: the rest of the sequence")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=1,
    slug="keys",
    title="Varints and internal keys",
    functions=("encode_varint", "decode_varint", "pack_key", "unpack_key", "compare_keys"),
    checks=(
        Check("writing varints", encoded),
        Check("reading varints", decoded),
        Check("invalid varints", refused),
        Check("writing internal keys", packed),
        Check("reading internal keys", unpacked),
        Check("the order of internal keys", compared),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
