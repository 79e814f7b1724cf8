"""A store that runs with a student's parts: work, kills, and parts that end the process."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import folder_of_references, plant, running, work

from lsmkv.course.labs.registry import find
from lsmkv.course.running import Limits
from lsmkv.course.store.parts import PARTS, part_named
from lsmkv.course.store.session import Session, StoreError, passed_checks, state_of


def test_a_store_of_all_parts_answers_rightly_and_uses_each(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    with running(folder) as session:
        work(session)
        assert session.failures == []
        session.ask("put", key="more", value="1")
        session.ask("flush")
        session.ask("compact")
        session.ask("amplification")
        session.ask("predict", tables=[1])
        calls = session.ask("calls")
    # A torn log is of another test, compactions are lab 11's here, and none is due on its own.
    unused = {"torn tails", "merge", "choice"}
    assert {name for name, number in calls.items() if number == 0} <= unused | {"CURRENT", "flush"}


def test_a_torn_log_is_judged_by_the_student(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    with running(folder, ["torn tails", "log reader"]) as session:
        session.ask("put", key="ant", value="1")
        session.ask("put", key="bee", value="2")
        session.kill()
        (log,) = (folder / "store").glob("*.log")
        data = log.read_bytes().rstrip(b"\0")
        log.write_bytes(data[:-1])
        session.reopen()
        assert session.ask("get_all", keys=["ant", "bee"]) == ["1", None]
        assert session.ask("calls")["torn tails"] == 1
        assert session.failures == []


def test_a_part_that_ends_the_process_is_set_aside(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    plant(folder, 4, "import os\ndef create_filter(keys, bits):\n    os._exit(3)\n")
    with running(folder, ["filters", "asking filters"]) as session:
        session.ask("put", key="ant", value="1")
        with pytest.raises(StoreError, match="opened again, without that part"):
            session.ask("flush")
        (failure,) = session.failures
        assert (failure.part, failure.what) == ("filters", "its process has ended with status 3")
        session.ask("flush")
        assert session.ask("get", key="ant") == "1"
        assert [part.name for part in session.used] == ["asking filters"]


def test_an_endless_loop_is_stopped_and_its_line_named(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    last = plant(
        folder, 4, "def create_filter(keys, bits):\n    while True:\n        keys = keys\n"
    )
    chosen = [part_named("filters")]
    with Session(str(folder), str(folder / "store"), chosen, seconds=15) as session:
        session.ask("put", key="ant", value="1")
        with pytest.raises(StoreError, match="without that part"):
            session.ask("flush")
        (failure,) = session.failures
        assert failure.what == "it did not return within 15 s"
        lines = range(last - 1, last + 1)
        assert any(failure.place.startswith(f"lab4_bloom.py, line {line}: ") for line in lines)
        session.ask("flush")
        assert session.ask("get", key="ant") == "1"


def test_a_file_that_cannot_be_run_is_a_failed_part(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    plant(folder, 2, "1 / 0\n")
    with running(folder, ["records", "varints"]) as session:
        (failure,) = session.failures
        assert failure.part == "records"
        assert "ZeroDivisionError" in failure.what
        session.ask("put", key="ant", value="1")
        assert session.ask("get", key="ant") == "1"


def test_errors_of_the_store_are_errors(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    with running(folder, []) as session:
        session.ask("put", key="ant", value="1")
        session.kill()
        with pytest.raises(StoreError, match="not open"):
            session.ask("get", key="ant")
        session.reopen()
        with pytest.raises(StoreError):
            running(folder, []).__enter__()  # the store is locked
        assert session.ask("get", key="ant") == "1"


def test_only_labs_that_are_begun_are_checked(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    for path in folder.glob("*.py"):
        if path.name != "lab4_bloom.py":
            path.unlink()
    (folder / "lab3_block.py").write_text(find("3").starter())
    plant(folder, 4, "def probes(bits_per_key):\n    return 1\n")
    advanced: list[int] = []
    passed = passed_checks(str(folder), Limits(60), advanced.append)
    assert list(passed) == [4]
    assert sum(advanced) == 12
    assert "the number of probes" not in passed[4]
    assert state_of(part_named("filters"), passed, str(folder)) == "yours"
    assert state_of(part_named("block reader"), passed, str(folder)) == "not begun"
    assert state_of(part_named("varints"), passed, str(folder)) == "there is no lab1_keys.py"
    short = {4: ["asking a filter"]}
    assert state_of(part_named("asking filters"), short, str(folder)) == (
        "the engine's: the check 'no false negatives' does not pass"
    )
    assert len(PARTS) > 30
