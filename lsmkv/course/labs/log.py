"""Lab 2: the log, which a store recovers."""

from __future__ import annotations

import functools
import random
from types import ModuleType

import lsmkv
from lsmkv.course.failure import CheckFailure, require, require_bytes, shown
from lsmkv.course.given import BLOCK_SIZE, crc32c, masked_crc32c
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.formats import batch_of, frame
from lsmkv.course.labs.temporary_stores import (
    files_of,
    require_content,
    require_content_by_leveldb,
    scratch,
    store_with_log,
)
from lsmkv.files import Damage, Log

HEADER_SIZE = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
TYPES = {FULL: "FULL", FIRST: "FIRST", MIDDLE: "MIDDLE", LAST: "LAST"}
PLACES: tuple[tuple[int, int, str], ...] = (
    (3, 0, "It fits into the block, so it is one fragment, FULL."),
    (0, 0, "An empty record is a FULL fragment without data."),
    (BLOCK_SIZE - HEADER_SIZE, 0, "It fills the block exactly: one fragment, FULL."),
    (BLOCK_SIZE - HEADER_SIZE + 1, 0, "It is one byte too long for the block: FIRST, then LAST."),
    (3 * BLOCK_SIZE, 0, "It fills more than two blocks: FIRST, MIDDLE, ..., LAST."),
    (30, BLOCK_SIZE - 20, "It begins near the end of its block, and continues in the next one."),
    (10, BLOCK_SIZE - 17, "It ends exactly where its block does."),
    (10, BLOCK_SIZE - 6, "No header fits into the last six bytes: they are zeros."),
    (10, BLOCK_SIZE - 1, "No header fits into the last byte: it is zero."),
    (10, BLOCK_SIZE - 7, "A header fits into the last seven bytes: FIRST, with no data."),
    (0, BLOCK_SIZE - 7, "An empty record fits into the last seven bytes: FULL."),
)
"""Lengths of records, their offsets, and the consequences."""


def payload(length: int) -> bytes:
    """A record of this length, always the same."""
    return random.Random(length).randbytes(length)


def sealed(code: ModuleType) -> str:
    """Masked checksums."""
    for kind, data in ((FULL, b""), (FULL, b"abc"), (LAST, b"abc"), (FIRST, bytes(40))):
        got = code.masked_checksum(kind, data)
        whole = bytes([kind]) + data
        expected = masked_crc32c(whole)
        call = f"masked_checksum({kind}, {shown(data)})"
        require(isinstance(got, int), f"{call} must be a number, not {shown(got)}.")
        known = {
            crc32c(whole): "That is the CRC itself: mask it.",
            masked_crc32c(data): "That is the checksum of the data: the type byte comes first.",
            masked_crc32c(
                data + bytes([kind])
            ): "The type byte comes before the data, not after it.",
        }
        hint = known.get(got, "Rotate the CRC right by 15 bits, and add 0xa282ead8.")
        if got != expected and got & 0xFFFFFFFF == expected:
            hint = "Keep 32 bits after the sum: & 0xffffffff."
        require(
            got == expected,
            f"{call} must be {expected:#010x}, but your code returned {got:#010x}.\n{hint}",
        )
    return "4 fragments"


def framed(code: ModuleType) -> str:
    """Records, byte for byte, at different places in a block."""
    for length, offset, hint in PLACES:
        expected = frame(payload(length), offset)
        require_bytes(
            code.frame(payload(length), offset),
            expected,
            f"the record of {length:,} bytes at offset {offset:,} of its block",
            functools.partial(meaning, expected, offset),
            hint,
        )
    return f"{len(PLACES)} records"


def meaning(data: bytes, offset: int, wanted: int) -> str:
    """The meaning of a byte in a record's frame."""
    return next(
        f"{described}, byte {wanted - start}" if size > 1 else described
        for start, size, described in parts(data, offset)
        if start <= wanted < start + size
    )


def parts(data: bytes, offset: int) -> list[tuple[int, int, str]]:
    """The parts of good frames from an offset in a block: offset, size, and description."""
    found: list[tuple[int, int, str]] = []
    at = 0
    while at < len(data):
        left = BLOCK_SIZE - (offset + at) % BLOCK_SIZE
        if left < HEADER_SIZE:
            found.append((at, left, "zeros at the end of the block"))
            at += left
            continue
        length = int.from_bytes(data[at + 4 : at + 6], "little")
        kind = data[at + 6]
        found += [
            (at, 4, "masked checksum of type and data"),
            (at + 4, 2, f"length, {length}"),
            (at + 6, 1, f"type {kind}, {TYPES[kind]}"),
            (at + HEADER_SIZE, length, "data"),
        ]
        at += HEADER_SIZE + length
    return [part for part in found if part[1] > 0]


