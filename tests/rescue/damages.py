"""The corpus: damaged stores of each kind, made from patients whose history is known.

Each kind is a generator: from a patient and a source of random numbers it makes damaged copies.  A
kind that does not apply to a patient (two tables are exchanged, and there is one) makes none.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence

from live_copies import ORDERS, Copy, Files
from patients import PROGRAMS, Calls, Patient, by_calls, on_a_full_disk

from lsmkv.files import parse_name

Kind = Callable[[Patient, random.Random], Iterator[Copy]]
KINDS: dict[str, Kind] = {}
"""The kinds of damage, by the names that they have in the table."""

IN_USE = "copied while in use"
LIVE = 5
"""How many times as many copies of stores in use there are."""
PAGE = 4096


class Corpus:
    """The sound stores, and the damaged ones that are made of them."""

    def __init__(self, patients: Sequence[Patient], seed: int) -> None:
        self.patients = patients
        self._seed = seed

    def of(self, kind: str, each: int) -> list[tuple[Patient, Copy]]:
        """Damaged stores of a kind: at most ``each`` of every patient, no two alike.

        There are more copies of stores in use, since each order of files has hundreds.
        """
        each *= LIVE if kind.startswith(IN_USE) else 1
        made: list[tuple[Patient, Copy]] = []
        for patient in self.patients:
            rng = random.Random(f"{self._seed} {kind} {patient.name}")
            seen: set[tuple[tuple[str, bytes], ...]] = set()
            copies: list[Copy] = []
            for copy in KINDS[kind](patient, rng):
                key = tuple(sorted(copy.files.items()))
                if key not in seen:
                    seen.add(key)
                    copies.append(copy)
            rng.shuffle(copies)
            made += [(patient, copy) for copy in copies[:each]]
        return made


def _kind(name: str) -> Callable[[Kind], Kind]:
    def note(function: Kind) -> Kind:
        KINDS[name] = function
        return function

    return note


def _copy(patient: Patient, label: str, files: Files) -> Copy:
    """A damaged copy of a store at rest: what it lost was written before the copy was made."""
    return Copy(label, files, patient.writes, patient.writes)


def _tables(files: Files) -> list[str]:
    return [name for name in files if name.endswith((".ldb", ".sst"))]


def _logs(files: Files) -> list[str]:
    return [name for name in files if name.endswith(".log") and files[name]]


def _manifest(files: Files) -> str:
    return files["CURRENT"].decode().strip()


def _with(files: Files, name: str, content: bytes) -> Files:
    return {**files, name: content}


def _without(files: Files, *names: str) -> Files:
    return {name: content for name, content in files.items() if name not in names}


def _zeroed(content: bytes, start: int, end: int) -> bytes:
    return content[:start] + bytes(len(content[start:end])) + content[end:]


# Copies of a store in use


def _live(order: str) -> Kind:
    def copies(patient: Patient, rng: random.Random) -> Iterator[Copy]:
        """Copies that begin at a step of a flush or a compaction, and go on at a later one."""
        steps = _steps_of_work(patient)
        for begin in steps:
            later = [step for step in steps if step > begin]
            near = later[:3] + rng.sample(later[3:], min(3, len(later[3:])))
            yield from patient.run.copies(order, [begin], near)

    return copies


def _steps_of_work(patient: Patient) -> list[int]:
    """The steps at which more changes than the end of a log."""
    steps = patient.run.steps
    found = set()
    for at in range(1, len(steps)):
        before, now = _without(steps[at - 1], *_logs(steps[at - 1])), steps[at]
        if before != _without(now, *_logs(now)):
            found |= {at - 1, at}
    return sorted(found)


for _order in ORDERS:
    KINDS[f"{IN_USE}, {_order}"] = _live(_order)


@_kind("disk full while it was copied")
def disk_full_while_copied(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """One file is cut, and those after it are missing."""
    for order, sort in ORDERS.items():
        names = sort(list(patient.files))
        for at, name in enumerate(names):
            if "CURRENT" not in names[:at] and rng.random() < 0.5:
                continue  # half of the copies without CURRENT
            content = patient.files[name]
            files = {one: patient.files[one] for one in names[:at]}
            files[name] = content[: rng.randrange(len(content) + 1)]
            yield _copy(patient, f"{order}: full in {name}", files)


@_kind("disk full while it was written")
def disk_full_while_written(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """The disk takes no more bytes and no more files from some moment on."""
    program = PROGRAMS.get(patient.name.removeprefix("lsmkv, "))
    if program is None or patient.name == "lsmkv, large":
        return
    for room in rng.sample(range(10, 2 * patient.writes), min(20, patient.writes)):
        files, acknowledged = on_a_full_disk(program, room)
        if "CURRENT" in files:
            after = min(acknowledged + 1, patient.writes)
            yield Copy(f"full after {room} calls", files, acknowledged, after)


# Files that are missing


@_kind("table missing")
def table_missing(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """One table, or two."""
    tables = _tables(patient.files)
    for name in tables:
        yield _copy(patient, f"without {name}", _without(patient.files, name))
    for one, other in itertools.combinations(tables, 2):
        yield _copy(patient, f"without {one} and {other}", _without(patient.files, one, other))


@_kind("log missing")
def log_missing(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """The log in use."""
    for name in _logs(patient.files):
        yield _copy(patient, f"without {name}", _without(patient.files, name))


@_kind("CURRENT missing or empty")
def current_gone(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """CURRENT is missing, empty, zeroed, or of a MANIFEST that does not exist."""
    yield _copy(patient, "without CURRENT", _without(patient.files, "CURRENT"))
    for content in (b"", bytes(16), b"MANIFEST-999999\n", b"MANIFEST"):
        yield _copy(patient, f"CURRENT {content!r}", _with(patient.files, "CURRENT", content))


@_kind("MANIFEST missing or empty")
def manifest_gone(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """The MANIFEST is missing, empty or zeroed, with CURRENT and without."""
    name = _manifest(patient.files)
    size = len(patient.files[name])
    for files, label in (
        (_without(patient.files, name), "without MANIFEST"),
        (_with(patient.files, name, b""), "MANIFEST empty"),
        (_with(patient.files, name, bytes(size)), "MANIFEST zeroed"),
    ):
        yield _copy(patient, label, files)
        yield _copy(patient, f"{label}, without CURRENT", _without(files, "CURRENT"))


@_kind("MANIFEST cut or flipped")
def manifest_damaged(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """The MANIFEST lacks its end, or has a flipped bit."""
    name = _manifest(patient.files)
    content = patient.files[name]
    for at in rng.sample(range(len(content)), min(5, len(content))):
        yield _copy(patient, f"MANIFEST cut at {at}", _with(patient.files, name, content[:at]))
        yield _copy(
            patient, f"MANIFEST flipped at {at}", _with(patient.files, name, _flipped(content, at))
        )


# Files in the place of others


@_kind("two tables exchanged")
def exchanged(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """Each of two tables has the other's name."""
    for one, other in itertools.combinations(_tables(patient.files), 2):
        files = _with(patient.files, one, patient.files[other])
        yield _copy(patient, f"{one} and {other}", _with(files, other, patient.files[one]))


