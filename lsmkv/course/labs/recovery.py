"""Lab 10: recovery, from the logs that a crash has left to a store that can continue."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from types import ModuleType

import lsmkv
from lsmkv.course.failure import require, require_equal, shown
from lsmkv.course.given import BLOCK_SIZE, Directory, Operation, decode_batch
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.committing import commit_plan, committing, failing, plan_for
from lsmkv.course.labs.formats import batch_of, frame
from lsmkv.course.labs.log import parts
from lsmkv.course.labs.power_cuts import PATH
from lsmkv.course.labs.recovering import (
    BAD_BEGINNING,
    Found,
    Pieces,
    batches,
    by_the_engine,
    by_the_student,
    crash_states,
    engine_replays,
    needed_logs,
    pieces_of_log,
    replayed_by_the_student,
    require_found,
    require_replayed,
    why_missing,
)
from lsmkv.course.labs.temporary_stores import (
    require_content,
    require_content_by_leveldb,
    scratch,
)
from lsmkv.testing import CrashState, RecordingEnv

POINTS = 20
"""Moments of a run at which the power is cut."""

ON_DISK = 4
"""States that LevelDB opens, and that the student recovers, on the real disk."""

LOGS: tuple[tuple[tuple[str, ...], int, int, list[str], str], ...] = (
    (("000003.log", "MANIFEST-000002"), 3, 0, ["000003.log"], "The log with that number counts."),
    (
        ("000012.log", "000005.log", "000007.log", "000009.log"),
        7,
        0,
        ["000007.log", "000009.log", "000012.log"],
        "Logs below the log number are in tables; all others count, the oldest first.",
    ),
    (
        ("1000000.log", "999999.log", "999998.log"),
        999999,
        0,
        ["999999.log", "1000000.log"],
        "The order is that of the numbers, not that of the names.",
    ),
    (
        ("000004.log", "000005.log", "000008.log"),
        8,
        4,
        ["000004.log", "000008.log"],
        "The log with the previous log number also counts, if there is one.",
    ),
    (
        ("000007.log", "000006.log", "000000.log"),
        7,
        0,
        ["000000.log", "000007.log"],
        "A log counts if its number is the previous log number, even if that is 0: there is no"
        " further rule.",
    ),
    (("000003.log",), 0, 0, ["000003.log"], "A log number of 0 is that of a store with no table."),
    (
        ("LOG", "LOG.old", "LOCK", "CURRENT", "MANIFEST-000009", "000009.ldb", "000009.dbtmp"),
        1,
        0,
        [],
        "LOG contains messages for people, and no writes. Logs end in .log.",
    ),
    (
        ("a.log", "000006.log.bak", "lost", "000006.log"),
        6,
        0,
        ["000006.log"],
        "A log is NNNNNN.log.",
    ),
)
"""Names, log number, previous log number, the logs to replay, and why."""


def choosing(code: ModuleType) -> str:
    """Check the choice of the logs to replay, and their order."""
    for names, log_number, prev_log_number, expected, hint in LOGS:
        call = f"logs_to_replay({list(names)}, {log_number}, {prev_log_number})"
        got = code.logs_to_replay(list(names), log_number, prev_log_number)
        require_equal(got, expected, call, hint)
    return f"{len(LOGS)} directories"


def torn_tails(code: ModuleType) -> str:
    """Bad bytes at a log's end, and in its middle."""
    number = 0
    for log, offset, what, hint in bad_logs():
        pieces, damage = pieces_of_log(log)
        torn = damage is None or damage.torn
        assert damage is None or damage.offset == offset, "the log is bad from there on"
        assert pieces, "the engine reads records of each log"
        number += 1
        got = code.is_torn_tail(log, offset)
        after = f"{'no' if torn else 'a'} record begins after that offset"
        require(
            got is torn,
            f"{what}: is_torn_tail(log, {offset:,}) must be {torn}, since {after}, but your code"
            f" returned {shown(got)}.\n{hint}",
        )
    return f"{number} logs"


