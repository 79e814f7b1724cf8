"""Lab 7: memtable and merging iterators, over the log and the tables of a real store."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, SupportsIndex, overload

import lsmkv
from lsmkv.course.failure import CheckFailure, require, shown
from lsmkv.course.given import Block, BlockBuilder
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs.formats import (
    KIND_DELETION,
    KIND_VALUE,
    MAX_SEQUENCE,
    TAG_SIZE,
    table_of,
    version_key,
)
from lsmkv.course.labs.formats import write as write_file
from lsmkv.course.labs.temporary_stores import (
    files_of,
    require_content,
    require_content_by_leveldb,
    scratch,
)
from lsmkv.course.pipe import MUTABLE
from lsmkv.engine.format.key_order import KeyOrder
from lsmkv.engine.format.keys import InternalKeyComparator
from lsmkv.files import Log, Table, make_key, make_name, parse_key
from lsmkv.tools.text import count

Entry = tuple[bytes, bytes]
"""An internal key, and a value."""
Pair = tuple[bytes, bytes]
"""A user key, and a value."""

ORDER = InternalKeyComparator(lsmkv.BytewiseComparator())
USER_KEYS = (b"", b"a", b"a\x00", b"aa", b"ab", b"b", b"b" * 12, b"\x7f", b"\x80", b"\xff")


class Write(NamedTuple):
    """A put or, without a value, a deletion."""

    sequence: int
    key: bytes
    value: bytes | None

    @property
    def entry(self) -> Entry:
        """Its form in a memtable or a table."""
        return version_key(self.key, self.sequence, self.value), self.value or b""


def history(seed: int, number: int) -> list[Write]:
    """Writes with ascending sequences, some of them far apart, so that all bytes of a tag
    matter."""
    dice = random.Random(seed)
    sequences = sorted(dice.sample(range(1, 1 << dice.choice((7, 9, 20))), number))
    return [
        Write(at, dice.choice(USER_KEYS), None if dice.random() < 0.3 else b"v%d" % at)
        for at in sequences
    ]


def in_order(writes: Iterable[Write]) -> list[Entry]:
    """Their entries, in the engine's order."""
    return sorted((write.entry for write in writes), key=lambda entry: ORDER.sort_key(entry[0]))


def seen(writes: Iterable[Write], sequence: int) -> list[Pair]:
    """The content of a dict after the writes up to a sequence, in order."""
    model: dict[bytes, bytes] = {}
    for write in writes:
        if write.sequence <= sequence:
            model.pop(write.key, None)
            if write.value is not None:
                model[write.key] = write.value
    return sorted(model.items())


def described(entry: object) -> str:
    """An entry in a message."""
    if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], bytes)):
        return shown(entry)
    key, sequence, kind = parse_key(entry[0])
    if sequence is None:
        return shown(entry)
    what = f"= {entry[1]!r}" if kind == KIND_VALUE else "deleted"
    return f"{key!r} {what} at {sequence}"


def ordered(code: ModuleType) -> str:
    """Check that internal keys sort by user key, then the newest first."""
    sequences = ((1, 1), (2, 0), (255, 1), (256, 1), (1 << 20, 0), (1 << 40, 1))
    keys = [make_key(key, sequence, kind) for key in USER_KEYS for sequence, kind in sequences]
    for a in keys:
        for b in keys:
            expected = ORDER.compare(a, b)
            first, second = code.sort_key(a), code.sort_key(b)
            require(
                type(first) is tuple and type(second) is tuple,
                f"sort_key must return a tuple, but your code returned {shown(first)}.",
            )
            got = (first > second) - (first < second)
            hint = "User keys ascend byte by byte; the tag is not part of a user key."
            if a[:-TAG_SIZE] == b[:-TAG_SIZE]:
                hint = (
                    "For each user key the newest version comes first, so a larger tag must have a"
                    " smaller sort key. A tag is little-endian: its bytes sort in another order."
                )
            words = {-1: "come before", 0: "equal", 1: "come after"}
            require(
                got == expected,
                f"By sort_key, {tuple(parse_key(a))} must {words[expected]} {tuple(parse_key(b))}"
                f" (user key, sequence, kind).\n{hint}",
            )
    return f"{len(keys) ** 2:,} pairs"