@_kind("table overwritten by another")
def overwritten(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """A table has the contents of another one of its store."""
    for one, other in itertools.permutations(_tables(patient.files), 2):
        yield _copy(patient, f"{one} is {other}", _with(patient.files, one, patient.files[other]))


@_kind("another store's table in its place")
def foreign_table(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """A table of another program's store has the name of one of this store."""
    for name in _tables(patient.files):
        for label, content in _foreign_tables(patient):
            yield _copy(patient, f"{name} is {label}", _with(patient.files, name, content))


@_kind("another store's table added")
def added_table(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """A table of another store has a number that this store does not use."""
    used = {parsed.number for name in patient.files if (parsed := parse_name(name)) is not None}
    free = [number for number in (1, 7, 11, 900) if number not in used]
    for number in free:
        for label, content in _foreign_tables(patient):
            files = _with(patient.files, f"{number:06}.ldb", content)
            yield _copy(patient, f"{number} is {label}", files)


@_kind("two stores in one folder")
def two_stores(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """Another store was copied over this one, or this one over the other."""
    for other_name, other in _others(patient):
        theirs = _without(other, "CURRENT", _manifest(other))
        yield _copy(patient, f"over {other_name}", {**theirs, **patient.files})
        kept = _without(patient.files, *theirs)
        if _tables(kept) or _logs(kept):
            yield _copy(patient, f"under the tables and logs of {other_name}", {**theirs, **kept})


def _others(patient: Patient) -> Iterator[tuple[str, Files]]:
    """Stores whose keys partly are those of the patient, and whose writes are others."""
    for name in ("churn", "ranges"):
        yield f"{name} with other values", _other_store(name)


_OTHERS: dict[str, Files] = {}


def _other_store(name: str) -> Files:
    if name not in _OTHERS:
        _OTHERS[name] = _made_otherwise(name)
    return _OTHERS[name]


def _made_otherwise(name: str) -> Files:
    """A store of the same program in which each value is another, and each write is made twice."""
    return by_calls(lambda store: PROGRAMS[name](_Otherwise(store))).steps[-1]


class _Otherwise:
    """Calls of a store, each of whose writes becomes two others."""

    def __init__(self, store: Calls) -> None:
        self._store = store
        self.flush = store.flush
        self.compact = store.compact

    def write(self, key: bytes, value: bytes | None) -> None:
        other = None if value is None else b"foreign " + value
        self._store.write(key, other)
        self._store.write(b"foreign " + key, other)


def _foreign_tables(patient: Patient) -> Iterator[tuple[str, bytes]]:
    for other_name, other in _others(patient):
        for name in _tables(other):
            yield f"{name} of {other_name}", other[name]


@_kind("an old file restored")
def restored(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """One file is as it was earlier, or a file that was removed is there again."""
    steps = patient.run.steps
    for at in rng.sample(range(len(steps) - 1), min(12, len(steps) - 1)):
        for name, content in steps[at].items():
            is_changed = name not in ("LOCK", "CURRENT") and patient.files.get(name) != content
            if is_changed and _is_finished(patient, name, content):
                files = _with(patient.files, name, content)
                yield _copy(patient, f"{name} of step {at}", files)


@_kind("an old CURRENT and MANIFEST restored")
def restored_manifest(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """CURRENT and the MANIFEST that it names are those of an earlier moment."""
    steps = patient.run.steps
    for at, step in enumerate(steps[:-1]):
        if "CURRENT" in step and (name := _manifest(step)) in step:
            files = {**patient.files, name: step[name], "CURRENT": step["CURRENT"]}
            if files != patient.files:
                yield _copy(patient, f"{name} of step {at}", files)


def _is_finished(patient: Patient, name: str, content: bytes) -> bool:
    """Whether a table is as long as it ever was; a log may be of any length."""
    longest = max(len(step.get(name, b"")) for step in patient.run.steps)
    return not name.endswith((".ldb", ".sst")) or len(content) == longest


# Files that are damaged


@_kind("table cut")
def table_cut(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """A table lacks its end, or everything."""
    for name in _tables(patient.files):
        content = patient.files[name]
        for size in (0, 1, len(content) // 2, len(content) - 48, rng.randrange(len(content))):
            yield _copy(
                patient, f"{name} cut at {size}", _with(patient.files, name, content[:size])
            )


@_kind("table zeroed")
def table_zeroed(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """A table, half of it, or one sector is zeros."""
    for name in _tables(patient.files):
        content = patient.files[name]
        sector = rng.randrange(0, len(content), 512)
        for start, end in (
            (0, len(content)),
            (len(content) // 2, len(content)),
            (0, len(content) // 2),
            (sector, sector + 512),
        ):
            files = _with(patient.files, name, _zeroed(content, start, end))
            yield _copy(patient, f"{name} zero from {start} to {end}", files)


@_kind("bits flipped in a table")
def table_flipped(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """One to three bits of a table are flipped."""
    for name in _tables(patient.files):
        for bits in (1, 1, 1, 2, 3):
            content = patient.files[name]
            places = [rng.randrange(len(content)) for _ in range(bits)]
            for at in places:
                content = _flipped(content, at)
            yield _copy(patient, f"{name} flipped at {places}", _with(patient.files, name, content))


@_kind("bits flipped in a log")
def log_flipped(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """One bit of a log is flipped."""
    for name in _logs(patient.files):
        content = patient.files[name]
        for at in (0, len(content) - 1, *(rng.randrange(len(content)) for _ in range(5))):
            yield _copy(
                patient,
                f"{name} flipped at {at}",
                _with(patient.files, name, _flipped(content, at)),
            )


@_kind("log cut")
def log_cut(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """A log lacks its end, or everything."""
    for name in _logs(patient.files):
        content = patient.files[name]
        for size in (0, *(rng.randrange(len(content)) for _ in range(4))):
            yield _copy(
                patient, f"{name} cut at {size}", _with(patient.files, name, content[:size])
            )


@_kind("half a log of zeros")
def log_zeroed(patient: Patient, rng: random.Random) -> Iterator[Copy]:
    """The first half, the second half, the middle, or a page of a log is zeros."""
    for name in _logs(patient.files):
        content = patient.files[name]
        size = len(content)
        page = rng.randrange(0, size, PAGE)
        for start, end in (
            (0, size // 2),
            (size // 2, size),
            (size // 4, size * 3 // 4),
            (page, page + PAGE),
        ):
            files = _with(patient.files, name, _zeroed(content, start, end))
            yield _copy(patient, f"{name} zero from {start} to {end}", files)


def _flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1 << (at % 8)
    return bytes(changed)