def bad_logs() -> list[tuple[bytes, int, str, str]]:
    """Logs that are bad from an offset on, what is wrong, and a hint."""
    records = [batch for batch in batches(1, 2, 3, 4) if batch is not None]
    starts = [0]
    log = b""
    for record in records:
        log += frame(record, len(log))
        starts.append(len(log))
    found: list[tuple[bytes, int, str, str]] = []
    cut_hint = "Where the bytes end, nothing can follow."
    for cut in range(starts[3] + 1, starts[4]):
        found.append((log[:cut], starts[3], f"A log of 4 records, cut at byte {cut}", cut_hint))
        zeros = log[:cut] + bytes(starts[4] - cut + 600)
        hint = "Zeros are not a record: 0 is not a valid type."
        found.append((zeros, starts[3], f"A log of 4 records, with zeros from byte {cut} on", hint))
    for index, start in enumerate(starts[1:-1], 1):
        for at in range(start, starts[index + 1]):
            bad = log[:at] + bytes([log[at] ^ 0x41]) + log[at + 1 :]
            what = f"A log of 4 records, with a wrong byte {at} in record {index + 1}"
            hint = (
                "Its length may be what is wrong, so try each byte after the offset: is there a"
                " fragment of type FULL or FIRST whose data ends within the block and the file, and"
                " whose checksum is right?"
            )
            found.append((bad, start, what, hint))
    return found + [(*one, hint) for one, hint in long_logs()]


def long_logs() -> list[tuple[tuple[bytes, int, str], str]]:
    """Logs of more than one block that are bad from an offset on."""
    first = frame(b"one", 0)
    offset = len(first)
    long = frame(bytes(range(1, 251)) * 200, offset)
    behind = frame(b"behind", (offset + len(long)) % BLOCK_SIZE)
    last = (offset + len(long)) // BLOCK_SIZE * BLOCK_SIZE
    bad_first = first + long[:100] + b"?" + long[101:]
    bad_block = first + b"?" * (last - offset)
    across = bad_block[:-20] + frame(b"across the end of a block", 0)
    good_first = "The offset is that of the bad record, and its good FIRST is a part of it"
    return [
        (
            (bad_first, offset, "A long record whose FIRST fragment is bad"),
            "A MIDDLE or LAST fragment without its FIRST is the rest of the bad record, and"
            " not a record.",
        ),
        (
            (bad_first + behind, offset, "A long record with a bad FIRST, and a record after it"),
            "The next record may be in another block.",
        ),
        (
            (bad_block + frame(b"behind", 0), offset, "A block of bad bytes, and then a record"),
            "Continue to the end of the file, block by block.",
        ),
        (
            (
                first + b"?" * 30 + frame(bytes(90000), offset + 30),
                offset,
                "Bad bytes, then a long record",
            ),
            "A long record begins with a FIRST fragment.",
        ),
        (
            (first + long[:-50], offset, "A long record whose FIRST is good, and its LAST cut off"),
            f"{good_first}: begin at offset + 1.",
        ),
        (
            (across, offset, "Bad bytes, and a fragment that crosses the end of its block"),
            "Its checksum is right, but no fragment continues in the next block: its data must end"
            " within its block.",
        ),
        (
            (
                first + b"?" * 30 + frame(b"", offset + 30),
                offset,
                "Bad bytes, then a record without data",
            ),
            "A record without data is only a header, and may be the last 7 bytes of the log.",
        ),
    ]


REPLAYED: tuple[tuple[list[Pieces], str], ...] = (
    ([batches(101, 102, 103)], "Every batch is applied, in order."),
    ([batches(101, 102), batches(103)], "The sequence continues through all logs."),
    ([batches(107, 108)], "The oldest batch may begin anywhere: it is unknown what came before."),
    ([batches(50, 51)], "The last sequence is never below that of the MANIFEST."),
    (
        [batches(101, 102, 0)],
        "Bad bytes with nothing after them are a torn tail, which is not an error.",
    ),
    ([batches(101, 0, 102)], "The sequence continues, so the torn record was never acknowledged."),
    ([batches(101, 0), batches(102)], "The next log continues the sequence: nothing is missing."),
    ([batches(101, 0, 103)], "After the bad bytes, the sequence has a gap: 102 is missing."),
    ([batches(101, 0), batches(0, 103)], "The gap is between two logs: 102 is missing."),
    ([batches(101, 102), batches(104)], "The second log does not begin where the first one ended."),
    ([batches(101, 102), batches(102, 103)], "Two batches have one sequence: logs are mixed up."),
    ([batches(0, 102)], BAD_BEGINNING),
    ([batches(101), []], "A new log is empty."),
    ([[]], "There is nothing to replay."),
)
"""Logs to replay, and the rule that each one tests."""


