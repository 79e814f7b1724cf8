"""Repairs of the damaged stores of the corpus, judged by the history that made them.

The bars, for each damaged store:

``current``
    The default of lsmkv's repair has no old value and no deleted key: all of its entries are those
    of one moment of the history (:func:`live_copies.judge`).
``proved``
    Of the entries that the files prove current at one of two moments (``proofs.py``), the default
    has at least as many as LevelDB's repair has at the last one.  LevelDB's always goes for that.
``counts``
    The plan counts what happens, in each way.  As many entries as it calls stale are in ``lost/``.
    As many as it keeps are in the tables of the repaired store: all entries of tables that stay on
    their levels, and at most all when tables are merged, or come from logs.  If the default states
    no loss, it has the whole state of a moment.  (The files do not show that the newest writes are
    missing, if the last log was cut.)
``sound``
    The repaired store can be opened, and ``verify`` finds nothing.

``make rescue`` fails for a fault that ``KNOWN`` does not name, and for one of these that no longer
occurs.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

from leveldbs import LevelDBs
from live_copies import STORE, Copy, Files, Outcome, State, judge
from patients import Patient, files_of
from proofs import Known, Proof

import lsmkv
from lsmkv import MemoryEnv
from lsmkv.files import Table

CURRENT, PROVED, COUNTS, SOUND = "current", "proved", "counts", "sound"
"""The bars."""
NO_MANIFEST = " without MANIFEST"
"""The end of the name of a bar, for damaged stores that have no MANIFEST that can be read."""
TARGET = "/new"
DEFAULT = "lsmkv"
LEVELDB = "LevelDB"


class Fault(NamedTuple):
    """A bar that was not reached."""

    bar: str
    text: str


class Result(NamedTuple):
    """What a tool made of a damaged store."""

    outcome: Outcome
    proved: int
    """Right entries, of those that the files prove current."""
    faults: list[Fault]


_NO_FILTER = "a lost block whose filter is lost may have held any older entry of its range"
_BETWEEN = "a table that is made again has the keys between those that the MANIFEST states"
_UNNAMED = "tables that the MANIFEST does not name may have keys that were deleted since"
_UNKNOWABLE = "without a MANIFEST nothing says that a table is missing"
_NOT_NEXT = "a log is used whose writes do not follow those before it"

KNOWN: dict[tuple[str, str], str] = {
    ("copied while in use, by name", PROVED): _BETWEEN,
    ("copied while in use, tables first", PROVED): _BETWEEN,
    ("copied while in use, logs first", PROVED): _BETWEEN,
    ("copied while in use, tables, MANIFEST, logs", PROVED): _BETWEEN,
    ("copied while in use, MANIFEST first", PROVED): _UNNAMED,
    ("an old CURRENT and MANIFEST restored", PROVED): _UNNAMED,
    ("copied while in use, by name", CURRENT + NO_MANIFEST): _UNKNOWABLE,
    ("copied while in use, tables first", CURRENT + NO_MANIFEST): _UNKNOWABLE,
    ("copied while in use, logs first", CURRENT + NO_MANIFEST): _UNKNOWABLE,
    ("copied while in use, tables, MANIFEST, logs", CURRENT + NO_MANIFEST): _UNKNOWABLE,
    ("disk full while it was copied", CURRENT + NO_MANIFEST): _UNKNOWABLE,
    ("two stores in one folder", CURRENT): _NOT_NEXT,
    ("table zeroed", PROVED): _NO_FILTER,
}
"""Faults that are known: the kind of damage, the bar, and the reason."""


def options_of(patient: Patient) -> dict[str, Any]:
    """What the patient's writer is opened with."""
    return {} if patient.comparator is None else {"comparator": patient.comparator}


OPTIONS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "keep_stale": {"keep_stale": True},
    "merge_all": {"merge_all": True},
}
"""The ways of lsmkv's repair."""
TOOLS = (*OPTIONS, LEVELDB)


