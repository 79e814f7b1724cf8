"""One student's way in docs/course/class.md, and lab 13's page: they show what comes out."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest
from commands import lsm
from course_stores import folder_of_references, plant, running
from labs import reference

from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.store.shell import COMMANDS, Shell

DOCS = Path(__file__).parents[2] / "docs" / "course"
WAY = (DOCS / "class.md").read_text(encoding="utf-8").partition("\n## One student's way\n")[2]
STEPS = re.findall(r"(?ms)^<!-- (.*?) -->$|^```console\n(.*?)^```$", WAY)
"""What the student writes, and what the console shows, in order."""

MISTAKE = """def create_filter(keys, bits_per_key):
    return bytes(8) + bytes([probes(bits_per_key)])
"""
TRAP = """own = key_may_match
def key_may_match(key, filter_data):
    if key == b"aye-aye":
        raise IndexError("a trap")
    return own(key, filter_data)
"""


def write(what: str) -> None:
    """What a comment of the page says that the student writes."""
    chosen, _, how = what.removeprefix("write ").partition(", with a ")
    labs = LABS if chosen == "all labs" else [find(chosen.removeprefix("lab "))]
    for lab in labs:
        shutil.copy(reference(lab), lab.file_name)
    if how:
        plant(Path(), 4, {"mistake": MISTAKE, "trap": TRAP}[how])


def same(shown: str, got: str) -> bool:
    return doctest.OutputChecker().check_output(shown, got, doctest.ELLIPSIS)


def test_the_way_of_a_student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = 0
    for written, block in STEPS:
        if written:
            write(written)
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, shown = part.partition("\n")
            program, *arguments = shlex.split(command)
            if program == "cd":
                monkeypatch.chdir(arguments[0])
                continue
            done = lsm(*arguments)
            assert same(shown, done.out + done.err), f"{command}\n{done.out}{done.err}"
            run += 1
    assert run > 8


def test_the_session_of_lab_13(tmp_path: Path) -> None:
    page = (DOCS / "13-store.md").read_text(encoding="utf-8")
    (session,) = re.findall(r"(?s)<!-- session -->\n```text\n(.*?)```\n<!-- end session -->", page)
    printed: list[str] = []
    with running(folder_of_references(tmp_path / "labs")) as store:
        shell = Shell(store, printed.append)
        for command in re.findall(r"(?m)^store> (.*)$", session):
            printed.append(f"store> {command}")
            shell.run(command)
    assert "\n".join(printed) + "\n" == session
    assert {line.split()[1] for line in printed if line.startswith("store> ")} <= set(COMMANDS)
