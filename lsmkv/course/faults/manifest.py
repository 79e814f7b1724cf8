"""Faults of lab 9: edits of a MANIFEST."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lsmkv.course.faults.fault import Fault, Files, Function, Subject
from lsmkv.course.given import encode_varint
from lsmkv.course.labs.edits import (
    COMPARATOR,
    DELETED_FILE,
    LAST_SEQUENCE,
    LOG_NUMBER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREV_LOG_NUMBER,
    encoded,
    replayed,
)
from lsmkv.course.labs.formats import frame
from lsmkv.files import make_key

Calls = list[tuple[str, tuple[Any, ...]]]

Edit = Sequence[tuple[Any, ...]]
_COUNTERS = (LOG_NUMBER, PREV_LOG_NUMBER, NEXT_FILE_NUMBER, LAST_SEQUENCE)


def _fields(edit: Edit) -> list[tuple[Any, ...]]:
    """An edit with internal keys: sequence 2 for the smallest of a table, 1 for the largest."""
    return [
        (*one[:4], make_key(one[4], 2, 1), make_key(one[5], 1, 1)) if one[0] == NEW_FILE else one
        for one in edit
    ]


def _encode(edit: Edit) -> bytes:
    return encoded(_fields(edit))


def _levels(edits: Sequence[Edit]) -> list[list[int]]:
    return [[file[0] for file in level] for level in replayed([_encode(e) for e in edits])[1]]


def _counters(edits: Sequence[Edit]) -> dict[int, Any]:
    found = replayed([_encode(edit) for edit in edits])[0]
    return {tag: found[tag] for tag in sorted(found)}


def _levels_with(
    by_number: bool = False, adds_first: bool = False, sorts: bool = True, rises: bool = False
) -> Function:
    """Levels with a difference: deletions ``by_number`` alone, additions first, deeper levels by
    number (not ``sorts``), level 0 that ``rises``."""

    def levels(edits: Sequence[Edit]) -> list[list[int]]:
        found: dict[tuple[int, int], bytes] = {}
        for edit in edits:
            deleted = [one[1:] for one in edit if one[0] == DELETED_FILE]
            added = {(one[1], one[2]): one[4] for one in edit if one[0] == NEW_FILE}
            found |= added if adds_first else {}
            for level, number in deleted:
                for place in list(found):
                    if place == (level, number) or (by_number and place[1] == number):
                        del found[place]
            found |= {} if adds_first else added
        out: list[list[int]] = []
        for level in range(7):
            numbers = [number for at, number in found if at == level]
            if level == 0 or not sorts:
                out.append(sorted(numbers, reverse=level == 0 and not rises))
            else:
                by_key = sorted((found[level, number], number) for number in numbers)
                out.append([number for _, number in by_key])
        return out

    return levels


def _merged(edits: Sequence[Edit], takes: Callable[[int, int], int]) -> dict[int, Any]:
    found = _counters(edits)
    for tag in _COUNTERS:
        values = [one[1] for edit in edits for one in edit if one[0] == tag]
        for at, value in enumerate(values):
            found[tag] = value if at == 0 else takes(found[tag], value)
    return found


def _fixed(edit: Edit) -> bytes:
    return b"".join(
        encode_varint(one[0]) + one[1].to_bytes(8, "little")
        if one[0] in _COUNTERS
        else encoded(_fields([one]))
        for one in edit
    )


def _manifest_edits(mark: bytes) -> list[Edit]:
    return [
        [
            (COMPARATOR, b"leveldb.BytewiseComparator"),
            (LOG_NUMBER, 300),
            (PREV_LOG_NUMBER, 0),
            (NEXT_FILE_NUMBER, 500),
            (LAST_SEQUENCE, 70_000),
            (NEW_FILE, 0, 11, 900, mark + b"a", mark + b"m"),
            (NEW_FILE, 0, 12, 901, mark + b"c", mark + b"z"),
            (NEW_FILE, 2, 11, 902, mark + b"a", mark + b"d"),
        ],
        [
            (COMPARATOR, b"leveldb.BytewiseComparator"),
            (LOG_NUMBER, 299),
            (NEXT_FILE_NUMBER, 501),
            (LAST_SEQUENCE, 60_000),
            (DELETED_FILE, 0, 11),
            (NEW_FILE, 1, 14, 70_000, mark + b"p", mark + b"q"),
            (NEW_FILE, 1, 15, 70_001, mark + b"a", mark + b"b"),
        ],
        [
            (COMPARATOR, b"leveldb.BytewiseComparator"),
            (NEW_FILE, 1, 14, 70_000, mark + b"p", mark + b"q"),
            (DELETED_FILE, 1, 14),
            (LAST_SEQUENCE, 65_000),
        ],
    ]


def _manifest_scene(mark: bytes, dice: random.Random) -> Calls:
    edits = _manifest_edits(mark)
    calls: Calls = [("encode_edit", (edit,)) for edit in edits]
    for number in (1, 2, 3):
        calls += [("levels", (edits[:number],)), ("counters", (edits[:number],))]
    return calls


def _manifest_files(code: Mapping[str, Function], mark: bytes) -> Files:
    out = b""
    for edit in _manifest_edits(mark):
        out += frame(code["encode_edit"](edit), len(out))
    return {"MANIFEST-000009": out}


def _user_keys(edit: Edit) -> bytes:
    return encoded(list(edit))


MANIFEST = Subject(
    {"encode_edit": _encode, "levels": _levels, "counters": _counters},
    {
        "encode_edit": "[(tag, ...)]: (1, comparator), (2, log number), (3, next file number),"
        " (4, last sequence), (6, level, number), (7, level, number, size, smallest user key,"
        " largest one), (9, previous log number)",
        "levels": "[edits]; it returns the numbers of the tables on each level",
        "counters": "[edits]; it returns the last values by their tags",
    },
    (
        Fault(
            "Counters take eight bytes.",
            "encode_edit",
            _fixed,
            lambda m: ([(COMPARATOR, m), (LOG_NUMBER, 0)],),
        ),
        Fault(
            "A previous log number of 0 is left out.",
            "encode_edit",
            lambda edit: _encode([one for one in edit if one != (PREV_LOG_NUMBER, 0)]),
            lambda m: ([(COMPARATOR, m), (PREV_LOG_NUMBER, 0)],),
        ),
        Fault(
            "Tables have user keys, without tags.",
            "encode_edit",
            _user_keys,
            lambda m: ([(NEW_FILE, 0, 0, 0, m, b"")],),
        ),
        Fault(
            "New tables are written before deleted ones, whatever the order.",
            "encode_edit",
            lambda edit: _encode(sorted(edit, key=lambda one: one[0] == DELETED_FILE)),
            lambda m: ([(DELETED_FILE, 0, 0), (COMPARATOR, m)],),
        ),
        Fault(
            "A table is deleted on all levels.",
            "levels",
            _levels_with(by_number=True),
            lambda m: ([[(NEW_FILE, 0, 0, 0, m, m)], [(DELETED_FILE, 1, 0)]],),
        ),
        Fault(
            "An edit's deletions come after its additions.",
            "levels",
            _levels_with(adds_first=True),
            lambda m: ([[(NEW_FILE, 0, 0, 0, m, m), (DELETED_FILE, 0, 0)]],),
        ),
        Fault(
            "Deeper levels are sorted by number.",
            "levels",
            _levels_with(sorts=False),
            lambda m: ([[(NEW_FILE, 1, 0, 0, m, m), (NEW_FILE, 1, 1, 0, b"", b"")]],),
        ),
        Fault(
            "Level 0 has the lowest number first.",
            "levels",
            _levels_with(rises=True),
            lambda m: ([[(NEW_FILE, 0, 0, 0, m, m), (NEW_FILE, 0, 1, 0, b"", b"")]],),
        ),
        Fault(
            "The highest value of a counter counts.",
            "counters",
            lambda edits: _merged(edits, max),
            lambda m: ([[(COMPARATOR, m), (LOG_NUMBER, 1), (LOG_NUMBER, 0)]],),
        ),
        Fault(
            "The first value of a counter counts.",
            "counters",
            lambda edits: _merged(edits, lambda old, new: old),
            lambda m: ([[(COMPARATOR, m), (LOG_NUMBER, 1)], [(LOG_NUMBER, 0)]],),
        ),
        Fault(
            "Counters come from the last edit alone.",
            "counters",
            lambda edits: _counters(edits[-1:]),
            lambda m: ([[(COMPARATOR, m)], []],),
        ),
    ),
    _manifest_scene,
    _manifest_files,
)