class Watched(list[Entry]):
    """A memtable that counts how many of its entries are looked at."""

    SHARED = MUTABLE
    looks = 0

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> Entry: ...

    @overload
    def __getitem__(self, at: slice, /) -> list[Entry]: ...

    def __getitem__(self, at: SupportsIndex | slice, /) -> Entry | list[Entry]:
        if isinstance(at, slice):
            found = super().__getitem__(at)
            self.looks += len(found)
            return found
        self.looks += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[Entry]:
        for at in range(len(self)):
            yield self[at]

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self.looks += len(self)
        super().sort(key=key, reverse=reverse)


MOST_LOOKS = 40
LARGE = 3000


def large() -> Watched:
    """A memtable of many entries."""
    return Watched(Write(n + 1, b"key%05d" % n, b"value").entry for n in range(LARGE))


def inserted(code: ModuleType) -> str:
    """Check that a memtable is sorted after each insert, for any order of the writes."""
    for seed in range(6):
        writes = history(seed, 40)
        dice = random.Random(seed)
        dice.shuffle(writes)
        memtable: list[Entry] = []
        for number, write in enumerate(writes, 1):
            internal_key, value = write.entry
            code.insert(memtable, internal_key, value)
            expected = in_order(writes[:number])
            if memtable == expected:
                continue
            hint = "Each version is a separate entry: a newer one does not replace it."
            if len(memtable) == number:
                hint = "It goes where sort_key puts it, before the older versions of its key."
            at = first_difference(memtable, expected)
            raise CheckFailure(
                f"After {count(number, 'insert')}, the last one {described(write.entry)}, the"
                f" memtable has {count(len(memtable), 'entry')}. Entry {at} must be"
                f" {described_at(expected, at)}, and is {described_at(memtable, at)}.\n{hint}"
            )
    watched = large()
    code.insert(watched, make_key(b"key01234", LARGE + 1, KIND_VALUE), b"new")
    require(
        watched.looks <= MOST_LOOKS,
        f"insert looked at {watched.looks:,} entries of a memtable of {LARGE:,}.\n"
        "The list is sorted: bisect it. Sorting it again looks at every entry.",
    )
    return "240 entries in six memtables"


def first_difference(got: Sequence[object], expected: Sequence[object]) -> int:
    """The first place where two lists differ."""
    shorter = min(len(got), len(expected))
    return next((at for at in range(shorter) if got[at] != expected[at]), shorter)


def described_at(entries: Sequence[object], at: int) -> str:
    """An entry of a list in a message, or a note that the list is too short."""
    return described(entries[at]) if at < len(entries) else "none"


