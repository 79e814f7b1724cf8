"""Predictions of labs 1 to 3: numbers and keys, fragments of a log, blocks."""

from __future__ import annotations

import random
from bisect import bisect_left
from typing import Any

from lsmkv.course.given import BLOCK_SIZE, encode_varint
from lsmkv.course.labs.block import built
from lsmkv.course.labs.edits import sort_key
from lsmkv.course.labs.formats import batch_of
from lsmkv.course.labs.log import log_of
from lsmkv.course.predict.task import Question, Task, answer_of
from lsmkv.files import Fragment, Log, LogRecord, make_key, parse_block, parse_key

_HEADER = 7


def keys(dice: random.Random, mark: str) -> Task:
    """Lab 1."""
    number = dice.getrandbits(47) | 1 << 46
    varint = encode_varint(number)
    users = [f"{mark}{end}".encode() for end in ("a", "aa", "b")]
    versions = [
        make_key(user, dice.getrandbits(52) | 1 << 50, kind) for user in users for kind in (1, 0, 1)
    ]
    dice.shuffle(versions)
    ordered = sorted(versions, key=sort_key)
    first, sequence = versions[0], dice.getrandbits(52) | 1 << 50
    turned = int.from_bytes(bytes(byte & 0x7F for byte in varint), "big")

    def first_in_order(code: Any) -> str:
        found = versions[0]
        for other in versions:
            found = other if code.compare_keys(other, found) < 0 else found
        return str(code.unpack_key(found)[1])

    return Task(
        {
            "varint": varint.hex(" "),
            "internal_keys": [key.hex(" ") for key in versions],
            "user_key": users[0].decode(),
            "sequence": sequence,
        },
        (
            Question(
                "Which number is the varint?",
                str(number),
                lambda code: str(code.decode_varint(varint, 0)[0]),
                "The first byte has the lowest seven bits, and its top bit says that more follow.",
                {str(turned): "You took the first byte as the highest, with eight bits for each."},
            ),
            Question(
                "Sort the internal keys. Which sequence has the first of them?",
                str(parse_key(ordered[0])[1]),
                first_in_order,
                "User keys come first, byte by byte; of one user key, the highest sequence is"
                " first.",
                {
                    str(parse_key(min(versions))[1]): "You compared the tags as bytes.",
                    str(parse_key(first)[1]): "You took the first one of the list.",
                },
            ),
            Question(
                "Which eight bytes, in hexadecimal, follow the user key if a value is put under it"
                " with this sequence?",
                answer_of(make_key(users[0], sequence, 1)[-8:].hex(" ").split()),
                lambda code: answer_of(code.pack_key(users[0], sequence, 1)[-8:].hex(" ").split()),
                "The tag is (sequence << 8 | 1) in eight bytes, the lowest first.",
            ),
        ),
    )


def log(dice: random.Random, mark: str) -> Task:
    """Lab 2: a log of eight records, of which a later one is damaged."""
    numbers = [dice.randrange(10**11, 10**12) for _ in range(8)]
    lengths = [dice.randrange(40, 22_000) for _ in numbers]
    lengths[dice.randrange(2, 5)] += 2 * BLOCK_SIZE
    payloads = [
        batch_of(number, [(mark.encode(), bytes(length))])
        for number, length in zip(numbers, lengths, strict=True)
    ]
    lengths = [len(payload) for payload in payloads]
    good = log_of(payloads)
    records = [part for part in Log(good).walk() if isinstance(part, LogRecord)]
    hit = dice.randrange(4, 7)
    fragment = dice.choice([one for one in _fragments(good, records[hit]) if one.length])
    at = fragment.offset + _HEADER + dice.randrange(fragment.length)
    damaged = good[:at] + bytes([good[at] ^ 1 << dice.randrange(8)]) + good[at + 1 :]
    large = max(records, key=lambda record: len(_fragments(good, record)))
    first, *_, last = _fragments(good, large)

    return Task(
        {
            "records": list(zip(numbers, lengths, strict=True)),
            "damaged_byte": at,
            "large_record": numbers[records.index(large)],
        },
        (
            Question(
                "The log holds these batches: the sequence of each, and its bytes. One byte is"
                " damaged. Which sequence has the last record that read_log returns?",
                str(numbers[hit - 1]),
                lambda code: _number_of(code.read_log(damaged)[-1]),
                f"The damaged byte is in the record {numbers[hit]}, and reading stops there.",
                {
                    str(numbers[-1]): "Reading does not continue after damage.",
                    str(numbers[hit]): "A record with a damaged byte is not returned.",
                },
            ),
            Question(
                "Where in the log begin the FIRST and the LAST fragment of the large record, and"
                " how many bytes of data has the LAST one?",
                answer_of((first.offset, last.offset, last.length)),
                lambda code: _ends_of(code, payloads, records.index(large)),
                "Each fragment begins with 7 bytes; a block has 32,768, and fewer than 7 bytes at"
                " its end are zeros.",
                {
                    answer_of((first.offset + _HEADER, last.offset + _HEADER, last.length)): (
                        "That is where their data begin: a header is 7 bytes before."
                    ),
                },
            ),
        ),
        {"lab2.log": damaged},
    )


