"""Faults of labs 10 and 11: recovery, compaction."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from lsmkv.course.faults.fault import Fault, Files, Function, Subject
from lsmkv.course.labs.compacting import engine_compact, engine_held_deeper, file_of, version_of
from lsmkv.course.labs.compaction import engine_scores, size_of
from lsmkv.course.labs.edits import COMPARATOR, NEW_FILE, encoded
from lsmkv.course.labs.formats import LEVELS, batch_of, frame
from lsmkv.files import make_key, parse_name

Calls = list[tuple[str, tuple[Any, ...]]]

# Lab 10

Batch = tuple[int, Sequence[tuple[bytes, bytes | None]]]
Logs = Sequence[Sequence[Batch | None]]


def _numbers(names: Sequence[str], kind: str) -> list[int]:
    parsed = [parse_name(name) for name in names]
    return sorted(one.number for one in parsed if one is not None and one.kind == kind)


def _logs(names: Sequence[str], log_number: int, previous: int) -> list[int]:
    return [n for n in _numbers(names, "log") if n >= log_number or n == previous]


def _replay(
    logs: Logs,
    last_sequence: int,
    first: bool = False,
    forgets: bool = False,
    starts: bool = False,
    falls: bool = False,
    skips: bool = False,
    refuses: bool = False,
) -> tuple[dict[bytes, bytes | None], int]:
    """Return the content of logs: if the ``first`` value of a key counts, deletions are forgotten,
    the last batch's start is the last sequence, it ``falls`` below the MANIFEST's, gaps are
    skipped, or a torn end is refused."""
    found: dict[bytes, bytes | None] = {}
    expected = start = None
    bad = False
    for piece in (piece for log in logs for piece in log):
        if piece is None:
            bad = True
            continue
        sequence, operations = piece
        if not skips and ((bad and expected is None) or (expected not in (None, sequence))):
            raise ValueError("writes are missing")
        for key, value in operations:
            if forgets and value is None:
                continue
            found[key] = found.get(key, value) if first else value
        expected, start = sequence + len(operations), sequence
    if refuses and bad:
        raise ValueError("writes are missing")
    end = start if starts else None if expected is None else expected - 1
    return found, max(0 if falls and end is not None else last_sequence, end or 0)


def _replay_right(logs: Logs, last_sequence: int) -> tuple[dict[bytes, bytes | None], int]:
    return _replay(logs, last_sequence)


def _replay_with(**how: bool) -> Function:
    return lambda logs, last_sequence: _replay(logs, last_sequence, **how)


def _obsolete(names: Sequence[str], tables: Sequence[int], log: int, manifest: int) -> list[str]:
    found: list[str] = []
    for name in names:
        parsed = parse_name(name)
        if parsed is None:
            continue
        kind, number = parsed
        if (
            (kind == "table" and number not in tables)
            or (kind == "log" and number < log)
            or (kind == "manifest" and number < manifest)
            or kind == "temporary"
        ):
            found.append(name)
    return found


def _keeps(kind: str) -> Function:
    def obsolete(names: Sequence[str], tables: Sequence[int], log: int, manifest: int) -> list[str]:
        found = _obsolete(names, tables, log, manifest)
        return [name for name in found if (parse_name(name) or ("",))[0] != kind]

    return obsolete


def _recovery_scene(mark: bytes, dice: random.Random) -> Calls:
    note = mark.decode() + ".txt"
    names = [note, "000009.log", "000012.log", "000010.log", "000101.log", "000011.ldb", "CURRENT"]
    calls: Calls = [("logs", (names, 10, at)) for at in (0, 9, 12)]
    key = mark + b"%d" % dice.randrange(9)
    logs: list[list[Batch | None]] = [
        [(7, [(key, b"1"), (mark, b"2")]), (9, [(key, b"3")])],
        [(10, [(mark, None), (mark + b"z", b"4")]), None],
    ]
    gap: list[list[Batch | None]] = [[logs[0][0], None, (12, [(key, b"5")])]]
    calls += [("replay", (some, last)) for some in (logs, gap, logs[:1]) for last in (6, 50)]
    more = [note, "000011.ldb", "000014.ldb", "MANIFEST-000003", "MANIFEST-000008", "000020.dbtmp"]
    return [*calls, ("obsolete", ([*more, "000005.log", "000015.log", "LOCK"], [14], 15, 8))]


def _recovery_files(code: Mapping[str, Function], mark: bytes) -> Files:
    log = b""
    for at in range(6):
        operations = [(mark + b"%d" % (at % 3), None if at == 4 else b"v%d" % at)]
        log += frame(batch_of(7 + at, operations), len(log))
    return {"fault10.log": log[:-3]}


RECOVERY = Subject(
    {"logs": _logs, "replay": _replay_right, "obsolete": _obsolete},
    {
        "logs": "[names], log number, previous log number; it returns the numbers of the logs",
        "replay": "[for each log: [(sequence, [(key, value, or None for a deletion)]), or None for"
        " bad bytes]], last sequence of the MANIFEST",
        "obsolete": "[names], [numbers of tables], log number, number of the MANIFEST",
    },
    (
        Fault(
            "The log with the log number itself is passed over.",
            "logs",
            lambda names, log, previous: _logs(names, log + 1, previous),
            lambda m: ([m.decode(), "0.log"], 0, 1),
        ),
        Fault(
            "The previous log is passed over.",
            "logs",
            lambda names, log, previous: _logs(names, log, log),
            lambda m: ([m.decode(), "0.log"], 1, 0),
        ),
        Fault(
            "The newest log alone is replayed.",
            "logs",
            lambda names, log, previous: _logs(names, log, previous)[-1:],
            lambda m: ([m.decode(), "0.log", "1.log"], 0, 0),
        ),
        Fault(
            "All logs are replayed.",
            "logs",
            lambda names, log, previous: _numbers(names, "log"),
            lambda m: ([m.decode(), "0.log"], 1, 1),
        ),
        Fault(
            "The first value of a key counts.",
            "replay",
            _replay_with(first=True),
            lambda m: ([[(0, [(m, b""), (m, None)])]], 0),
        ),
        Fault(
            "Deletions are forgotten.",
            "replay",
            _replay_with(forgets=True),
            lambda m: ([[(0, [(m, None)])]], 0),
        ),
        Fault(
            "The last sequence is that of the last batch's first write.",
            "replay",
            _replay_with(starts=True),
            lambda m: ([[(0, [(m, b""), (m, b"")])]], 0),
        ),
        Fault(
            "The last sequence may be below that of the MANIFEST.",
            "replay",
            _replay_with(falls=True),
            lambda m: ([[(0, [(m, b"")])]], 1),
        ),
        Fault(
            "Writes that are missing are not noticed.",
            "replay",
            _replay_with(skips=True),
            lambda m: ([[None, (0, [(m, b"")])]], 0),
        ),
        Fault(
            "A torn end is taken for damage.",
            "replay",
            _replay_with(refuses=True),
            lambda m: ([[(0, [(m, b"")]), None]], 0),
        ),
        Fault(
            "Temporary files are kept.",
            "obsolete",
            _keeps("temporary"),
            lambda m: ([m.decode(), "0.dbtmp"], [], 0, 0),
        ),
        Fault(
            "Old MANIFESTs are kept.",
            "obsolete",
            _keeps("manifest"),
            lambda m: ([m.decode(), "MANIFEST-0"], [], 0, 1),
        ),
    ),
    _recovery_scene,
    _recovery_files,
)

# Lab 11

File = tuple[int, int, bytes, bytes]
Levels = Sequence[Sequence[File]]
Entry = tuple[bytes, int, bytes | None]


def _all(levels: Levels) -> list[list[File]]:
    return [list(levels[at]) if at < len(levels) else [] for at in range(LEVELS)]


def _scores(levels: Levels) -> list[float]:
    return [round(score, 6) for score in engine_scores(_all(levels))]


def _overlapping(levels: Levels, level: int, begin: bytes, end: bytes) -> list[int]:
    found = version_of(_all(levels)).overlapping(level, begin, end)
    return [file_of(file)[0] for file in found]


def _touching(levels: Levels, level: int, begin: bytes, end: bytes, ends: bool = True) -> list[int]:
    """The tables that overlap a range that does not grow, with or without its ``ends``."""
    return [
        number
        for number, _, low, high in _all(levels)[level]
        if (low <= end and high >= begin if ends else low < end and high > begin)
    ]


def _held(levels: Levels, output_level: int, key: bytes) -> bool:
    return engine_held_deeper(_all(levels), output_level, key)


def _compact(entries: Sequence[Entry], oldest: int, deep: Sequence[bytes]) -> list[Entry]:
    return engine_compact([_ordered(entries)], oldest, list(deep))


def _ordered(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry[0], -entry[1]))


def _newest(entries: Sequence[Entry], oldest: int, deep: Sequence[bytes]) -> list[Entry]:
    newest = {entry[0]: entry for entry in _ordered(entries)[::-1]}
    return _compact([newest[key] for key in sorted(newest)], oldest, deep)


def _split(entries: Sequence[Entry], limit: int) -> list[list[Entry]]:
    outputs: list[list[Entry]] = []
    for entry in entries:
        is_full = not outputs or sum(map(size_of, outputs[-1])) >= limit
        if is_full and not (outputs and outputs[-1][-1][0] == entry[0]):
            outputs.append([])
        outputs[-1].append(entry)
    return outputs


def _cut(entries: Sequence[Entry], limit: int) -> list[list[Entry]]:
    outputs: list[list[Entry]] = []
    for entry in entries:
        if not outputs or sum(map(size_of, outputs[-1])) >= limit:
            outputs.append([])
        outputs[-1].append(entry)
    return outputs


def _compaction_scene(mark: bytes, dice: random.Random) -> Calls:
    levels = _some_levels(mark)
    key = mark + b"k"
    numbers = sorted(dice.sample(range(10, 99), 3), reverse=True)
    entries: list[Entry] = [(key, number, b"v%d" % number) for number in numbers]
    entries.append((mark + b"m", numbers[1], None))
    calls: Calls = [("level_scores", (levels,))]
    for level in (0, 1):
        ends = ((b"c", b"d"), (b"f", b"f"), (b"a", b"b"))
        calls += [("overlapping", (levels, level, mark + a, mark + b)) for a, b in ends]
    calls += [("held_deeper", (levels, at, mark + b"e")) for at in (0, 1, 2)]
    calls += [("held_deeper", (levels, at, mark + b"y")) for at in (0, 1, 2)]
    for oldest in (numbers[0], numbers[1], numbers[1] - 1, numbers[2] - 1):
        calls += [("compact", (entries, oldest, deep)) for deep in ([], [mark + b"m"])]
    return calls + [("split", (entries, limit)) for limit in (1, 20, 40)]


def _some_levels(mark: bytes) -> list[list[File]]:
    mib = 1 << 20
    return [
        [(9, mib, mark + b"d", mark + b"g"), (8, mib, mark + b"a", mark + b"d")],
        [(6, 8 * mib, mark + b"a", mark + b"c"), (7, 9 * mib, mark + b"f", mark + b"h")],
        [(5, 2 * mib, mark + b"b", mark + b"e")],
    ]


def _compaction_files(code: Mapping[str, Function], mark: bytes) -> Files:
    fields = [
        (NEW_FILE, level, number, size, make_key(low, 99, 1), make_key(high, 1, 1))
        for level, files in enumerate(_some_levels(mark))
        for number, size, low, high in files
    ]
    edit = encoded([(COMPARATOR, b"leveldb.BytewiseComparator"), *fields])
    return {"MANIFEST-000011": frame(edit, 0)}


COMPACTION = Subject(
    {
        "level_scores": _scores,
        "overlapping": _overlapping,
        "held_deeper": _held,
        "compact": _compact,
        "split": _split,
    },
    {
        "level_scores": "[[(number, bytes, smallest user key, largest one)] for each level]",
        "overlapping": "the same, level, first key, last key; it returns numbers of tables",
        "held_deeper": "the same, level of the outputs, key",
        "compact": "[(key, sequence, value, or None for a deletion)], oldest snapshot, [keys that"
        " a deeper level may hold]",
        "split": "the same entries in order, limit",
    },
    (
        Fault(
            "Level 0 is scored by its bytes.",
            "level_scores",
            lambda levels: [_scores([[], levels[0]])[1], *_scores([[], *levels[1:]])[1:]],
            lambda m: ([[(0, 0, m, m)]],),
        ),
        Fault(
            "Level 1 is full at 11 MiB.",
            "level_scores",
            lambda levels: [
                round(score * (10 / 11 if at == 1 else 1), 6)
                for at, score in enumerate(_scores(levels))
            ],
            lambda m: ([[], [(0, 9999, m, m)]],),
        ),
        Fault(
            "The ends of a range do not belong to it.",
            "overlapping",
            lambda levels, level, begin, end: _touching(levels, level, begin, end, ends=False),
            lambda m: ([[], [(0, 0, m, m)]], 1, m, m),
        ),
        Fault(
            "On level 0, the range does not grow.",
            "overlapping",
            _touching,
            lambda m: ([[(1, 0, b"", m), (0, 0, b"a", m)]], 0, b"", b""),
        ),
        Fault(
            "The level of the outputs counts as a deeper one.",
            "held_deeper",
            lambda levels, level, key: _held(levels, level - 1, key),
            lambda m: ([[], [(0, 0, m, m)]], 1, m),
        ),
        Fault(
            "Only the next level counts as a deeper one.",
            "held_deeper",
            lambda levels, level, key: bool(_touching(levels, level + 1, key, key)),
            lambda m: ([[], [], [(0, 0, m, m)]], 0, m),
        ),
        Fault(
            "Versions that a snapshot needs are dropped.",
            "compact",
            _newest,
            lambda m: ([(m, 0, b""), (m, 1, b"")], 0, []),
        ),
        Fault(
            "Nothing is dropped.",
            "compact",
            lambda entries, oldest, deep: _ordered(entries),
            lambda m: ([(m, 0, None)], 0, []),
        ),
        Fault(
            "Deletions are dropped although a deeper level may hold their keys.",
            "compact",
            lambda entries, oldest, deep: _compact(entries, oldest, []),
            lambda m: ([(m, 0, None)], 0, [m]),
        ),
        Fault(
            "Deletions are kept although no deeper level holds their keys.",
            "compact",
            lambda entries, oldest, deep: _compact(entries, oldest, [e[0] for e in entries]),
            lambda m: ([(m, 0, None)], 0, []),
        ),
        Fault(
            "The version at the oldest snapshot does not hide older ones.",
            "compact",
            lambda entries, oldest, deep: _compact(entries, oldest - 1, deep),
            lambda m: ([(m, 0, b""), (m, 1, b"")], 1, []),
        ),
        Fault(
            "Two outputs may share a key.", "split", _cut, lambda m: ([(m, 1, b""), (m, 0, b"")], 1)
        ),
    ),
    _compaction_scene,
    _compaction_files,
)