def log_of(payloads: list[bytes]) -> bytes:
    """The engine's log of some records."""
    log = b""
    for one in payloads:
        log += frame(one, len(log) % BLOCK_SIZE)
    return log


def some_payloads(seed: int) -> list[bytes]:
    """Records of a log of several blocks."""
    dice = random.Random(seed)
    return [dice.randbytes(dice.choice((0, 5, 300, 9000, 40000, 70000))) for _ in range(20)]


def require_records(got: object, expected: list[bytes], what: str, hint: str) -> None:
    """Fail unless the records that were read are these."""
    require(isinstance(got, list), f"{what}: read_log must return a list, not {shown(got)}.")
    assert isinstance(got, list)
    for number, (one, other) in enumerate(zip(got, expected, strict=False)):
        require(
            one == other,
            f"{what}: record {number} must be {shown(other)} ({len(other):,} bytes), but your "
            f"code returned {shown(one)}.\n{hint}",
        )
    require(
        len(got) == len(expected),
        f"{what}: {len(expected)} records are complete, but your code returned {len(got)}.\n{hint}",
    )


def reading(code: ModuleType) -> str:
    """Logs of one record at each kind of place, and longer logs."""
    for length, offset, hint in PLACES:
        before = [payload(offset - HEADER_SIZE)] if offset else []
        records = [*before, payload(length), b"behind it"]
        what = f"A log with a record of {length:,} bytes at offset {offset:,}"
        require_records(code.read_log(log_of(records)), records, what, hint)
    for seed in range(5):
        records = some_payloads(seed)
        require_records(
            code.read_log(log_of(records)),
            records,
            f"A log of {len(records)} records",
            "FIRST begins a record, MIDDLE continues it, LAST ends it; a block's last bytes may "
            "be zeros that belong to no fragment.",
        )
    return f"{len(PLACES) + 5} logs"


def torn(code: ModuleType) -> str:
    """Cut a log anywhere: the records before the cut must be read, and no others."""
    records = [b"one", b"", b"three", payload(40000), b"five"]
    log = log_of(records)
    ends = [len(log_of(records[:number])) for number in range(len(records) + 1)]
    cuts = [*range(64), *(ends[3] + at for at in (1, 7, 100)), BLOCK_SIZE, BLOCK_SIZE + 3]
    cuts += [end - back for end in ends[4:] for back in (0, 1, 3)]
    for cut in sorted(set(cuts)):
        whole = sum(end <= cut for end in ends[1:])
        require_records(
            code.read_log(log[:cut]),
            records[:whole],
            f"A log of which {cut:,} of {len(log):,} bytes were written before a crash",
            "A record without its last fragment is dropped, and so is a fragment with incomplete "
            "header or data. Neither is an error.",
        )
    zeros = log[: ends[3]] + bytes(5000)
    hint = "0 is not a valid type: zeros after the last record are space that was never used."
    require_records(code.read_log(zeros), records[:3], "A log that ends in zeros", hint)
    return f"{len(set(cuts))} cuts, and a log that ends in zeros"


def damaged(code: ModuleType) -> str:
    """Damage a byte of a log: the records before it must be read, and no wrong one."""
    records = [b"one", b"two", b"three", b"four"]
    log = log_of(records)
    ends = [len(log_of(records[:number])) for number in range(len(records) + 1)]
    for at in range(len(log)):
        bad = log[:at] + bytes([log[at] ^ 0x20]) + log[at + 1 :]
        whole = sum(end <= at for end in ends[1:])
        fragment = parts(log, 0)
        described = next(
            described for start, size, described in fragment if start <= at < start + size
        )
        if described.startswith("length"):
            begin = next(
                start for start, _, words in fragment if start <= at and words == described
            )
            length = int.from_bytes(bad[begin : begin + 2], "little")
            past = length - (len(log) - begin - 3)
            described += f", and now {length:,}" + (
                f": {past:,} bytes too many" if past > 0 else ""
            )
        require_records(
            code.read_log(bad),
            records[:whole],
            f"A log whose byte {at} ({described}) is damaged",
            "Check the checksum of type and data before you use a fragment, and stop at a bad one.",
        )
    for bad, what, hint in NEVER_WRITTEN:
        require_records(code.read_log(bad), bad_after(bad), what, hint)
    return f"{len(log)} damaged logs, and {len(NEVER_WRITTEN)} with fragments that none writes"


def fragment_of(kind: int, data: bytes) -> bytes:
    """A fragment of any type with the right checksum."""
    header = masked_crc32c(bytes([kind]) + data).to_bytes(4, "little")
    return header + len(data).to_bytes(2, "little") + bytes([kind]) + data


