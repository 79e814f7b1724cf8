"""Lab 4: the Bloom filter, used as the filter policy of a store under LevelDB's name."""

from __future__ import annotations

import functools
import math
import os
import random
from collections.abc import Sequence
from types import ModuleType

import lsmkv
from lsmkv import BloomFilterPolicy
from lsmkv.course.failure import (
    CheckFailure,
    difference,
    require,
    require_bytes,
    require_equal,
    shown,
)
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.temporary_stores import (
    blocks_without_filters,
    files_of,
    require_content_by_leveldb,
    scratch,
)
from lsmkv.files import Filter
from lsmkv.tools.text import count

HASHED: tuple[tuple[bytes, str], ...] = (
    (b"", "No word and no byte is left: only the seed and the length count, h = seed ^ (n * m)."),
    (b"abcd", "One word of four bytes. It is read little-endian: the first byte is the lowest."),
    (b"abcdefgh", "Two words: after each one h is multiplied, cut to 32 bits, and folded by 16."),
    (b"a", "One byte is left over: it is added, h is multiplied, and then folded by 24, not 16."),
    (b"ab", "Two bytes are left over: the second is shifted by 8 before it is added."),
    (b"abc", "Three bytes are left over: the third is shifted by 16, the second by 8."),
    (b"abcdefg", "One word, then three bytes that are left over."),
    (b"\xff", "Bytes are numbers from 0 to 255, never negative."),
    (b"\xff" * 9, "h and each word may be large: keep 32 bits after every sum and product."),
)
"""Keys, and what each of them tests."""
SAMPLE = (b"hello", b"world")
BITS = 10
MAX_PROBES = 30
"""Larger values of a filter's last byte are reserved."""


def leveldb_hash(key: bytes) -> int:
    """The hash of LevelDB's filters, by the engine."""
    hashed = Filter(0, 0, 0, None, None, BloomFilterPolicy().name.encode(), b"").hash(key)
    assert hashed is not None
    return hashed


def predicted_rate(bits_per_key: float, k: int) -> float:
    """The false positive rate by the formula."""
    return float((1 - math.exp(-k / bits_per_key)) ** k)


def hashes(code: ModuleType) -> str:
    """The hash, part by part."""
    for key, hint in HASHED:
        got = code.bloom_hash(key)
        expected = leveldb_hash(key)
        if type(got) is int and got > 0xFFFFFFFF:
            raise CheckFailure(
                f"bloom_hash({key!r}) must be {expected:#x}, but yours has more than 32 bits:"
                f" {got:#x}.\nCut each sum, product and shift with & 0xffffffff."
            )
        described = hex(got) if type(got) is int else shown(got)
        require(
            type(got) is int and got == expected,
            f"bloom_hash({key!r}) must be {expected:#x}, but yours is {described}.\n{hint}",
        )
    dice = random.Random(4)
    for length in range(64):
        key = dice.randbytes(length)
        require_equal(code.bloom_hash(key), leveldb_hash(key), f"bloom_hash({key!r})")
    return f"{len(HASHED) + 64} keys"


def numbers_of_probes(code: ModuleType) -> str:
    """k for budgets from 1 bit to 100."""
    for bits in (10, 1, 2, 5, 16, 20, 44, 100):
        expected = BloomFilterPolicy(bits).probes
        hint = "k is int(bits * 0.69): truncated, not rounded."
        if bits == 1:
            hint = "k is at least 1: a filter without probes would match everything."
        elif bits == 100:
            hint = "k is at most 30: larger values of the last byte are reserved."
        require_equal(code.probes(bits), expected, f"probes({bits})", hint)
    return "1 to 100 bits a key"


def sizes(code: ModuleType) -> str:
    """The number of bytes in a filter, and its last byte."""
    for number, bits in ((0, 10), (1, 10), (6, 10), (7, 10), (100, 10), (33, 7), (50, 16)):
        keys = [b"key%d" % n for n in range(number)]
        got = code.create_filter(keys, bits)
        expected = BloomFilterPolicy(bits).create_filter(keys)
        what = f"The filter of {number} keys at {bits} bits a key"
        require(isinstance(got, bytes), f"{what} must be bytes, not {shown(got)}.")
        require(
            len(got) != len(expected) - 1,
            f"{what} is a byte short: {len(got)} of {len(expected)}. Is the last byte there, "
            "which stores k, and is the number of bits rounded up to whole bytes?",
        )
        hint = f"{number} * {bits} bits, rounded up to whole bytes, and one byte for k."
        if number * bits < 64:
            hint = "A filter has at least 64 bits, so 8 bytes, and one more for k."
        require(
            len(got) == len(expected),
            f"{what} must have {len(expected)} bytes, but yours has {len(got)}.\n{hint}",
        )
        require_equal(got[-1], expected[-1], f"the last byte of the filter at {bits} bits a key")
    return "0 to 100 keys"