def looked_up(code: ModuleType) -> str:
    """The newest version at or below a sequence, as the engine's own search of a block finds it."""
    asked = 0
    order = KeyOrder(lsmkv.BytewiseComparator())
    for seed in range(6):
        writes = history(seed, 60)
        memtable = in_order(writes)
        builder = BlockBuilder(16)
        for internal_key, value in memtable:
            builder.add(internal_key, value)
        block = Block(builder.finish())
        some = [write.sequence for write in writes[::7]]
        for key in (*USER_KEYS, b"none"):
            for sequence in (0, *some, *(one - 1 for one in some), MAX_SEQUENCE):
                tag, found = block.get(key, sequence, order)
                expected = None if found is None else (key + int(tag).to_bytes(8, "little"), found)
                got = code.look_up(memtable, key, sequence)
                asked += 1
                if got == expected:
                    continue
                hint = "The newest version at or below the sequence, itself included."
                if expected is None:
                    hint = "There is no such version: the next entry has another key."
                    if got is not None and bytes(got[0][:-TAG_SIZE]) == key:
                        hint = "All versions of the key are newer than that: None."
                elif parse_key(expected[0]).kind == KIND_DELETION and got is None:
                    hint = (
                        "A deletion is an answer, and ends the search. None says that older"
                        " tables must be asked."
                    )
                raise CheckFailure(
                    f"look_up of {key!r} as of sequence {sequence} must find"
                    f" {'None' if expected is None else described(expected)}, but your code found"
                    f" {'None' if got is None else described(got)}.\n{hint}"
                )
    watched = large()
    code.look_up(watched, b"key02345", MAX_SEQUENCE)
    require(
        watched.looks <= MOST_LOOKS,
        f"look_up looked at {watched.looks:,} entries of a memtable of {LARGE:,}.\n"
        "Bisect for the internal key of the newest version that is allowed.",
    )
    return f"{asked:,} questions"


def spread(writes: Sequence[Write], number: int, seed: int) -> list[list[Entry]]:
    """The entries of some writes, distributed over sorted runs at random; some runs may be
    empty."""
    dice = random.Random(seed)
    runs: list[list[Write]] = [[] for _ in range(number)]
    for write in writes:
        dice.choice(runs).append(write)
    return [in_order(run) for run in runs]


def merged(code: ModuleType) -> str:
    """Check all entries of all runs, in order, both ways."""
    for seed, number in enumerate((0, 1, 2, 3, 8, 40)):
        writes = history(seed, 60) if number else []
        runs = spread(writes, number, seed)
        for backwards in (False, True):
            given = [run[::-1] if backwards else run for run in runs]
            expected = in_order(writes)
            if backwards:
                expected.reverse()
            got = list(code.merge([iter(run) for run in given], backwards))
            at = first_difference(got, expected)
            hint = "The next entry is the one with the least sort_key among the heads of the runs."
            if backwards:
                hint = "Backwards, it is the one with the greatest sort_key."
            if len(got) != len(expected):
                hint = "Each entry of each run comes out once, with older versions and deletions."
            require(
                got == expected,
                f"merge of {count(number, 'run')}{', backwards' if backwards else ''}: entry {at}"
                f" must be {described_at(expected, at)}, and is {described_at(got, at)}; there are"
                f" {count(len(expected), 'entry')}, and yours are {len(got)}.\n{hint}",
            )
    return "0 to 40 runs, forwards and backwards"


def lazily(code: ModuleType) -> str:
    """Check that an entry is taken from a run when it is needed, not before."""
    runs = [
        [Write(100 * n + m + 1, b"%03d" % (20 * m + n), b"v").entry for m in range(50)]
        for n in range(20)
    ]
    taken = 0

    def one_by_one(run: list[Entry]) -> Iterator[Entry]:
        nonlocal taken
        for entry in run:
            taken += 1
            yield entry

    for backwards in (False, True):
        taken = 0
        given = [run[::-1] if backwards else run for run in runs]
        result = iter(code.merge([one_by_one(run) for run in given], backwards))
        for number in range(1, 31):
            next(result)
            most = len(runs) + number
            require(
                taken <= most,
                f"For the first {count(number, 'entry')} of"
                f" {len(runs)} runs with 50 each, merge has taken {taken} from them, but {most} are"
                " enough: one of each run, and one for each that came out.\nA scan may end after a"
                " few entries, and each one that is taken may cost a read. Keep only the head of"
                " each run.",
            )
    return "30 entries of 20 runs need at most 50 from them"


def forwards(code: ModuleType) -> str:
    """Compare the views of readers at several sequences with a dict."""
    return viewed(code, False)


def falling(code: ModuleType) -> str:
    """The same, from the end."""
    return viewed(code, True)