def try_lsmkv(patient: Patient, copy: Copy, proof: Proof, tool: str) -> Result:
    """Repair with lsmkv."""
    env = copy.env()
    options = options_of(patient)
    faults: list[Fault] = []
    found: State = {}
    try:
        plan = lsmkv.repair_db(STORE, into=TARGET, env=env, **OPTIONS[tool], **options)
    except lsmkv.Error as error:
        faults.append(Fault(SOUND, f"{type(error).__name__}: {error}"))
    else:
        faults += _wrong_counts(plan, env)
        try:
            with lsmkv.DB(TARGET, env=env, **options) as db:
                found = dict(db)
                if problems := db.verify():
                    faults.append(Fault(SOUND, str(problems)))
        except lsmkv.Error as error:
            faults.append(Fault(SOUND, str(error)))
        if tool == DEFAULT and not states_loss(plan) and not is_moment(patient, copy, found):
            faults.append(Fault(COUNTS, "no loss is stated, but entries are lost or wrong"))
    outcome = judge(patient.run, copy, found)
    if tool == DEFAULT and outcome.old + outcome.ghosts > 0:
        faults.append(Fault(CURRENT, f"{outcome.old} old values, {outcome.ghosts} ghosts"))
    proved = max(proof.right(found), proof.right_before(found))
    return Result(outcome, proved, faults)


def is_moment(patient: Patient, copy: Copy, found: State) -> bool:
    """Whether entries are the whole state of a moment until the copy was made."""
    state: State = {}
    if not found:
        return True
    for key, value in patient.run.writes[: copy.after]:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
        if value == found.get(key) and state == found:
            return True
    return False


def _wrong_counts(plan: lsmkv.RepairPlan, env: MemoryEnv) -> list[Fault]:
    faults: list[Fault] = []
    set_aside = 0
    with env.open_directory(TARGET) as directory:
        if directory.exists("lost"):
            set_aside = _entries(files_of(env, f"{TARGET}/lost"))
    if set_aside != plan.stale:
        faults.append(Fault(COUNTS, f"{plan.stale} stale in the plan, {set_aside} in lost/"))
    used = [table for table in plan.tables if table.is_used]
    kept = sum(table.survey.entries - table.stale for table in used)
    logged = sum(log.operations for log in plan.logs)
    entries = _entries(files_of(env, TARGET))
    least = kept if plan.by_levels else 0
    if not least <= entries <= kept + logged:
        said = f"{kept} of tables and {logged} of logs in the plan"
        faults.append(Fault(COUNTS, f"{said}, {entries} in the repaired store"))
    return faults


def states_loss(plan: lsmkv.RepairPlan) -> bool:
    """Whether a plan says that anything may be lost."""
    if plan.lost_bytes > 0 or plan.stale > 0 or plan.left_in_lost or plan.unaccounted:
        return True
    logs = [*plan.survey.logs, *plan.survey.lost]
    return any(log.needed and log.problems for log in logs)


def _entries(files: Files) -> int:
    return sum(
        sum(1 for _ in Table(content).entries())
        for name, content in files.items()
        if name.endswith((".ldb", ".sst"))
    )


def try_leveldb(
    patient: Patient, copy: Copy, proof: Proof, path: Path, leveldbs: LevelDBs
) -> Result | None:
    """Repair with the LevelDB that can read the store: plyvel's, or Amulet's for Bedrock."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in copy.files.items():
        (path / name).write_bytes(content)
    found = leveldbs.repaired(
        str(path), patient.writer == "Bedrock", patient.comparator is not None
    )
    if found is None:
        return None
    return Result(judge(patient.run, copy, found), proof.right(found), [])


def trial(
    patient: Patient, known: Known, copy: Copy, path: Path, leveldbs: LevelDBs
) -> dict[str, Result]:
    """What each tool makes of a damaged store; LevelDB's repair works in ``path``."""
    proof = known.prove(copy.files)
    results = {tool: try_lsmkv(patient, copy, proof, tool) for tool in OPTIONS}
    theirs = try_leveldb(patient, copy, proof, path, leveldbs)
    if theirs is not None:
        results[LEVELDB] = theirs
        mine = results[DEFAULT]
        if mine.proved < theirs.proved:
            least = f"{mine.proved} of the proved entries, LevelDB {theirs.proved}"
            mine.faults.append(Fault(PROVED, least))
    if proof.has_manifest:
        return results
    return {
        tool: result._replace(
            faults=[Fault(bar + NO_MANIFEST, text) for bar, text in result.faults]
        )
        for tool, result in results.items()
    }
