"""A sample of the corpus of damaged stores, and that the corpus finds what it is to find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trials
from damages import KINDS, Corpus
from leveldbs import LevelDBs
from live_copies import Copy, State
from patients import PROGRAMS, Patient, by_steps, entries_of, patients
from proofs import Known
from run_rescue import BEGIN, END, lines
from trials import COUNTS, CURRENT, DEFAULT, KNOWN, NO_MANIFEST, PROVED, SOUND, TOOLS, trial

import lsmkv

ROOT = Path(__file__).parents[2]
SEED = 1


@pytest.fixture(scope="module")
def churn() -> Patient:
    """Keys that were overwritten and deleted, through flushes and compactions."""
    return Patient("lsmkv, churn", "lsmkv", by_steps(PROGRAMS["churn"]))


@pytest.fixture(scope="module")
def ranges() -> Patient:
    """Tables of four ranges of keys, and newer ones above them."""
    return Patient("lsmkv, ranges", "lsmkv", by_steps(PROGRAMS["ranges"]))


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> list[Patient]:
    """All patients."""
    return list(patients(tmp_path_factory.mktemp("patients")))


@pytest.fixture(scope="module")
def leveldbs() -> Iterator[LevelDBs]:
    """The LevelDBs that are installed."""
    with LevelDBs() as found:
        yield found


class NoLevelDB(LevelDBs):
    """None is installed."""

    def repaired(self, path: str, is_bedrock: bool, is_indexeddb: bool) -> State | None:
        return None


def unknown_faults(
    kind: str, among: list[Patient], each: int, path: Path, leveldbs: LevelDBs
) -> list[str]:
    """Repair damaged stores of a kind; the bars that are not reached, but for known ones."""
    faults: list[str] = []
    stores = Corpus(among, SEED).of(kind, each)
    assert stores
    known = {patient.name: Known(patient) for patient in among}
    for patient, copy in stores:
        for tool, result in trial(
            patient, known[patient.name], copy, path / "repaired", leveldbs
        ).items():
            faults += [
                f"{patient.name}, {copy.label}: {tool}: {bar}: {text}"
                for bar, text in result.faults
                if (kind, bar) not in KNOWN
            ]
    return faults


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", KINDS)
def test_lsmkv_repairs_as_the_bars_demand(
    kind: str, churn: Patient, ranges: Patient, tmp_path: Path
) -> None:
    assert unknown_faults(kind, [churn, ranges], 1, tmp_path, NoLevelDB()) == []


@pytest.mark.long
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", KINDS)
def test_lsmkv_repairs_at_least_as_well_as_leveldb(
    kind: str, everyone: list[Patient], tmp_path: Path, leveldbs: LevelDBs
) -> None:
    assert unknown_faults(kind, everyone, 1, tmp_path, leveldbs) == []


@pytest.mark.long
def test_every_entry_of_a_patient_is_in_its_history(everyone: list[Patient]) -> None:
    assert {"lsmkv", "Chromium"} <= {patient.writer for patient in everyone}
    for patient in everyone:
        entries = [one for name in patient.files for one in entries_of(name, patient.files[name])]
        assert entries
        for sequence, key, value in entries:
            assert patient.run.writes[sequence - 1] == (key, value), patient.name


# What the files prove


@pytest.mark.parametrize("name", ["churn", "ranges"])
def test_a_sound_store_proves_all_of_its_entries(name: str, request: Any) -> None:
    patient: Patient = request.getfixturevalue(name)
    proof = Known(patient).prove(patient.files)
    assert proof.last == patient.writes
    assert proof.current == patient.run.state(patient.writes)


def test_a_missing_table_leaves_what_is_outside_its_keys_proved(ranges: Patient) -> None:
    files = dict(ranges.files)
    del files["000014.ldb"]  # overwrites of the keys 1000 to 2039
    proof = Known(ranges).prove(files)
    truth = ranges.run.state(ranges.writes)
    assert proof.last == ranges.writes
    assert proof.current == {key: truth[key] for key in truth if key[:1] in (b"0", b"3")}
    del files["MANIFEST-000004"]  # which states these keys, and which writes the table has
    assert Known(ranges).prove(files).current == {}


def test_a_missing_log_takes_the_store_back_to_the_moment_before_it(ranges: Patient) -> None:
    files = {name: ranges.files[name] for name in ranges.files if not name.endswith(".log")}
    proof = Known(ranges).prove(files)
    assert proof.last < ranges.writes
    assert proof.current == ranges.run.state(proof.last)


def test_the_moment_before_a_gone_write_is_proved_too(ranges: Patient) -> None:
    files = {name: ranges.files[name] for name in ranges.files if name != "000016.ldb"}
    proof = Known(ranges).prove(files)
    before = ranges.run.state(188)  # the table has the writes 189 to 208
    assert proof.before == before
    assert proof.right_before(before) == len(before)
    assert proof.right(before) < len(proof.current)
    assert proof.right(ranges.run.state(ranges.writes)) == len(proof.current)


def test_a_value_that_is_newer_than_what_can_be_read_is_right(ranges: Patient) -> None:
    files = {name: ranges.files[name] for name in ranges.files if not name.endswith(".log")}
    proof = Known(ranges).prove(files)
    assert proof.right(ranges.run.state(ranges.writes)) == len(proof.current)
    assert proof.right(ranges.run.state(proof.last)) == len(proof.current)
    assert proof.right(ranges.run.state(160)) < len(proof.current)


def test_a_hole_in_a_log_leaves_what_was_written_later_proved(ranges: Patient) -> None:
    files = dict(ranges.files)
    files["000015.log"] = bytes(100) + files["000015.log"][100:]
    proof = Known(ranges).prove(files)
    truth = ranges.run.state(ranges.writes)
    assert proof.last == ranges.writes
    assert all(truth[key].startswith(b"fourth") for key in proof.current)
    assert 10 < len(proof.current) < 20


def earlier(patient: Patient, name: str) -> bytes:
    """A file that was removed, as it was once it was finished."""
    return max((step[name] for step in patient.run.steps if name in step), key=len)


def test_a_table_that_was_removed_proves_nothing(churn: Patient) -> None:
    files = churn.files | {"000006.ldb": earlier(churn, "000006.ldb")}
    assert Known(churn).prove(files) == Known(churn).prove(churn.files)


def test_tables_that_a_missing_one_was_made_of_prove_its_entries(churn: Patient) -> None:
    inputs = {name: earlier(churn, name) for name in ("000014.ldb", "000016.ldb")}
    files = churn.files | inputs
    del files["000017.ldb"]
    truth = churn.run.state(churn.writes)
    assert Known(churn).prove(files).current == truth
    del files["000016.ldb"]
    assert len(Known(churn).prove(files).current) < len(truth) / 2


# The bars find what they are to find


def trial_of(kind: str, patient: Patient, path: Path, leveldbs: LevelDBs) -> set[str]:
    """The bars that the default does not reach, for damaged stores of a kind."""
    known = Known(patient)
    return {
        fault.bar
        for one, copy in Corpus([patient], SEED).of(kind, 20)
        for fault in trial(one, known, copy, path / "repaired", leveldbs)[DEFAULT].faults
    }


def test_old_values_and_deleted_keys_are_found(
    ranges: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trial_of("table missing", ranges, tmp_path, NoLevelDB()) == set()
    monkeypatch.setitem(trials.OPTIONS, DEFAULT, {"keep_stale": True})
    assert trial_of("table missing", ranges, tmp_path, NoLevelDB()) == {CURRENT}


def test_an_entry_that_leveldb_keeps_and_lsmkv_loses_is_found(
    ranges: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Perfect(LevelDBs):
        def repaired(self, path: str, is_bedrock: bool, is_indexeddb: bool) -> State | None:
            return ranges.run.state(ranges.writes)

    assert trial_of("table missing", ranges, tmp_path, Perfect()) == set()  # none that is proved

    def forgetful(path: str, **options: Any) -> lsmkv.RepairPlan:
        plan = repair(path, **options)
        with lsmkv.DB(options["into"], env=options["env"]) as db:
            db.delete(b"0001")
        return plan

    repair = lsmkv.repair_db
    monkeypatch.setattr(lsmkv, "repair_db", forgetful)
    assert PROVED in trial_of("table missing", ranges, tmp_path, Perfect())


def test_a_count_that_is_wrong_is_found(
    ranges: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_lost(path: str, **options: Any) -> lsmkv.RepairPlan:
        plan = repair(path, **options)
        with options["env"].open_directory(options["into"]) as directory:
            if directory.exists("lost"):
                with directory.subdirectory("lost") as lost:
                    for name in lost.names():
                        lost.remove(name)
        return plan

    repair = lsmkv.repair_db
    monkeypatch.setattr(lsmkv, "repair_db", without_lost)
    assert trial_of("table missing", ranges, tmp_path, NoLevelDB()) == {COUNTS}


def test_a_loss_that_is_not_stated_is_found(
    ranges: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "states_loss", lambda plan: False)
    assert COUNTS in trial_of("table missing", ranges, tmp_path, NoLevelDB())


def test_a_repaired_store_that_is_damaged_is_found(
    ranges: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaging(path: str, **options: Any) -> lsmkv.RepairPlan:
        plan = repair(path, **options)
        with options["env"].open_directory(options["into"]) as directory:
            directory.remove(max(name for name in directory.names() if name.endswith(".ldb")))
        return plan

    repair = lsmkv.repair_db
    monkeypatch.setattr(lsmkv, "repair_db", damaging)
    assert SOUND in trial_of("log cut", ranges, tmp_path, NoLevelDB())


def test_a_sound_store_is_kept_in_each_way(ranges: Patient, tmp_path: Path) -> None:
    copy = Copy("sound", ranges.files, ranges.writes, ranges.writes)
    results = trial(ranges, Known(ranges), copy, tmp_path / "repaired", NoLevelDB())
    assert set(results) == set(trials.OPTIONS)
    truth = ranges.run.state(ranges.writes)
    assert {result.outcome for result in results.values()} == {(len(truth), 0, 0, 0)}


# The table


def rows_of(page: Path) -> list[str]:
    """The rows that ``run_rescue.py`` has written to a page."""
    written = page.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    return [line for line in written.split("\n") if line]


def test_the_table_of_the_page_has_the_kinds_of_the_corpus() -> None:
    rows = rows_of(ROOT / "docs" / "reference" / "rescue.md")
    assert rows_of(ROOT / "docs" / "repair.md") == [*rows[:2], rows[-1]]
    made = list(lines({kind: [] for kind in KINDS}))
    assert rows[:2] == made[:2]
    assert [row.split(" | ")[0] for row in rows] == [row.split(" | ")[0] for row in made]
    stores = [int(row.split(" | ")[1].replace(",", "")) for row in rows[2:]]
    assert stores[-1] == sum(stores[:-1]) >= 400
    cell = r"(?:[\d,]+ / [\d,]+ / [\d,]+ / [\d,]+|-)"
    for row in rows[2:]:
        assert re.fullmatch(rf"\| [^|]+ \| [\d,]+(?: \| {cell}){{{len(TOOLS)}}} \|", row)


def test_known_faults_are_of_kinds_of_the_corpus() -> None:
    assert {kind for kind, _ in KNOWN} <= set(KINDS)
    bars = {bar.removesuffix(NO_MANIFEST) for _, bar in KNOWN}
    assert bars <= {CURRENT, PROVED, COUNTS, SOUND}