def bad_after(log: bytes) -> list[bytes]:
    """The only record of one of the logs below, before what no writer writes."""
    return [log[HEADER_SIZE : HEADER_SIZE + int.from_bytes(log[4:6], "little")]]


_NEAR_THE_END = frame(bytes(BLOCK_SIZE - 2 * HEADER_SIZE - 20), 0)

NEVER_WRITTEN: tuple[tuple[bytes, str, str], ...] = (
    *(
        (
            frame(b"one", 0) + fragment_of(kind, b"never written"),
            f"A log with a fragment of type {kind} after its record, and the right checksum",
            f"{kind} is none of the four types: look at the type before you use a fragment.",
        )
        for kind in (5, 129)
    ),
    *(
        (
            frame(b"one", 0) + b"".join(fragment_of(kind, b"never written") for kind in kinds),
            f"A log with {words} after its record, and no FIRST",
            f"{words} without a FIRST before it belongs to no record, so it is damage: the record"
            " that you return was never written.",
        )
        for kinds, words in (((LAST,), "LAST"), ((MIDDLE, LAST), "MIDDLE and LAST"))
    ),
    (
        _NEAR_THE_END + fragment_of(FULL, b"it crosses the end of its block"),
        "A log with a fragment whose data reach beyond the end of its block",
        "No fragment continues in the next block, whatever its checksum says: its data must end"
        " within its block.",
    ),
)
"""Logs of one record and then fragments with right checksums that no writer makes."""


def in_the_engine(code: ModuleType) -> str:
    """Recover the student's log, also a torn one, in a store, and read a store's log by the
    student's code."""
    dice = random.Random(5)
    content = {
        b"key%02d" % n: dice.randbytes(dice.choice((10, 800, 33000, 70000))) for n in range(40)
    }
    log = b""
    for number, (key, value) in enumerate(content.items(), 1):
        made = code.frame(batch_of(number, [(key, value)]), len(log) % BLOCK_SIZE)
        require(isinstance(made, bytes), f"frame must return bytes, not {shown(made)}.")
        log += made
    expected: dict[bytes, bytes | None] = dict(content)
    by_leveldb = recover(log, expected, "A store with your log")
    expected[b"key39"] = None
    recover(log[:-3], expected, "A store with your log, of which the last 3 bytes are missing")
    with scratch() as directory:
        with lsmkv.DB(directory, create_if_missing=True) as db:
            for key, value in content.items():
                db.put(key, value)
        (path,) = files_of(directory, "log")
        with open(path, "rb") as file:
            written = file.read()
        with Log(path) as opened:
            records = [record.payload for record in opened.records()]
        require_records(
            code.read_log(written), records, "The log of a store", "See the checks above."
        )
    return (
        f"a store recovered {len(content)} batches from your log{by_leveldb}; it dropped a torn "
        f"one; you read {len(records)} records of a log that a store wrote"
    )


def recover(log: bytes, content: dict[bytes, bytes | None], what: str) -> str:
    """Check that a store with this log has this content, for lsmkv and for LevelDB."""
    with scratch() as directory:
        store_with_log(directory, log)
        (path,) = files_of(directory, "log")
        with Log(path) as opened:
            found = list(opened.walk())
        damage = [part for part in found if isinstance(part, Damage)]
        if damage and damage[-1] is found[-1] and damage[-1].kind == "torn":
            damage.pop()
        if damage:
            raise CheckFailure(
                f"{what}: the engine's reader finds damage at offset {damage[0].offset:,}:"
                f" {damage[0].reason}."
            )
        require_content(directory, content, what)
        return require_content_by_leveldb(directory, content, what)


def drawing() -> str:
    """Three records around the end of a block, part by part."""
    first = BLOCK_SIZE - HEADER_SIZE - 30
    log = log_of([bytes(first), b"ant", b"antelope and bee"])
    begin = HEADER_SIZE + first
    data = log[begin:]
    lines = [
        f"two records, 'ant' and 'antelope and bee', from offset {begin:,} on",
        "",
        f"{'offset':>6}  {'bytes':<38}  what",
    ]
    for start, size, described in parts(data, begin):
        if (begin + start) % BLOCK_SIZE == 0:
            lines.append(f"--- the next block, from offset {begin + start:,} on ---")
        shown_bytes = data[start : start + size].hex(" ")
        text = data[start : start + size].decode("latin-1") if described == "data" else ""
        what = f"data, {text!r}" if text else described
        lines.append(f"{begin + start:6}  {shown_bytes:<38}  {what}")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=2,
    slug="log",
    title="The log",
    functions=("masked_checksum", "frame", "read_log"),
    checks=(
        Check("the checksum", sealed),
        Check("the bytes of records", framed),
        Check("reading a log", reading),
        Check("torn logs", torn),
        Check("damaged logs", damaged),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