def some_logs(seed: int) -> list[Pieces]:
    """Logs of random batches, with bad bytes in some places, and writes missing in some."""
    dice = random.Random(seed)
    sequence = 101
    logs: list[Pieces] = []
    for _ in range(dice.randint(1, 3)):
        log: Pieces = []
        for _ in range(dice.randint(1, 5)):
            if sequence > 101 and dice.random() < 0.15:
                log.append(None)
                sequence += dice.choice((0, 0, 1))
            operations: list[Operation] = [
                (dice.choice((b"a", b"b", b"c")), dice.choice((None, dice.randbytes(5))))
                for _ in range(dice.randint(1, 3))
            ]
            log.append(batch_of(sequence, operations))
            sequence += len(operations)
        logs.append(log)
    if dice.random() < 0.3:
        logs[-1].append(None)
    return logs


def replaying(code: ModuleType) -> str:
    """The result of replaying logs, and when writes are missing."""
    keys = [b"a", b"b", b"c", *(b"key%d" % number for number in range(50, 110))]
    cases = [*REPLAYED, *((some_logs(seed), "") for seed in range(60))]
    for logs, hint in cases:
        expected = engine_replays(logs, 100, keys)
        when = f"If {in_words(logs)}, and the MANIFEST's last sequence is 100"
        try:
            got = code.replay(logs, 100)
        except ValueError:
            require_found(None, expected, when, "lsmkv", hint)
            continue
        require_replayed(got, when)
        entries, last_sequence = got
        content = dict.fromkeys(keys, b"old") | entries
        present = {key: value for key, value in content.items() if value is not None}
        require_found(Found(present, last_sequence), expected, when, "lsmkv", hint)
    return f"{len(cases)} stores"


def in_words(logs: list[Pieces]) -> str:
    """Logs in a message: the sequences of their batches."""
    lists: list[str] = []
    for log in logs:
        words: list[str] = []
        for piece in log:
            if piece is None:
                words.append("bad bytes")
                continue
            sequence, operations = decode_batch(piece)
            last = sequence + len(operations) - 1
            words.append(f"{sequence}" if last == sequence else f"{sequence}-{last}")
        lists.append("[" + ", ".join(words) + "]")
    subject = "the log holds" if len(lists) == 1 else "the logs hold"
    return f"{subject} the writes {' and '.join(lists)}"


STATE_WORDS = "tables 4 and 8, log number 9, previous log number {prev}, and MANIFEST-000007"

OBSOLETE: tuple[tuple[tuple[str, ...], int, list[str], str], ...] = (
    (("000004.ldb", "000008.ldb", "000005.ldb"), 0, ["000005.ldb"], "No version names table 5."),
    (("000008.sst", "000010.ldb"), 0, ["000010.ldb"], "A table is identified by its number."),
    (("000003.log", "000009.log", "000011.log"), 0, ["000003.log"], "Logs from 9 on are needed."),
    (("000003.log", "000005.log"), 5, ["000003.log"], "The previous log is also needed."),
    (
        ("000000.log", "000003.log"),
        0,
        ["000003.log"],
        "A previous log number of 0 is that of 000000.log, just as when logs are replayed.",
    ),
    (("MANIFEST-000002", "MANIFEST-000007"), 0, ["MANIFEST-000002"], "One MANIFEST is current."),
    (("000007.dbtmp",), 0, ["000007.dbtmp"], "A temporary file is left from a failed change."),
    (("CURRENT", "LOCK", "LOG", "LOG.old", "lost"), 0, [], "No version has these files."),
    (("notes.txt", "000003.log.gz", "x.ldb", "MANIFEST"), 0, [], "Never remove a foreign file."),
    (
        ("MANIFEST-000007", "MANIFEST-000010"),
        0,
        [],
        "A MANIFEST with a number above that of the current one stays: only lower ones go.",
    ),
)
"""Names, the previous log number, what is obsolete, and why."""


def sorting_out(code: ModuleType) -> str:
    """Check the list of files that may be removed."""
    for names, prev, expected, hint in OBSOLETE:
        got = code.obsolete_files(list(names), frozenset((4, 8)), 9, prev, 7)
        require(isinstance(got, list), f"obsolete_files must return a list, not {shown(got)}.")
        state = STATE_WORDS.format(prev=prev)
        require(
            sorted(got) == sorted(expected),
            f"Of {list(names)}, in a store with {state}, {expected} are obsolete, but your code"
            f" returned {got}.\n{hint}",
        )
    return f"{len(OBSOLETE)} directories"


