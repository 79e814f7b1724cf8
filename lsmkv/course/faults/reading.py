"""Faults of labs 7 and 8: memtables and merging, Get."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from lsmkv.course.faults.fault import Fault, Files, Function, Subject
from lsmkv.course.labs.edits import (
    COMPARATOR,
    NEW_FILE,
    encoded,
)
from lsmkv.course.labs.formats import batch_of, frame
from lsmkv.files import make_key

Calls = list[tuple[str, tuple[Any, ...]]]

# Lab 7

Version = tuple[bytes, int, bytes | None]
Versions = Sequence[Version]


def _order(version: Version) -> tuple[bytes, int]:
    return version[0], -version[1]


def _memtable(versions: Versions) -> list[Version]:
    return sorted(versions, key=_order)


def _look_up(versions: Versions, key: bytes, sequence: int) -> Version | None:
    some = (one for one in _memtable(versions) if one[0] == key and one[1] <= sequence)
    return next(some, None)


def _merge(runs: Sequence[Versions], backwards: bool) -> list[Version]:
    return sorted((one for run in runs for one in run), key=_order, reverse=backwards)


def _seen(
    versions: Versions,
    sequence: int,
    skips: bool = False,
    shows: bool = False,
    before: bool = False,
    oldest: bool = False,
) -> list[tuple[bytes, bytes]]:
    """Return what a reader sees: if it ``skips`` deletions, ``shows`` them, stops ``before`` its
    sequence, or takes the ``oldest`` version."""
    found: list[tuple[bytes, bytes]] = []
    for key, some in groupby(_memtable(versions), key=lambda one: one[0]):
        within = [one for one in some if one[1] <= sequence - before]
        within = [one for one in within if one[2] is not None] if skips else within
        if within:
            value = within[-1 if oldest else 0][2]
            if value is not None or shows:
                found.append((key, value or b""))
    return found


def _visible(versions: Versions, sequence: int) -> list[tuple[bytes, bytes]]:
    return _seen(versions, sequence)


def _backwards(versions: Versions, sequence: int) -> list[tuple[bytes, bytes]]:
    return _seen(versions, sequence)[::-1]


def _history(mark: bytes, dice: random.Random) -> list[Version]:
    keys = [mark + end for end in (b"a", b"b", b"c", b"d")]
    numbers = sorted(dice.sample(range(10, 100), 10))
    return [
        (keys[(at * 3) % 4], number, None if at in (5, 7) else b"v%d" % number)
        for at, number in enumerate(numbers)
    ]


def _merging_scene(mark: bytes, dice: random.Random) -> Calls:
    versions = _history(mark, dice)
    numbers = [number for _, number, _ in versions]
    runs = [_memtable(versions[at::2]) for at in range(2)]
    runs[1].append(runs[0][-1])
    calls: Calls = [("memtable", (versions,)), ("merge", ([*runs], False))]
    calls.append(("merge", ([run[::-1] for run in runs], True)))
    for at in (3, 6, 8):
        calls.append(("visible", (versions, numbers[at])))
        calls.append(("visible_backwards", (versions, numbers[at])))
    for key in (versions[0][0], versions[5][0], mark, versions[1][0]):
        calls += [("look_up", (versions, key, numbers[at])) for at in (0, 5, 9)]
    return calls


def _merging_files(code: Mapping[str, Function], mark: bytes) -> Files:
    log = b""
    for key, number, value in _history(mark, random.Random(mark.decode())):
        log += frame(batch_of(number, [(key, value)]), len(log))
    return {"fault7.log": log}


def _replaced(versions: Versions) -> list[Version]:
    newest = {
        key: (key, number, value) for key, number, value in sorted(versions, key=_order)[::-1]
    }
    return _memtable(list(newest.values()))


MERGING = Subject(
    {
        "memtable": _memtable,
        "look_up": _look_up,
        "merge": _merge,
        "visible": _visible,
        "visible_backwards": _backwards,
    },
    {
        "memtable": "[(user key, sequence, value, or None for a deletion)] as they are inserted",
        "look_up": "the same; user key, sequence of the reader",
        "merge": "[the same, in order, for each run], whether it goes backwards",
        "visible": "[(user key, sequence, value)], sequence of the reader",
        "visible_backwards": "the same",
    },
    (
        Fault(
            "Of one key, the oldest version comes first.",
            "memtable",
            lambda versions: sorted(versions, key=lambda one: one[:2]),
            lambda m: ([(m, 0, None), (m, 1, None)],),
        ),
        Fault(
            "A newer version replaces the older ones.",
            "memtable",
            _replaced,
            lambda m: ([(m, 0, None), (m, 1, None)],),
        ),
        Fault(
            "A look-up of an absent key finds the next one.",
            "look_up",
            lambda versions, key, n: next(
                (one for one in _memtable(versions) if _order(one) >= (key, -n)), None
            ),
            lambda m: ([(m, 0, None)], b"", 0),
        ),
        Fault(
            "A look-up passes over deletions.",
            "look_up",
            lambda versions, key, n: _look_up([v for v in versions if v[2] is not None], key, n),
            lambda m: ([(m, 0, None)], m, 0),
        ),
        Fault(
            "A look-up leaves out the version at its own sequence.",
            "look_up",
            lambda versions, key, n: _look_up(versions, key, n - 1),
            lambda m: ([(m, 0, None)], m, 0),
        ),
        Fault(
            "A merge goes forwards, also if asked to go backwards.",
            "merge",
            lambda runs, backwards: _merge(runs, False),
            lambda m: ([[(m, 1, None)], [(m, 0, None)]], True),
        ),
        Fault(
            "Of equal entries of two runs, one comes out.",
            "merge",
            lambda runs, backwards: list(dict.fromkeys(_merge(runs, backwards))),
            lambda m: ([[(m, 0, None)], [(m, 0, None)]], False),
        ),
        Fault(
            "A merge leaves out older versions.",
            "merge",
            lambda runs, backwards: _replaced([one for run in runs for one in run])[
                :: -1 if backwards else 1
            ],
            lambda m: ([[(m, 1, None), (m, 0, None)]], False),
        ),
        Fault(
            "A reader sees deletions as empty values.",
            "visible",
            lambda versions, n: _seen(versions, n, shows=True),
            lambda m: ([(m, 0, None)], 0),
        ),
        Fault(
            "A reader looks past deletions.",
            "visible",
            lambda versions, n: _seen(versions, n, skips=True),
            lambda m: ([(m, 0, b""), (m, 1, None)], 1),
        ),
        Fault(
            "A reader does not see the version at its own sequence.",
            "visible",
            lambda versions, n: _seen(versions, n, before=True),
            lambda m: ([(m, 0, b"")], 0),
        ),
        Fault(
            "Backwards, the oldest version is seen.",
            "visible_backwards",
            lambda versions, n: _seen(versions, n, oldest=True)[::-1],
            lambda m: ([(m, 0, b""), (m, 1, None)], 1),
        ),
        Fault(
            "Backwards, the last key is forgotten.",
            "visible_backwards",
            lambda versions, n: _backwards(versions, n)[:-1],
            lambda m: ([(m, 0, b"")], 0),
        ),
    ),
    _merging_scene,
    _merging_files,
)

# Lab 8

Range = tuple[int, bytes, bytes]
Block = Sequence[tuple[bytes, bytes | None]]
Table = tuple[int, Sequence[Block]]


def _find_table(level: Sequence[Range], key: bytes) -> int | None:
    return next((number for number, low, high in level if low <= key <= high), None)


def _tables_to_ask(levels: Sequence[Sequence[Range]], key: bytes) -> list[int]:
    return [
        number
        for at, level in enumerate(levels)
        for number, low, high in (sorted(level, reverse=True) if at == 0 else level)
        if low <= key <= high
    ]


def _block_for(index_keys: Sequence[bytes], key: bytes) -> int | None:
    return next((at for at, one in enumerate(index_keys) if one >= key), None)


def _got(
    levels: Sequence[Sequence[Table]],
    key: bytes,
    skips: bool = False,
    asks: bool = True,
    last: bool = False,
    ends: bool = False,
    oldest: bool = False,
) -> tuple[bytes | None, list[tuple[int, int]]]:
    """The value of a key, and the blocks that were read: if it ``skips`` deletions, ``asks`` no
    filter, takes the ``last`` version in a block, ``ends`` at the first table, or begins at the
    ``oldest`` table of level 0."""
    read: list[tuple[int, int]] = []
    for at, level in enumerate(levels):
        for number, blocks in sorted(level, reverse=not oldest) if at == 0 else level:
            place = _block_for([block[-1][0] for block in blocks], key)
            if place is None or key < blocks[0][0][0]:
                continue
            found = [value for one, value in blocks[place] if one == key]
            if found or not asks:
                read.append((number, place))
            if skips:
                found = [value for value in found if value is not None]
            if found or ends:
                return (found or [None])[-1 if last else 0], read
    return None, read


def _get(levels: Sequence[Sequence[Table]], key: bytes) -> Any:
    return _got(levels, key)


def _get_with(**how: bool) -> Function:
    return lambda levels, key: _got(levels, key, **how)


def _a_store(mark: bytes) -> list[list[Table]]:
    """Two tables on level 0, two on level 1."""
    keys = [mark + bytes([letter]) for letter in b"abcdefgh"]

    def blocks(some: str, value: bytes) -> list[Block]:
        entries = [(keys[int(at)], None if at == "2" and value == b"n" else value) for at in some]
        return [entries[at : at + 2] for at in range(0, len(entries), 2)]

    return [
        [(9, blocks("0246", b"n")), (7, blocks("1225", b"m"))],
        [(5, blocks("0123", b"o")), (6, blocks("567", b"o"))],
    ]


def _ranges(levels: Sequence[Sequence[Table]]) -> list[list[Range]]:
    return [
        [(number, blocks[0][0][0], blocks[-1][-1][0]) for number, blocks in level]
        for level in levels
    ]


def _reading_scene(mark: bytes, dice: random.Random) -> Calls:
    levels = _a_store(mark)
    ranges = _ranges(levels)
    keys = [mark + bytes([letter]) for letter in b"abcdefgh"]
    calls: Calls = [("get", (levels, key)) for key in (*keys, mark + b"bb")]
    twice: list[Block] = [[(keys[2], b"m2"), (keys[2], b"m1")], [(keys[5], b"m")]]
    calls.append(("get", ([[(8, twice), (7, twice[1:])], levels[1]], keys[2])))
    calls += [("tables_to_ask", (ranges, key)) for key in (keys[0], keys[2], keys[7])]
    calls += [("find_table", (ranges[1], keys[at])) for at in (0, 3, 4, 5, 7)]
    return calls + [
        ("block_for", ([keys[1], keys[3]], key)) for key in (mark, keys[1], keys[2], keys[7])
    ]


def _reading_files(code: Mapping[str, Function], mark: bytes) -> Files:
    return {"MANIFEST-000008": _manifest(_ranges(_a_store(mark)))}


def _manifest(levels: Sequence[Sequence[Range]]) -> bytes:
    fields = [
        (NEW_FILE, level, number, 1234, make_key(low, 99, 1), make_key(high, 1, 1))
        for level, tables in enumerate(levels)
        for number, low, high in tables
    ]
    return frame(encoded([(COMPARATOR, b"leveldb.BytewiseComparator"), *fields]), 0)


def _without(keep: Callable[[bytes, bytes, bytes], bool]) -> Function:
    return lambda level, key: next((n for n, low, high in level if keep(low, key, high)), None)


READING = Subject(
    {
        "find_table": _find_table,
        "tables_to_ask": _tables_to_ask,
        "block_for": _block_for,
        "get": _get,
    },
    {
        "find_table": "[(number, smallest key, largest key)] of a deeper level, key",
        "tables_to_ask": "[the same, for each level], key",
        "block_for": "[index keys], key",
        "get": "[[(number of a table, [its blocks: [(key, value, or None for a deletion)]])] for"
        " each level], key; it returns the value, and the blocks read, by filters that never err",
    },
    (
        Fault(
            "The largest key of a table is not in its range.",
            "find_table",
            _without(lambda low, key, high: low <= key < high),
            lambda m: ([(0, b"", m)], m),
        ),
        Fault(
            "The smallest key of a table is not in its range.",
            "find_table",
            _without(lambda low, key, high: low < key <= high),
            lambda m: ([(0, m, m)], m),
        ),
        Fault(
            "A key between two tables is in the second one.",
            "find_table",
            _without(lambda low, key, high: key <= high),
            lambda m: ([(0, m, m)], b""),
        ),
        Fault(
            "On level 0, the oldest table is asked first.",
            "tables_to_ask",
            lambda levels, key: _tables_to_ask(
                [sorted((-n, a, b) for n, a, b in levels[0]), *levels[1:]], key
            ),
            lambda m: ([[(0, b"", m), (1, b"", m)]], m),
        ),
        Fault(
            "On level 0, one table alone is asked.",
            "tables_to_ask",
            lambda levels, key: [
                *_tables_to_ask(levels[:1], key)[:1],
                *_tables_to_ask([[], *levels[1:]], key),
            ],
            lambda m: ([[(0, b"", m), (1, b"", m)]], b""),
        ),
        Fault(
            "Deeper levels are asked before level 0.",
            "tables_to_ask",
            lambda levels, key: [
                *_tables_to_ask([[], *levels[1:]], key),
                *_tables_to_ask(levels[:1], key),
            ],
            lambda m: ([[(0, b"", m)], [(1, b"", m)]], b""),
        ),
        Fault(
            "A key that equals an index key is looked for in the next block.",
            "block_for",
            lambda keys, key: next((at for at, one in enumerate(keys) if one > key), None),
            lambda m: ([m], m),
        ),
        Fault(
            "A key above all index keys is looked for in the last block.",
            "block_for",
            lambda keys, key: next(
                (at for at, one in enumerate(keys) if one >= key), len(keys) - 1
            ),
            lambda m: ([b""], m),
        ),
        Fault(
            "A Get passes over deletions.",
            "get",
            _get_with(skips=True),
            lambda m: ([[(1, [[(m, None)]]), (0, [[(m, b"")]])]], m),
        ),
        Fault(
            "A Get reads blocks without asking their filters.",
            "get",
            _get_with(asks=False),
            lambda m: ([[(0, [[(b"", b""), (m, b"")]])]], b"a"),
        ),
        Fault(
            "Of two versions in a block, a Get takes the older one.",
            "get",
            _get_with(last=True),
            lambda m: ([[(0, [[(m, b""), (m, None)]])]], m),
        ),
        Fault(
            "A Get ends at the first table whose range has the key.",
            "get",
            _get_with(ends=True),
            lambda m: ([[(1, [[(b"", b""), (m, b"")]]), (0, [[(b"a", b"")]])]], b"a"),
        ),
        Fault(
            "A Get begins with the oldest table of level 0.",
            "get",
            _get_with(oldest=True),
            lambda m: ([[(0, [[(m, b"")]]), (1, [[(m, None)]])]], m),
        ),
    ),
    _reading_scene,
    _reading_files,
)