def filter_bytes(code: ModuleType) -> str:
    """The filters of LevelDB, bit for bit."""
    dice = random.Random(10)
    cases: list[tuple[list[bytes], int]] = [([SAMPLE[0]], BITS), (list(SAMPLE), BITS)]
    cases += [([dice.randbytes(dice.randrange(20)) for _ in range(n)], 10) for n in (3, 20, 200)]
    cases += [([dice.randbytes(8) for _ in range(40)], bits) for bits in (1, 5, 16, 60)]
    for keys, bits in cases:
        expected = BloomFilterPolicy(bits).create_filter(keys)
        few = f"the keys {keys}" if len(keys) < 3 else f"{len(keys)} keys"
        got = code.create_filter(list(keys), bits)
        hint = (
            "Bit p is in byte p // 8, with the value 1 << (p % 8). The positions of a key are h,"
            " h + d, h + 2d, ... modulo the number of bits, and h + d keeps 32 bits."
        )
        if got == without_cutting(keys, expected):
            hint = "h + d, h + 2d, ... are not reduced to 32 bits before the modulus is taken."
        require_bytes(
            got,
            expected,
            f"the filter of {few} at {bits} bits a key",
            functools.partial(meaning, keys, expected),
            hint,
        )
    return f"{len(cases)} filters"