def in_the_engine(code: ModuleType) -> str:
    """Compare the student's recovery after crashes of a real store with lsmkv's and LevelDB's."""
    number = refused = 0
    by_leveldb = ""
    for number, state in enumerate(crash_states(POINTS, seed=2), 1):
        when = f"After a {'kill' if state.names is None else 'power cut'} {state.moment}"
        with state.env.open_directory(PATH) as directory:
            found = by_the_student(code, directory, when)
            logs = needed_logs(directory)
        expected = by_the_engine(RecordingEnv(state.env))
        hint = why_missing(logs) if expected is None else ""
        require_found(found, expected, when, "lsmkv", hint)
        if found is None:
            refused += 1
        elif number % (4 * POINTS // ON_DISK) == 1:
            by_leveldb = recover_on_disk(code, state, found, when)
    return (
        f"{number} states that crashes of a store left: in {refused} of them you found missing"
        f" writes, as lsmkv did, and in all others the same content{by_leveldb}"
    )


def recover_on_disk(code: ModuleType, state: CrashState, found: Found, when: str) -> str:
    """Check that LevelDB finds the same, and that both engines read what the student's recovery
    committed."""
    asked: dict[bytes, bytes | None] = {b"key%02d" % number: None for number in range(20)}
    asked |= found.content
    with scratch() as parent:
        ours, theirs = os.path.join(parent, "ours"), os.path.join(parent, "theirs")
        for path in (ours, theirs):
            state.write_to(path)
        require_content_by_leveldb(theirs + PATH, asked, when, paranoid_checks=False)
        with lsmkv.LocalEnv().open_directory(ours + PATH) as directory:
            recover_and_commit(code, directory, when)
        what = f"{when}, and your recovery of it"
        require_content(ours + PATH, asked, what)
        return require_content_by_leveldb(ours + PATH, asked, what)


def recover_and_commit(code: ModuleType, directory: Directory, when: str) -> None:
    """Recover a directory by the student's functions, from its logs to its obsolete files."""
    found = replayed_by_the_student(code, directory, when)
    assert found is not None
    plan = plan_for(directory, *found)
    names: Sequence[str] = [*directory.names(), *plan.files]
    obsolete = code.obsolete_files(names, plan.tables, plan.log_number, 0, plan.manifest_number)
    commit_plan(code, directory, plan, obsolete)


def drawing() -> str:
    """A log of three batches, the last of which is torn, part by part."""
    operations: list[list[Operation]] = [
        [(b"ant", b"1")],
        [(b"bee", b"2"), (b"ant", None)],
        [(b"cat", b"3")],
    ]
    lines = ["three batches in a log; the power failed while the third one was written", ""]
    lines.append(f"{'offset':>6}  {'bytes':<35}  what")
    at, sequence = 0, 5
    for number, some in enumerate(operations, 1):
        made = frame(batch_of(sequence, some), at)
        data = made[:-4] + bytes(4) if number == 3 else made
        for start, size, lists in parts(made, at):
            if lists != "data":
                shown_bytes = data[start : start + size].hex(" ")
                lines.append(f"{at + start:6}  {shown_bytes:<35}  {lists}")
                continue
            for place, length, what in parts_of_batch(sequence, some):
                begin = start + place
                shown_bytes = data[begin : begin + length].hex(" ")
                torn = " (torn)" if data[begin : begin + length] != made[begin:][:length] else ""
                lines.append(f"{at + begin:6}  {shown_bytes:<35}  {what}{torn}")
        at += len(made)
        sequence += len(some)
    return "\n".join(lines) + "\n"


def parts_of_batch(sequence: int, operations: list[Operation]) -> list[tuple[int, int, str]]:
    """The parts of a small batch: offset, size, and meaning."""
    found = [(0, 8, f"sequence {sequence}"), (8, 4, f"operations: {len(operations)}")]
    at = 12
    for number, (key, value) in enumerate(operations, sequence):
        size = 2 + len(key) + (0 if value is None else 1 + len(value))
        what = f"delete {key.decode()}" if value is None else f"put {key.decode()}={value.decode()}"
        found.append((at, size, f"write {number}: {what}"))
        at += size
    return found


LAB = Lab(
    number=10,
    slug="recovery",
    title="Recovery: torn writes and power cuts",
    functions=("logs_to_replay", "is_torn_tail", "replay", "obsolete_files", "commit"),
    checks=(
        Check("the logs that count", choosing),
        Check("torn tails", torn_tails),
        Check("replaying logs", replaying),
        Check("obsolete files", sorting_out),
        Check("a commit and power cuts", committing),
        Check("a failing disk", failing),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
