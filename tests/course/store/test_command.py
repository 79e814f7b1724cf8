"""``lsmkv course run``, as a student starts it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import lsm, lsm_bytes
from course_stores import plant
from labs import reference

from lsmkv.course.labs.registry import find


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Lab 2 is done, and lab 4 but for one function."""
    path = tmp_path / "labs"
    lsm("course", "new", path)
    for lab in ("2", "4"):
        shutil.copy(reference(find(lab)), path)
    plant(path, 4, "def create_filter(keys, bits_per_key):\n    return b'filter'\n")
    return path


def test_a_part_runs_if_its_checks_pass(folder: Path) -> None:
    done = lsm("course", "run", folder, "--do", "put ant 1", "--do", "flush", "--do", "inspect")
    assert (done.status, done.err) == (0, "")
    (
        first,
        second,
        *_,
    ) = done.out.splitlines()
    assert first.startswith("Your store: 4 of ")
    assert second == (
        "  lab 4, filters: the engine's: the check 'the size of a filter' does not pass"
    )
    assert "log       yours: records, checksums, log reader; the engine's: recovery\n" in done.out
    assert "filters   the engine's: filters, filter blocks\n" in done.out
    assert (folder / "store" / "CURRENT").exists()


def test_commands_come_from_stdin_and_are_shown(folder: Path) -> None:
    done = lsm_bytes("course", "run", folder, stdin=b"put ant 1\nget ant\nquit\nget ant\n")
    assert done.out.decode().endswith("store> put ant 1\nstore> get ant\n1\nstore> quit\n")


def test_as_json_each_command_is_an_object(folder: Path) -> None:
    done = lsm_bytes("course", "run", folder, "--json", stdin=b"put ant 1\nget ant\nquit\n")
    checks, *commands = map(json.loads, done.out.decode().splitlines())
    assert checks["command"] is None
    assert checks["output"][0].startswith("Your store: 4 of ")
    assert commands == [
        {"command": "put ant 1", "output": []},
        {"command": "get ant", "output": ["1"]},
        {"command": "quit", "output": []},
    ]


def test_a_capstone_without_all_parts_exits_with_1(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "elsewhere"
    done = lsm("course", "run", folder, "--capstone", "--names", "100", "--store", store)
    assert done.status == 1
    assert "Lab 13 is done once all of them are" in done.out
    assert (store / "CURRENT").exists()
    assert not (folder / "store").exists()


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    done = lsm("course", "run", tmp_path / "none")
    assert done.status == 2
    assert "there is no such folder" in done.err