def _number_of(payload: bytes) -> str:
    return str(int.from_bytes(payload[:8], "little"))


def _fragments(data: bytes, record: LogRecord) -> list[Fragment]:
    """The fragments of a record of a log that is not empty."""
    return [
        part
        for part in Log(data).fragments()
        if part.is_good and record.offset <= part.offset < record.end
    ]


def _ends_of(code: Any, payloads: list[bytes], wanted: int) -> str:
    """Return the begin of a record's first and last fragment, and the number of data bytes in the
    last one, by a student's ``frame``."""
    end = start = 0
    for payload in payloads[: wanted + 1]:
        start, end = end, end + len(code.frame(payload, end % BLOCK_SIZE))
    if BLOCK_SIZE - start % BLOCK_SIZE < _HEADER:
        start += BLOCK_SIZE - start % BLOCK_SIZE
    begin = max((end - 1) // BLOCK_SIZE * BLOCK_SIZE, start)
    return answer_of((start, begin, end - begin - _HEADER))


def block(dice: random.Random, mark: str) -> Task:
    """Lab 3."""
    interval = dice.randrange(3, 6)
    count = interval * 6 + dice.randrange(1, interval)
    names = sorted({f"{mark}{dice.randrange(10**8, 10**9)}" for _ in range(count)})
    entries = [(name.encode(), bytes(dice.randrange(1, 60))) for name in names]
    data = built(entries, interval)
    points = _restart_points(data)
    restarts = [key for key, _ in entries[::interval]]
    at = dice.randrange(2 * interval + 1, 4 * interval)
    target = entries[at][0][:-1] + b"~"
    start = restarts[bisect_left(restarts, target) - 1]
    found = entries[bisect_left([key for key, _ in entries], target)][0]

    return Task(
        {
            "restart_interval": interval,
            "entries": [(key.decode(), len(value)) for key, value in entries],
            "target": target.decode(),
        },
        (
            Question(
                "The block holds these keys, with values of these lengths. At which offsets are its"
                " restart points?",
                answer_of(points),
                lambda code: answer_of(_restart_points(code.build_block(entries, interval))),
                "An entry takes one byte for each of its three lengths, the rest of its key, and"
                " its value; the key at a restart point is whole.",
                {answer_of(points[1:]): "The first restart point is at 0."},
            ),
            Question(
                "A seek for the target bisects the restart points. From which key on does it read"
                " entries?",
                start.decode(),
                lambda code: _read_from(code, data, target, entries, interval),
                f"It is the last restart point whose key is below the target; the seek then reads"
                f" up to {found.decode()}.",
                {found.decode(): "That is the key that it finds, not where it begins to read."},
            ),
        ),
        {"lab3.block": data},
    )


def _restart_points(data: bytes) -> list[int]:
    return list(parse_block(data, "data").restart_points())


def _read_from(
    code: Any, data: bytes, target: bytes, entries: list[tuple[bytes, bytes]], interval: int
) -> str:
    """The last restart point before what a student's ``seek`` finds, unless that is one."""
    found = code.seek(data, target)
    at = [key for key, _ in entries].index(found[0])
    return entries[(at - 1) // interval * interval][0].decode()