def viewed(code: ModuleType, backwards: bool) -> str:
    """Compare what a reader sees with the content of a dict."""
    name = "visible_backwards" if backwards else "visible"
    readers = 0
    for seed in range(12):
        writes = history(seed, 1 + 5 * seed)
        entries = in_order(writes)
        if backwards:
            entries.reverse()
        for sequence in (0, *(write.sequence for write in writes[::3]), MAX_SEQUENCE):
            expected = seen(writes, sequence)
            if backwards:
                expected.reverse()
            got = list(getattr(code, name)(iter(entries), sequence))
            readers += 1
            if got != expected:
                few = f", of {', '.join(map(described, entries))}," if len(entries) < 7 else ""
                raise CheckFailure(
                    f"{name} of {count(len(entries), 'entry')}{few} as of sequence"
                    f" {sequence}: {reason(writes, sequence, got, expected, backwards)}"
                )
    require_lazy(code, name, backwards)
    return f"{readers} readers, who take entries as they go"


def require_lazy(code: ModuleType, name: str, backwards: bool) -> None:
    """Fail if a reader's first pairs take more entries than they need."""
    versions = 3
    writes = [Write(n + 1, b"%03d" % (n // versions), b"v") for n in range(50 * versions)]
    entries = in_order(writes)
    if backwards:
        entries.reverse()
    taken = 0

    def one_by_one() -> Iterator[Entry]:
        nonlocal taken
        for entry in entries:
            taken += 1
            yield entry

    result = iter(getattr(code, name)(one_by_one(), MAX_SEQUENCE))
    for number in range(1, 11):
        next(result)
        most = versions * number + 1
        require(
            taken <= most,
            f"For the first {count(number, 'pair')} of {len(entries)} entries, {versions} of each"
            f" key, {name} has taken {taken} of them, but {most} are enough.\nA scan may end after"
            " a few pairs, and each entry may cost a read. Yield a pair as soon as it is certain;"
            " do not make a list of the entries, or of the pairs.",
        )


def reason(
    writes: Sequence[Write],
    sequence: int,
    got: Sequence[object],
    expected: Sequence[Pair],
    backwards: bool,
) -> str:
    """Describe the fault in the pairs that a reader sees, and the likely reason."""
    at = first_difference(got, expected)
    wrong = got[at] if at < len(got) else None
    right = expected[at] if at < len(expected) else None
    words = (
        f"pair {at} must be {'none' if right is None else right}, and is"
        f" {'none' if wrong is None else shown(wrong)}."
    )
    if not isinstance(wrong, tuple | None) or (wrong and len(wrong) != 2):
        return f"{words}\nA reader gets pairs of a user key and a value."
    keys = [one[0] for one in got if isinstance(one, tuple) and one]
    if len(keys) != len(set(keys)):
        return f"{words}\nA key occurs twice: a reader sees one version of each user key."
    if wrong is not None and (right is None or wrong[0] != right[0]):
        versions = [one for one in writes if one.key == wrong[0] and one.sequence <= sequence]
        if versions and versions[-1].value is None:
            return (
                f"{words}\n{wrong[0]!r} is deleted at {versions[-1].sequence}: the deletion hides"
                " the older versions of its key, and itself."
            )
        if all(one.key != wrong[0] for one in writes):
            return f"{words}\n{wrong[0]!r} is not a user key. Did you cut off its tag?"
        if not versions:
            return f"{words}\nAll versions of {wrong[0]!r} are newer than {sequence}: skip them."
    if right is not None and wrong is not None and right[0] == wrong[0]:
        return f"{words}\nFor each key, a reader sees the newest version at or below its sequence."
    if right is not None:
        newest = max(one.sequence for one in writes if one.key == right[0])
        hint = f"{right[0]!r} has a version at or below {sequence}, a value."
        if newest > sequence:
            hint += f" Version {newest} is too new for this reader: continue with older ones."
        if backwards and at == len(expected) - 1 and len(got) == len(expected) - 1:
            hint = "After the last entry, the pair that you kept must still be yielded."
        return f"{words}\n{hint}"
    return words


def in_the_engine(code: ModuleType) -> str:
    """Compare the student's merge of a store's log and tables with the store's own iterators."""
    with scratch() as directory:
        store = os.path.join(directory, "store")
        with lsmkv.DB(store, create_if_missing=True, compression=None, seek_compaction=False) as db:
            snapshots = [snapshot for part in range(6) for snapshot in fill(db, part)]
            memtable, tables = sources(code, store)
            for snapshot in snapshots:
                same_pairs(code, memtable, tables, snapshot)
                snapshot.close()
        content = dict(code.visible(code.merge([memtable, *tables], False), MAX_SEQUENCE))
        everything = {key[:-TAG_SIZE]: None for run in (memtable, *tables) for key, _ in run}
        by_leveldb = require_content_by_leveldb(
            store, {**everything, **content}, "The store that your merge has read"
        )
        flushed = os.path.join(directory, "flushed")
        entries = flush(code, flushed)
    number = sum(map(len, tables))
    return (
        f"your merge of a store's log ({len(memtable)} entries) and {len(tables)} tables"
        f" ({number} entries) shows, at {len(snapshots)} snapshots and both ways, what DB.iterator"
        f" shows{by_leveldb}; a table of your memtable's {entries} entries opens as a store"
    )


def fill(db: lsmkv.DB, part: int) -> Iterator[lsmkv.Snapshot]:
    """Write a part of a store's content, with a snapshot in the middle; flush all parts but one."""
    dice = random.Random(part)
    for number in range(120):
        key = b"key%03d" % dice.randrange(150)
        if dice.random() < 0.3:
            db.delete(key)
        else:
            db.put(key, b"value %d of part %d" % (number, part))
        if number == 60:
            yield db.snapshot()
    yield db.snapshot()
    if part < 5:
        db.flush()


def sources(code: ModuleType, store: str) -> tuple[list[Entry], list[list[Entry]]]:
    """The student's memtable with the log's writes, and all entries of each table."""
    memtable: list[Entry] = []
    for one in logged(files_of(store, "log")):
        code.insert(memtable, *one.entry)
    tables: list[list[Entry]] = []
    for path in files_of(store, "table"):
        with Table(path) as table:
            tables.append(
                [
                    (make_key(entry.user_key, entry.sequence, entry.kind), entry.value)
                    for entry in table.entries()
                ]
            )
    return memtable, tables


def logged(paths: Sequence[str]) -> Iterator[Write]:
    """The writes in a store's logs."""
    for path in paths:
        with Log(path) as log:
            for record in log.records():
                for one in record.batch.operations():
                    yield Write(one.sequence, one.key, one.value)


def same_pairs(
    code: ModuleType,
    memtable: list[Entry],
    tables: list[list[Entry]],
    snapshot: lsmkv.Snapshot,
) -> None:
    """Fail unless the student's iterators and the engine's show the same at a snapshot."""
    for backwards in (False, True):
        runs = [run[::-1] if backwards else run for run in (memtable, *tables)]
        look = code.visible_backwards if backwards else code.visible
        got = list(look(code.merge([iter(run) for run in runs], backwards), snapshot.sequence))
        expected = list(snapshot.iterator(reverse=backwards))
        at = first_difference(got, expected)
        require(
            got == expected,
            f"At the snapshot of sequence {snapshot.sequence},{' backwards,' * backwards} pair {at}"
            f" of DB.iterator is {expected[at] if at < len(expected) else 'none'}, and of yours"
            f" {got[at] if at < len(got) else 'none'}. The versions of that key are"
            f" {versions(memtable, tables, got, expected, at)}.",
        )


def versions(
    memtable: list[Entry],
    tables: list[list[Entry]],
    got: Sequence[Pair],
    expected: Sequence[Pair],
    at: int,
) -> str:
    """All versions that a store has of the key about which two lists differ."""
    keys = [pairs[at][0] for pairs in (expected, got) if at < len(pairs)]
    found = [
        f"{described((key, value))} in {'the log' if number == 0 else f'table {number}'}"
        for number, run in enumerate((memtable, *tables))
        for key, value in run
        if keys and key[:-TAG_SIZE] == keys[0]
    ]
    return "; ".join(found)


def flush(code: ModuleType, directory: str) -> int:
    """Write the student's memtable into the only table of a store; returns the number of
    entries."""
    dice = random.Random(77)
    content: dict[bytes, bytes | None] = {}
    memtable: list[Entry] = []
    for sequence in range(1, 400):
        key = b"user:%03d" % dice.randrange(200)
        value = None if dice.random() < 0.2 else b"value %d" % sequence
        code.insert(memtable, *Write(sequence, key, value).entry)
        content[key] = value
    try:
        table = table_of(memtable)
    except ValueError as error:
        raise CheckFailure(f"The engine cannot flush this memtable: {error}.") from None
    with lsmkv.LocalEnv().open_directory(directory, create=True) as folder:
        write_file(folder, make_name("table", 5), table)
    lsmkv.repair_db(directory)
    what = "A store of one table, flushed from your memtable"
    require_content(directory, content, what)
    require_content_by_leveldb(directory, content, what)
    return len(memtable)


SAMPLE: tuple[tuple[str, tuple[Write, ...]], ...] = (
    ("memtable", (Write(9, b"ant", b"new"), Write(8, b"bee", None))),
    ("table 2", (Write(7, b"ant", None), Write(6, b"cat", b"purr"))),
    ("table 1", (Write(2, b"ant", b"old"), Write(3, b"bee", b"buzz"), Write(4, b"cat", b"meow"))),
)
"""Three runs, and the writes in each of them."""


def sample() -> list[tuple[Entry, str]]:
    """The entries of the three runs in order, each with the name of its run."""
    where = {write.entry: name for name, writes in SAMPLE for write in writes}
    return [(entry, where[entry]) for entry in in_order(w for _, ws in SAMPLE for w in ws)]


def drawing() -> str:
    """Three runs merged, byte by byte, and what readers at two sequences see."""
    writes = sorted(write for _, run in SAMPLE for write in run)
    heads = {"now": MAX_SEQUENCE, "at 7": 7, "at 3": 3}
    lines = [f"{'internal key':<32}  {'it says':<10}  from      now    at 7   at 3"]
    for (internal_key, value), name in sample():
        key, sequence, kind = parse_key(internal_key)
        what = f"{sequence} {value.decode() if kind else 'deletion'}"
        cells: list[str] = []
        for reader in heads.values():
            newest = max(
                (one[0] for one in writes if one.key == key and one.sequence <= reader), default=0
            )
            mark = ("seen" if kind else "hides") if newest == sequence else ""
            cells.append(f"{mark:<5}")
        lines.append(
            f"{internal_key.hex(' '):<32}  {what:<10}  {name:<8}  {'  '.join(cells)}".rstrip()
        )
    lines.append("")
    for head, reader in heads.items():
        pairs = ", ".join(f"{key.decode()}={value.decode()}" for key, value in seen(writes, reader))
        lines.append(f"{head + ':':<5} {pairs}")
    return "\n".join(lines) + "\n"


LAB = Lab(
    number=7,
    slug="merging",
    title="Memtable and merging iterators",
    functions=("sort_key", "insert", "look_up", "merge", "visible", "visible_backwards"),
    checks=(
        Check("the order of entries", ordered),
        Check("a sorted memtable", inserted),
        Check("as of a sequence", looked_up),
        Check("merging runs", merged),
        Check("merging as it goes", lazily),
        Check("what a reader sees", forwards),
        Check("what a reader sees backwards", falling),
        Check("in the real engine", in_the_engine),
    ),
    drawing=drawing,
)
