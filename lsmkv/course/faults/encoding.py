"""Faults of labs 1 to 3: numbers and keys, fragments of a log, blocks."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from lsmkv.course.faults.fault import Fault, Files, Function, Subject
from lsmkv.course.faults.made import table_with
from lsmkv.course.given import BLOCK_SIZE, encode_string, encode_varint, masked_crc32c
from lsmkv.course.labs.block import built
from lsmkv.course.labs.edits import sort_key
from lsmkv.course.labs.formats import batch_of, entries_in, frame
from lsmkv.course.labs.log import log_of
from lsmkv.files import Log, LogRecord, make_key

Calls = list[tuple[str, tuple[Any, ...]]]
Entries = Sequence[tuple[bytes, bytes]]
_HEADER = 7

# Lab 1


def _pack(user_key: bytes, sequence: int, kind: int) -> bytes:
    return make_key(user_key, sequence, kind)


def _unpack(internal_key: bytes) -> tuple[bytes, int, int]:
    if len(internal_key) < 8:
        raise ValueError("there is no tag")
    tag = int.from_bytes(internal_key[-8:], "little")
    return internal_key[:-8], tag >> 8, tag & 0xFF


def _by(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _compare(a: bytes, b: bytes) -> int:
    return _by(sort_key(a), sort_key(b))


def _tag(sequence: int, kind: int) -> bytes:
    return make_key(b"", sequence, kind)


def _highest_first(key: bytes) -> bytes:
    groups = encode_varint(len(key))
    turned = bytes(byte | 0x80 for byte in groups[:0:-1]) + bytes([groups[0] & 0x7F])
    return (groups if len(groups) == 1 else turned) + key


def _keys_scene(mark: bytes, dice: random.Random) -> Calls:
    some = [mark + end for end in (b"", b"a", b"ab", b"\0a", b"b" * 119, b"c" * 300)]
    low, high = dice.randrange(1, 200), dice.randrange(1 << 40, 1 << 50)
    packed = [make_key(key, n, kind) for key in some[:4] for n, kind in ((low, 1), (high, 0))]
    calls: Calls = [("pack_key", (key, n, n % 2)) for key in some[:3] for n in (low, high)]
    calls += [("unpack_key", (key,)) for key in packed]
    calls += [("compare_keys", (a, b)) for a, b in pairwise(packed)]
    pairs = [(mark, n) for n in (2, 1, 256)]
    some_keys = [packed[2], make_key(b"~", 5, 1), *(make_key(*pair, 1) for pair in pairs)]
    calls += [("compare_keys", (a, b)) for a, b in pairwise(some_keys)]
    return calls + [("encode_string", (key,)) for key in some]


def _keys_files(code: Mapping[str, Function], mark: bytes) -> Files:
    batch = bytes(8) + (4).to_bytes(4, "little")
    for end in (b"", b"a", b"b" * 119, b"c" * 300):
        batch += b"\1" + code["encode_string"](mark + end) + encode_string(b"v")
    keys = [
        code["pack_key"](mark + end, n, n % 2)
        for end in (b"", b"a", b"ab", b"b")
        for n in (3, 300, 2**40, 2**40 + 2)
    ]
    keys.sort(key=functools.cmp_to_key(code["compare_keys"]))
    return {
        "fault1.log": frame(batch, 0),
        "fault1.ldb": table_with([built([(key, b"v") for key in keys], 16)]),
    }


KEYS = Subject(
    {
        "pack_key": _pack,
        "unpack_key": _unpack,
        "compare_keys": _compare,
        "encode_string": encode_string,
    },
    {
        "pack_key": "user_key, sequence, kind",
        "unpack_key": "internal_key",
        "compare_keys": "internal key a, internal key b",
        "encode_string": "bytes; it writes their length as a varint, and then them",
    },
    (
        Fault(
            "The tag is written with its highest byte first.",
            "pack_key",
            lambda key, n, kind: key + _tag(n, kind)[::-1],
            lambda m: (m, 0, 1),
        ),
        Fault(
            "A sequence keeps only 32 bits.",
            "pack_key",
            lambda key, n, kind: _pack(key, n & 0xFFFFFFFF, kind),
            lambda m: (m, 2**32, 0),
        ),
        Fault(
            "A deletion is written as a value.",
            "pack_key",
            lambda key, n, kind: _pack(key, n, 1),
            lambda m: (m, 0, 0),
        ),
        Fault(
            "The user key ends at its first zero byte.",
            "unpack_key",
            lambda key: (key[:-8].partition(b"\0")[0], *_unpack(key)[1:]),
            lambda m: (m + b"\0" + _tag(0, 0),),
        ),
        Fault(
            "A sequence is read without its highest byte.",
            "unpack_key",
            lambda key: (key[:-8], _unpack(key)[1] & (1 << 48) - 1, key[-8]),
            lambda m: (m + _tag(1 << 48, 0),),
        ),
        Fault(
            "Of one user key, the oldest version comes first.",
            "compare_keys",
            lambda a, b: _compare(b, a) if a[:-8] == b[:-8] else _compare(a, b),
            lambda m: (m + _tag(0, 0), m + _tag(0, 1)),
        ),
        Fault(
            "Shorter user keys come first, whatever their bytes.",
            "compare_keys",
            lambda a, b: _by(len(a), len(b)) or _compare(a, b),
            lambda m: (m + _tag(0, 0), b"~" + _tag(0, 0)),
        ),
        Fault(
            "Internal keys are compared as bytes, tags included.",
            "compare_keys",
            _by,
            lambda m: (m + _tag(0, 0), m + _tag(0, 1)),
        ),
        Fault(
            "A length of 127 takes two bytes.",
            "encode_string",
            lambda key: b"\xff\x00" + key if len(key) == 127 else encode_string(key),
            lambda m: (m.ljust(127, b"."),),
        ),
        Fault(
            "The groups of seven bits of a length are in the wrong order.",
            "encode_string",
            _highest_first,
            lambda m: (m.ljust(128, b"."),),
        ),
    ),
    _keys_scene,
    _keys_files,
)

# Lab 2


def _fragment(kind: int, data: bytes, crc: int | None = None) -> bytes:
    crc = masked_crc32c(bytes([kind]) + data) if crc is None else crc
    return crc.to_bytes(4, "little") + len(data).to_bytes(2, "little") + bytes([kind]) + data


def _framed(payload: bytes, offset: int, **how: Any) -> bytes:
    """A record with a difference: ``least``, the bytes that a header needs; ``types``, those of
    fragments; ``fills`` the end of a block with zeros; ``turns`` lengths; ``typed``: the checksum
    covers the type."""
    out = b""
    at = 0
    is_first = True
    while is_first or at < len(payload):
        left = BLOCK_SIZE - offset
        if left < how.get("least", _HEADER):
            out += bytes(left) if how.get("fills", True) else b""
            offset, left = 0, BLOCK_SIZE
        data = payload[at : at + max(0, left - _HEADER)]
        at += len(data)
        is_last = at == len(payload)
        kind = how.get("types", (3, 2, 4, 1))[is_first + 2 * is_last]
        crc = None if how.get("typed", True) else masked_crc32c(data)
        made = _fragment(kind, data, crc)
        if how.get("turns"):
            made = made[:4] + made[5:3:-1] + made[6:]
        out += made
        offset = (offset + len(made)) % BLOCK_SIZE
        is_first = False
    return out


def _spoiled(payloads: Sequence[bytes], changes: Sequence[tuple[int, int]], end: int) -> bytes:
    log = bytearray(log_of(list(payloads)))
    for at, byte in changes:
        log[at] = byte
    return bytes(log[:end])


def _read(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    for part in Log(data).walk():
        if not isinstance(part, LogRecord):
            break
        found.append(part.payload)
    return found


def _read_log(
    payloads: Sequence[bytes], changes: Sequence[tuple[int, int]], end: int
) -> list[bytes]:
    return _read(_spoiled(payloads, changes, end))


def _read_with(**how: bool) -> Function:
    """A reader with a difference: ``blind`` to checksums, ``eager`` for records without their last
    fragment, ``lenient`` with types, ``stubborn`` after damage."""

    def read(
        payloads: Sequence[bytes], changes: Sequence[tuple[int, int]], end: int
    ) -> list[bytes]:
        data = _spoiled(payloads, changes, end)
        found: list[bytes] = []
        parts: bytes | None = None
        at = 0
        while at + _HEADER <= len(data):
            if BLOCK_SIZE - at % BLOCK_SIZE < _HEADER:
                at += BLOCK_SIZE - at % BLOCK_SIZE
                continue
            length = int.from_bytes(data[at + 4 : at + 6], "little")
            kind, part = data[at + 6], data[at + _HEADER : at + _HEADER + length]
            is_good = len(part) == length and kind in (1, 2, 3, 4)
            crc = int.from_bytes(data[at : at + 4], "little")
            if not how.get("blind"):
                is_good = is_good and crc == masked_crc32c(bytes([kind]) + part)
            at += _HEADER + length
            if not is_good or (kind > 2 and parts is None and not how.get("lenient")):
                parts = None
                if how.get("stubborn"):
                    continue
                break
            parts = part if kind < 3 else (parts or b"") + part
            if kind in (1, 4):
                found.append(parts)
                parts = None
        return found + ([parts] if parts is not None and how.get("eager") else [])

    return read


def _log_scene(mark: bytes, dice: random.Random) -> Calls:
    payload = mark * dice.randrange(2, 5)
    offsets = (0, BLOCK_SIZE - 7, BLOCK_SIZE - 6, BLOCK_SIZE - 20)
    calls: Calls = [("frame", (payload, offset)) for offset in offsets]
    long = mark.ljust(BLOCK_SIZE, b".")
    changed = dice.randrange(_HEADER, _HEADER + len(payload))
    return [
        *calls,
        ("read_log", ([payload, mark], [], 999)),
        ("read_log", ([payload, mark], [(changed, 33)], 999)),
        ("read_log", ([payload, mark], [], 2 * _HEADER + len(payload) + 3)),
        ("read_log", ([mark, long], [], BLOCK_SIZE)),
        ("read_log", ([long, mark], [(_HEADER, 33)], 2 * BLOCK_SIZE)),
        ("read_log", ([mark, mark], [(0, 0)], 999)),
    ]


def _batch(mark: bytes, size: int) -> bytes:
    """A batch of this many bytes, at least 40."""
    batch = batch_of(1, [(mark, b"")])
    while len(batch) != size:
        value = batch_of(1, [(mark, b"")])
        length = size - len(value) - (len(encode_varint(size)) - 1)
        batch = batch_of(1, [(mark, b"." * length)])
        size = len(batch)
    return batch


def _log_files(code: Mapping[str, Function], mark: bytes) -> Files:
    log = b""
    # The third record leaves exactly seven bytes of a block, and the fifth one five.
    for size in (40, 32_660, 40, 40, 32_709, 40_000, 40):
        log += code["frame"](_batch(mark, size), len(log) % BLOCK_SIZE)
    return {"fault2.log": log}


LOG = Subject(
    {"frame": _framed, "read_log": _read_log},
    {
        "frame": "payload, offset in its block",
        "read_log": "payloads of a good log, [(offset, byte) to change], the bytes that are left",
    },
    (
        Fault(
            "Exactly seven bytes at the end of a block are filled with zeros.",
            "frame",
            lambda payload, offset: _framed(payload, offset, least=8),
            lambda m: (m, BLOCK_SIZE - 7),
        ),
        Fault(
            "The end of a block is left without its zeros.",
            "frame",
            lambda payload, offset: _framed(payload, offset, fills=False),
            lambda m: (m, BLOCK_SIZE - 6),
        ),
        Fault(
            "The length is written with its highest byte first.",
            "frame",
            lambda payload, offset: _framed(payload, offset, turns=True),
            lambda m: (m, 0),
        ),
        Fault(
            "The checksum leaves out the type.",
            "frame",
            lambda payload, offset: _framed(payload, offset, typed=False),
            lambda m: (m, 0),
        ),
        Fault(
            "The last fragment of a divided record has the type MIDDLE.",
            "frame",
            lambda payload, offset: _framed(payload, offset, types=(3, 2, 3, 1)),
            lambda m: (m, BLOCK_SIZE - 8),
        ),
        Fault(
            "The first fragment of a divided record has the type FULL.",
            "frame",
            lambda payload, offset: _framed(payload, offset, types=(3, 1, 4, 1)),
            lambda m: (m, BLOCK_SIZE - 8),
        ),
        Fault(
            "The checksum is not looked at.",
            "read_log",
            _read_with(blind=True),
            lambda m: ([m], [(0, 0)], 15),
        ),
        Fault(
            "A record without its last fragment is returned.",
            "read_log",
            _read_with(eager=True),
            lambda m: ([m.ljust(BLOCK_SIZE - 6, b".")], [], BLOCK_SIZE),
        ),
        Fault(
            "A LAST fragment without its FIRST is taken for a record, since reading continues"
            " after damage.",
            "read_log",
            _read_with(lenient=True, stubborn=True),
            lambda m: ([m, b""], [(0, 0)], 22),
        ),
        Fault(
            "Reading continues after damage.",
            "read_log",
            _read_with(stubborn=True),
            lambda m: ([m, b""], [(0, 0)], 22),
        ),
    ),
    _log_scene,
    _log_files,
)

# Lab 3


def _build(entries: Entries, interval: int) -> bytes:
    return built(list(entries), interval)


def _read_block(entries: Entries, interval: int) -> list[tuple[bytes, bytes]]:
    return [(one.key, one.value) for one in entries_in(built(list(entries), interval))]


def _seek(entries: Entries, interval: int, target: bytes) -> tuple[bytes, bytes] | None:
    return next((one for one in entries if one[0] >= target), None)


def _shared(a: bytes, b: bytes) -> int:
    return next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def _build_with(entries: Entries, interval: int, **how: Any) -> bytes:
    """A block with a difference: ``late`` restarts, ``most`` that is shared, ``whole`` restarts,
    ``swapped`` rest and value."""
    out = b""
    points: list[int] = []
    before = b""
    for at, (key, value) in enumerate(entries):
        is_restart = at % interval == 0
        if is_restart:
            points.append(len(out))
        is_whole = (
            (is_restart and how.get("whole", True))
            if not how.get("late")
            else (at == 0 or (at > 1 and (at - 1) % interval == 0))
        )
        shared = 0 if is_whole else min(_shared(before, key), how.get("most", 1 << 30))
        parts = (key[shared:], value)
        out += encode_varint(shared) + encode_varint(len(parts[0])) + encode_varint(len(value))
        out += b"".join(parts[::-1] if how.get("swapped") else parts)
        before = key
    points = points or [0]
    order = "big" if how.get("turned") else "little"
    ends = b"".join([point.to_bytes(4, order) for point in points])  # type: ignore[arg-type]
    fewer: int = how.get("fewer", 0)
    return out + ends + (len(points) - fewer).to_bytes(4, "little")


def _varied(**how: Any) -> Function:
    return lambda entries, interval: _build_with(entries, interval, **how)


def _seek_in_one(entries: Entries, interval: int, target: bytes) -> tuple[bytes, bytes] | None:
    starts = [at for at in range(0, len(entries), interval) if entries[at][0] < target] or [0]
    some = entries[starts[-1] : starts[-1] + interval]
    return next((one for one in some if one[0] >= target), None)


def _block_scene(mark: bytes, dice: random.Random) -> Calls:
    entries = [(mark + b"%d" % n, b"v%d" % n) for n in sorted(dice.sample(range(10, 99), 7))]
    entries.append((mark + b"a", b""))
    targets = (entries[0][0], entries[2][0] + b"~", entries[5][0], mark, mark + b"b")
    calls: Calls = [("build_block", (entries, 3)), ("read_block", (entries, 3))]
    return calls + [("seek", (entries, 3, target)) for target in targets]


def _block_files(code: Mapping[str, Function], mark: bytes) -> Files:
    entries = [(make_key(mark + b"%02d" % n, n + 1, 1), b"value %d" % n) for n in range(20)]
    return {"fault3.ldb": table_with([code["build_block"](entries, 4)])}


def _last_left_out(entries: Entries, interval: int) -> list[tuple[bytes, bytes]]:
    return _read_block(entries, interval)[:-1]


def _rest_alone(entries: Entries, interval: int) -> list[tuple[bytes, bytes]]:
    before = b""
    found: list[tuple[bytes, bytes]] = []
    for at, (key, value) in enumerate(entries):
        found.append((key if at % interval == 0 else key[_shared(before, key) :], value))
        before = key
    return found


BLOCK = Subject(
    {"build_block": _build, "read_block": _read_block, "seek": _seek},
    {
        "build_block": "[(key, value)], restart interval",
        "read_block": "[(key, value)] of a good block, its restart interval",
        "seek": "[(key, value)] of a good block, its restart interval, target",
    },
    (
        Fault(
            "Restart points are whole one entry too late.",
            "build_block",
            _varied(late=True),
            lambda m: ([(m, b""), (m + b"a", b"")], 1),
        ),
        Fault(
            "No more than four bytes are shared.",
            "build_block",
            _varied(most=4),
            lambda m: ([(m, b""), (m + b"a", b"")], 2),
        ),
        Fault(
            "Keys at restart points also share bytes.",
            "build_block",
            _varied(whole=False),
            lambda m: ([(m, b""), (m + b"a", b"")], 1),
        ),
        Fault(
            "A value is before the rest of its key.",
            "build_block",
            _varied(swapped=True),
            lambda m: ([(m, b"v")], 1),
        ),
        Fault(
            "Restart points are written with the highest byte first.",
            "build_block",
            _varied(turned=True),
            lambda m: ([(m, b""), (m + b"a", b"")], 1),
        ),
        Fault(
            "The number of restart points is one too low.",
            "build_block",
            _varied(fewer=1),
            lambda m: ([(m, b"")], 1),
        ),
        Fault(
            "Keys are read without the bytes that they share.",
            "read_block",
            _rest_alone,
            lambda m: ([(m, b""), (m + b"a", b"")], 2),
        ),
        Fault(
            "The last entry is not read.", "read_block", _last_left_out, lambda m: ([(m, b"")], 1)
        ),
        Fault(
            "Entries without a value are not read.",
            "read_block",
            lambda entries, interval: [one for one in _read_block(entries, interval) if one[1]],
            lambda m: ([(m, b"")], 1),
        ),
        Fault(
            "Seek finds only the target itself.",
            "seek",
            lambda entries, interval, target: next((e for e in entries if e[0] == target), None),
            lambda m: ([(m, b"")], 1, b""),
        ),
        Fault(
            "Seek finds only keys above the target.",
            "seek",
            lambda entries, interval, target: next((e for e in entries if e[0] > target), None),
            lambda m: ([(m, b"")], 1, m),
        ),
        Fault(
            "Seek reads no further than the next restart point.",
            "seek",
            _seek_in_one,
            lambda m: ([(b"", b""), (m, b"")], 1, b"a"),
        ),
    ),
    _block_scene,
    _block_files,
)
