"""Damage at rest is found, and never served.

Every byte of small stores is flipped in three ways; every file is cut at every length, emptied,
removed, made longer, swapped with every other one.  Whatever is read then is what was written, or
one of lsmkv's own errors is raised; and what reading meets, ``verify()`` finds.

Damage in a log is the exception: what was written before it is kept, a warning tells of it, the
rest lies in ``lost/``, and ``db.recovery`` and ``verify()`` say so.  Under ``paranoid_checks`` it
is refused, but for the last record.  A log that ends early, or is not there at all, is no different
from one that was never written.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from specimens import (
    PATH,
    Files,
    Specimen,
    State,
    files_of,
    kind_of,
    load,
    order_of,
    specimens,
)
from study import Outcome, Say

import lsmkv
from lsmkv import DB
from lsmkv.engine.format.filenames import LOST, FileType
from lsmkv.engine.table.format import FOOTER_SIZE, Footer

_ZEROS = 40
"""Of those at the end of a log, so many are damaged."""
MASKS = (0x01, 0x80, 0xFF)
TAILS = (bytes(1), bytes(7), bytes(4096), b"\x01", b"noise and more noise")
ABSENT = (b"\0", b"key", b"key02x", b"key99", b"kk\xff", b"log0", b"\xff\xff")


class Damage(NamedTuple):
    """One thing done to one file, or to two."""

    kind: str
    """``flip``, ``cut``, ``longer``, ``missing``, ``emptied`` or ``swapped``."""
    name: str
    at: int = 0
    mask: int = 0
    other: str = ""

    def applied(self, files: Files) -> Files:
        """The files after it."""
        changed = dict(files)
        data = files[self.name]
        if self.kind == "flip":
            flipped = bytes([data[self.at] ^ self.mask])
            changed[self.name] = data[: self.at] + flipped + data[self.at + 1 :]
        elif self.kind == "cut":
            changed[self.name] = data[: self.at]
        elif self.kind == "longer":
            changed[self.name] = data + TAILS[self.at]
        elif self.kind == "missing":
            del changed[self.name]
        elif self.kind == "emptied":
            changed[self.name] = b""
        else:
            changed[self.name], changed[self.other] = files[self.other], data
        return changed


def run(size: float, seed: int, say: Say) -> Outcome:
    """From size 25 on everything is tried, below it a sample; whole files always."""
    rng = random.Random(seed)
    outcome = Outcome()
    with _warnings() as warned:
        for specimen in specimens():
            small = [d for d in _small_damages(specimen) if rng.random() < size / 25]
            every = [*_whole_files(specimen), *small]
            say(f"{specimen.name}: {len(every):,}")
            for damage in every:
                outcome.count(damage.kind)
                warned.clear()
                trial = Trial(specimen, damage, warned)
                trial.run()
                outcome.count("refused" if trial.refused else "answered")
                outcome.violations += trial.violations
    return outcome


def _small_damages(specimen: Specimen) -> Iterator[Damage]:
    for name, data in specimen.files.items():
        # Zeros at a log's end are all alike.
        for at in range(min(len(data), len(data.rstrip(b"\0")) + _ZEROS)):
            for mask in MASKS:
                yield Damage("flip", name, at, mask)
            yield Damage("cut", name, at)


def _whole_files(specimen: Specimen) -> Iterator[Damage]:
    names = sorted(specimen.files)
    for number, name in enumerate(names):
        yield Damage("missing", name)
        yield Damage("emptied", name)
        for at in range(len(TAILS)):
            yield Damage("longer", name, at)
        for other in names[number + 1 :]:
            if specimen.files[name] != specimen.files[other]:
                yield Damage("swapped", name, other=other)


class Trial:
    """One store with one damage."""

    def __init__(self, specimen: Specimen, damage: Damage, warned: list[str]) -> None:
        self.specimen = specimen
        self.damage = damage
        self.violations: list[str] = []
        self.refused = False
        """Whether anything that was asked of the store raised an error of lsmkv's."""
        self._warned = warned
        self._kind = kind_of(damage.name)
        self._possible = self._allowed()

    def run(self) -> None:
        """Open it and read in every way; then once more, and under ``paranoid_checks``."""
        files = self.damage.applied(self.specimen.files)
        env = load(files)
        self._read(env)
        if self._kind is FileType.LOG:
            if not self.refused:
                self._judge_lost(env, files)
                self._read(env)  # what was kept stays kept
            self._read_paranoid(files)

    def _allowed(self) -> list[State]:
        """What the store may hold: everything, or what was written before damage in a log."""
        specimen, damage = self.specimen, self.damage
        allowed = [specimen.whole]
        logs = [name for name in (damage.name, damage.other) if name in specimen.record_ends]
        if logs and damage.kind != "longer":
            at = damage.at if damage.kind in ("flip", "cut") else 0
            first = min(specimen.batches_before(log, at) for log in logs)
            allowed.append(specimen.states[first])
        return allowed

    def _read(self, env: lsmkv.MemoryEnv) -> None:
        try:
            db = DB(PATH, env=env, **self.specimen.options)
        except lsmkv.Error as error:
            self._refuse(error)
            return
        except Exception as error:
            self._fail(f"opening raised {error!r}")
            return
        with db:
            self._read_all(db)
            self._judge_report(db)

    def _read_all(self, db: DB) -> None:
        refused = False
        for what in ("scan", "scan back", "get", "get absent", "scan"):
            try:
                self._possible = [state for state in self._possible if self._is(db, what, state)]
                if not self._possible:
                    self._fail(f"{what}: a wrong answer")
                    return
            except lsmkv.Error as error:
                refused = True
                self._refuse(error)
            except Exception as error:
                self._fail(f"{what} raised {error!r}")
                return
        try:
            # What an opening has left out was written by it into lost/, and is judged apart.
            found = any(f"/{LOST}/" not in (error.path or "") for error in db.verify())
        except lsmkv.Error as error:
            found = True
            self._refuse(error)
        except Exception as error:
            self._fail(f"verify raised {error!r}")
            return
        if refused and not found:
            self._fail("verify() finds nothing")
        if found:
            self.refused = True
        elif self._kind is FileType.TABLE and not self._means_nothing():
            self._fail("nobody noticed")

    def _is(self, db: DB, what: str, state: State) -> bool:
        """Whether reading in this way shows this state."""
        if what == "get":
            # Each by itself, so that one that is refused does not hide the others.
            refusal: lsmkv.Error | None = None
            for key in sorted({key for state in self.specimen.states for key in state}):
                try:
                    if db.get(key) != state.get(key):
                        return False
                except lsmkv.Error as error:
                    refusal = error
            if refusal is not None:
                raise refusal
            return True
        if what == "get absent":
            return all(db.get(key) == state.get(key) for key in ABSENT)
        back = what == "scan back"
        entries = sorted(state.items(), key=self._entry_order, reverse=back)
        return list(db.iterator(reverse=back)) == entries

    def _entry_order(self, entry: tuple[bytes, bytes]) -> Any:
        return order_of(self.specimen)(entry[0])

    def _means_nothing(self) -> bool:
        """Whether a table may go on as if nothing had been: padding, and what is not in use."""
        if self.damage.kind != "flip":
            return False
        data = self.specimen.files[self.damage.name]
        footer = Footer.decode(data[-FOOTER_SIZE:])
        start = len(data) - FOOTER_SIZE
        if self.damage.at >= start:
            flipped = self.damage.applied(self.specimen.files)[self.damage.name]
            found = Footer.decode(flipped[-FOOTER_SIZE:])
            same_metaindex = found.metaindex == footer.metaindex or self._without_filters()
            return found.index == footer.index and same_metaindex
        return self._without_filters() and self.damage.at >= footer.metaindex.offset

    def _without_filters(self) -> bool:
        """Whether nobody asks where the filters lie."""
        return self.specimen.options.get("bloom_filter_bits") == 0

    def _judge_report(self, db: DB) -> None:
        """``db.recovery`` says whether writes were left out, and ``verify`` names what it says."""
        if self._kind is not FileType.LOG or self.damage.kind != "flip":
            return
        named = {error.path for error in db.verify()}
        for log in db.recovery.dropped:
            if f"{PATH}/{log.kept_as}" not in named:
                self._fail(f"verify does not name {log.kept_as}")

    def _judge_lost(self, env: lsmkv.MemoryEnv, files: Files) -> None:
        """Where a prefix was kept, a warning said so, and the rest was set aside."""
        if self._possible == [self.specimen.whole] or self.damage.kind in ("cut", "missing"):
            return
        ends = self.specimen.record_ends
        if not self._warned and self.damage.kind != "emptied":
            self._fail("writes are missing, and nobody was warned")
        last = self.damage.name == self.specimen.logs[-1] and (
            len(ends[self.damage.name]) < 2 or self.damage.at >= ends[self.damage.name][-2]
        )
        if self.damage.kind == "flip" and not last:
            lost = files_of(env, LOST)
            if lost.get(self.damage.name) != files[self.damage.name]:
                self._fail(f"{self.damage.name} is not in {LOST}/")

    def _read_paranoid(self, files: Files) -> None:
        specimen, damage = self.specimen, self.damage
        try:
            with DB(PATH, env=load(files), paranoid_checks=True, **specimen.options) as db:
                found = dict(db)
        except lsmkv.Error:
            return
        if found != specimen.whole:
            kept = next((n for n, s in enumerate(specimen.states) if s == found), None)
            ends = specimen.record_ends[damage.name]
            newest = damage.name == specimen.logs[-1]
            if kept is None:
                self._fail("a wrong answer under paranoid_checks")
            elif damage.kind == "flip" and not (newest and kept == len(specimen.states) - 2):
                self._fail("not refused under paranoid_checks")
            elif damage.kind == "cut" and not newest and damage.at < ends[-1]:
                self._fail("a gap between logs is not refused under paranoid_checks")

    def _refuse(self, error: lsmkv.Error) -> None:
        self.refused = True
        if isinstance(error, lsmkv.CorruptionError) and error.path is None:
            self._fail(f"an error that names no file: {error}")

    def _fail(self, what: str) -> None:
        self.violations.append(f"{self.specimen.name}: {self.damage}: {what}")


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the engine warns of, and nowhere else."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger = logging.getLogger("lsmkv")
    handler = Handler(logging.WARNING)
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lsmkv.RecoveryWarning)
            yield found
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