def without_cutting(keys: Sequence[bytes], expected: bytes) -> bytes:
    """The filter made with sums of more than 32 bits, a common mistake."""
    bits, k = 8 * len(expected) - 8, expected[-1]
    made = bytearray(len(expected) - 1)
    for key in keys:
        h = leveldb_hash(key)
        d = (h >> 17 | h << 15) & 0xFFFFFFFF
        for number in range(k):
            position = (h + number * d) % bits
            made[position // 8] |= 1 << position % 8
    return bytes(made) + expected[-1:]


def meaning(keys: Sequence[bytes], data: bytes, at: int) -> str:
    """The meaning of the byte of a filter at an offset."""
    if at == len(data) - 1:
        return "the number of probes, k"
    bits: list[str] = []
    for key in keys:
        positions = BloomFilterPolicy(BITS).probed_positions(leveldb_hash(key), data)
        bits += [
            f"{position} (probe {number} of {key!r})"
            for number, position in enumerate(positions, 1)
            if position // 8 == at
        ]
    if not bits:
        described = "all of them 0"
    elif len(bits) > 4:
        described = f"{len(bits)} of them set by a key's probes"
    else:
        described = f"set: {', '.join(bits)}"
    return f"bits {8 * at} to {8 * at + 7} of the array, {described}"


def no_false_negatives(code: ModuleType) -> str:
    """Check that added keys are always found again."""
    dice = random.Random(1970)
    for number in range(60):
        keys = [dice.randbytes(dice.randrange(12)) for _ in range(number)]
        bits = dice.randrange(1, 24)
        data = code.create_filter(keys, bits)
        for key in keys:
            require(
                code.key_may_match(key, data) is True,
                f"A false negative: {key!r} is among the {count(number, 'key')} of a filter at "
                f"{bits} bits a key, but key_may_match does not return True for it.\nA store "
                "would lose that key. A filter may err only on the other side.",
            )
    return "60 sets of keys"


def asked_filters(code: ModuleType) -> str:
    """The answers on LevelDB's filters, including unusual ones."""
    policy = BloomFilterPolicy(BITS)
    require_equal(
        code.key_may_match(b"x", b""),
        False,
        "key_may_match(b'x', b'')",
        "A filter of fewer than two bytes contains no keys.",
    )
    require_equal(
        code.key_may_match(b"x", b"\x06"),
        False,
        "key_may_match(b'x', b'\\x06')",
        "A filter of fewer than two bytes contains no keys.",
    )
    require_equal(
        code.key_may_match(b"x", bytes(8) + bytes([MAX_PROBES + 1])),
        True,
        "key_may_match on a filter whose last byte is 31",
        "Values above 30 are reserved for other encodings, so the answer must be True: maybe.",
    )
    for bits in (10, 4, 20, 44):
        keys = [b"%d" % n for n in range(100)]
        data = BloomFilterPolicy(bits).create_filter(keys)
        for n in range(400):
            key = b"%d" % n
            require_equal(
                code.key_may_match(key, data),
                policy.key_may_match(key, data),
                f"key_may_match({key!r}, LevelDB's filter of 100 keys at {bits} bits a key)",
                "The last byte is 30, which is ordinary: only values above 30 are reserved."
                if bits == 44
                else "k is the last byte of the filter, and may differ from yours; all other bytes "
                "are the array. The answer is True if all k bits are set.",
            )
    return "1,600 questions"


def rates(code: ModuleType) -> str:
    """The false positive rate: by the formula, and counted."""
    found: list[str] = []
    for bits in (5, 10, 16):
        k = BloomFilterPolicy(bits).probes
        formula = code.predicted_rate(bits, k)
        expected = predicted_rate(bits, k)
        require(
            isinstance(formula, float) and abs(formula - expected) < 1e-9,
            f"predicted_rate({bits}, {k}) must be {expected:.6f}, but your code returned "
            f"{shown(formula)}.\nThe formula is (1 - e^(-k/b))^k, with b bits a key.",
        )
        data = code.create_filter(some_keys(bits, 2000), bits)
        rate = sum(code.key_may_match(key, data) for key in some_keys(0, 2000)) / 2000
        require(
            rate < 2 * expected + 0.001,
            f"At {bits} bits a key, {rate:.2%} of 2,000 absent keys pass your filter; the formula "
            f"predicts {expected:.2%}.\nDo both functions use all k probes?",
        )
        found.append(f"{bits} bits: {rate:.2%} (formula {expected:.2%})")
    return "; ".join(found)


def measured_rates(code: ModuleType) -> dict[str, dict[int, float]]:
    """The false positive rates by bits per key, of the student's filters and of LevelDB's."""
    keys, absent = some_keys(1, 2000), some_keys(2, 10_000)
    yours: dict[int, float] = {}
    reference: dict[int, float] = {}
    for bits in (1, 2, 4, 6, 8, 10, 12, 14, 16):
        data = code.create_filter(keys, bits)
        require(
            all(code.key_may_match(key, data) for key in keys[:500]),
            f"At {count(bits, 'bit')} a key, your filter says no to a key that is in it.",
        )
        yours[bits] = sum(bool(code.key_may_match(key, data)) for key in absent) / len(absent)
        policy = BloomFilterPolicy(bits)
        data = policy.create_filter(keys)
        reference[bits] = sum(policy.key_may_match(key, data) for key in absent) / len(absent)
    return {"LevelDB's": reference, "yours": yours}


class StudentPolicy:
    """The student's functions as a filter policy, under LevelDB's name."""

    name: str = BloomFilterPolicy().name  # in a native class the attribute is a descriptor

    def __init__(self, code: ModuleType) -> None:
        self.code = code

    def create_filter(self, keys: Sequence[bytes], /) -> bytes:
        made = self.code.create_filter(list(keys), BITS)
        require(isinstance(made, bytes), f"create_filter returned {shown(made)}, not bytes.")
        return bytes(made)

    def key_may_match(self, key: bytes, filter_data: bytes, /) -> bool:
        return bool(self.code.key_may_match(key, filter_data))


KEYS = 2000


def some_keys(seed: int, number: int) -> list[bytes]:
    """Keys that look random: LevelDB's hash has more false positives on sequential ones."""
    dice = random.Random(seed)
    return [dice.randbytes(6).hex().encode() for _ in range(number)]


PRESENT = some_keys(1, KEYS)
ABSENT = some_keys(2, KEYS)


def in_the_engine(code: ModuleType) -> str:
    """Check that a store works with the student's filters, and that LevelDB reads its files."""
    student = StudentPolicy(code)
    with scratch() as directory:
        ours, theirs = os.path.join(directory, "student"), os.path.join(directory, "leveldb")
        fill(ours, student)
        fill(theirs, BloomFilterPolicy(BITS))
        no = read_back(ours, student, "A store with your filters, read with them")
        reference = read_back(theirs, BloomFilterPolicy(BITS), "A store of the engine")
        require(
            no > reference // 2,
            f"Of {KEYS:,} Gets of absent keys, your filters answered {no:,} with no, LevelDB's "
            f"{reference:,}: yours save too few reads.",
        )
        read_back(ours, BloomFilterPolicy(BITS), "A store with your filters, reopened with lsmkv's")
        read_back(theirs, student, "A store with lsmkv's own filters, reopened with yours")
        for path in files_of(ours, "table"):
            same_table(path, os.path.join(theirs, os.path.basename(path)))
        without = blocks_without_filters(ours, ABSENT)
        content = {key: b"value %d" % n for n, key in enumerate(PRESENT)}
        by_leveldb = require_content_by_leveldb(
            ours, content, "The store with your filters", bloom_filter_bits=BITS
        )
    return (
        f"of {KEYS:,} Gets of absent keys your filters answered {no:,} with no before a block was"
        f" read (LevelDB's: {reference:,}); without filters: {without:,} blocks;"
        f" the table is LevelDB's byte for byte{by_leveldb}"
    )


def fill(directory: str, policy: lsmkv.FilterPolicy) -> None:
    """A store of one table."""
    with lsmkv.DB(directory, create_if_missing=True, filter_policy=policy, compression=None) as db:
        for n, key in enumerate(PRESENT):
            db.put(key, b"value %d" % n)
        db.flush()


def read_back(directory: str, policy: lsmkv.FilterPolicy, what: str) -> int:
    """Read present and absent keys.  Returns how many absent ones a filter rejected."""
    with lsmkv.DB(directory, filter_policy=policy, read_only=True) as db:
        for n, key in enumerate(PRESENT):
            require(
                db.get(key) == b"value %d" % n,
                f"{what}, lost {key!r}: the filter said no to a present key.",
            )
        before = db.stats()
        for key in ABSENT:
            require(db.get(key) is None, f"{what}, found {key!r}, which is absent.")
        return (db.stats() - before).filter_negatives


def same_table(path: str, reference: str) -> None:
    """Check that the tables with the student's filters and with the engine's own are equal."""
    with open(path, "rb") as file:
        got = file.read()
    with open(reference, "rb") as file:
        expected = file.read()
    if got != expected:
        raise CheckFailure(
            difference(got, expected, "the table with your filters", lambda at: "in a filter block")
        )


def drawing() -> str:
    """The filter of two keys, byte by byte."""
    data = BloomFilterPolicy(BITS).create_filter(SAMPLE)
    lines = [f"keys {SAMPLE[0]!r} and {SAMPLE[1]!r}, {BITS} bits a key: {data.hex(' ')}", ""]
    for key in SAMPLE:
        h = leveldb_hash(key)
        positions = BloomFilterPolicy(BITS).probed_positions(h, data)
        delta = (h >> 17 | h << 15) & 0xFFFFFFFF
        lines.append(f"{key!r}  h = {h:08x}  d = {delta:08x}  positions {positions}")
    lines += ["", "offset  byte  bits 7..0  what is set"]
    for at, byte in enumerate(data[:-1]):
        described = meaning(SAMPLE, data, at).partition(", ")[2].removeprefix("set: ")
        described = "" if not byte else described.replace("probe ", "").replace(" of b", " of ")
        lines.append(f"{at:6}    {byte:02x}  {byte:08b}   {described}".rstrip())
    lines.append(f"{len(data) - 1:6}    {data[-1]:02x}  k = {data[-1]}")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=4,
    slug="bloom",
    title="The Bloom filter",
    functions=("bloom_hash", "probes", "create_filter", "key_may_match", "predicted_rate"),
    checks=(
        Check("the hash of a key", hashes),
        Check("the number of probes", numbers_of_probes),
        Check("the size of a filter", sizes),
        Check("the bytes of a filter", filter_bytes),
        Check("no false negatives", no_false_negatives),
        Check("asking a filter", asked_filters),
        Check("the rate of errors", rates),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
