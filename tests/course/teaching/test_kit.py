"""The autograder and the workflow are run, as Gradescope and GitHub do it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from commands import lsm
from labs import reference
from own_data import answers_of, call_that_shows
from processes import ENVIRON

from lsmkv.course.labs.registry import find
from lsmkv.course.predict.registry import write_for
from lsmkv.course.seeds import Owner, seed_of, write_owner

BLOOM = find("bloom")
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def submit(folder: Path) -> None:
    """Lab 4 as a good student hands it in."""
    folder.mkdir(parents=True, exist_ok=True)
    write_for(str(folder), "ann")
    kept = {"4": answers_of("bloom", "ann")}
    write_owner(str(folder), Owner("ann", seed_of("ann"), kept))
    shutil.copy(reference(BLOOM), folder)
    (folder / "fault4.txt").write_text(call_that_shows("bloom", "ann"))


def bash(*command: str, folder: Path, **environ: str) -> str:
    done = subprocess.run(
        ["bash", *command],
        cwd=folder,
        env=ENVIRON | {"PYTHON": sys.executable} | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def block(text: str, key: str) -> str:
    """A text of several lines in YAML."""
    found = re.search(rf"^ *{key}: \|\n((?: {{10,}}.*\n)+)", text, re.MULTILINE)
    assert found is not None
    return textwrap.dedent(found[1])


def test_the_autograder_grades(tmp_path: Path) -> None:
    assert lsm("course", "kit", tmp_path / "kit", "--lab", "4").status == 0
    root = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "kit" / "autograder.zip") as archive:
        assert all(info.external_attr >> 16 == 0o755 for info in archive.infolist())
        archive.extractall(root / "source")
    submit(root / "submission")
    place = {"AUTOGRADER_ROOT": str(root)}
    assert bash("source/setup.sh", folder=root, **place) == ""
    assert bash("source/run_autograder", folder=root, **place) == "13 of 13 points\n"
    results = json.loads((root / "results" / "results.json").read_text())
    assert results["score"] == 13
    visible = [test["name"] for test in results["tests"] if test["visibility"] == "visible"]
    assert visible[-2:] == [
        "Lab 4: predictions",
        "Lab 4: the fault",
    ]


def test_what_is_installed_comes_from_the_wheels(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "typer-1-py3-none-any.whl").write_bytes(b"typer")
    done = lsm("course", "kit", tmp_path / "kit", "--wheels", wheels)
    assert done.err == f"lsmkv: {wheels} has no wheel of lsmkv\n"
    (wheels / "lsmkv-1-py3-none-any.whl").write_bytes(b"lsmkv")
    assert "12 labs, 2 wheels" in lsm("course", "kit", tmp_path / "kit", "--wheels", wheels).out
    root = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "kit" / "autograder.zip") as archive:
        archive.extractall(root / "source")
    # A Python that has no lsmkv, and notes how it is started.
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$1" in -c) exit 1;; esac\necho "$@"\n')
    python.chmod(0o755)
    place = {"AUTOGRADER_ROOT": str(root), "PYTHON": str(python)}
    out = bash("source/setup.sh", folder=root, **place)
    assert out == f"-m pip install --no-index --find-links {root}/source/wheels lsmkv[tools]\n"
    assert (root / "source" / "wheels" / "lsmkv-1-py3-none-any.whl").read_bytes() == b"lsmkv"


def test_the_workflow_grades(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    submit(repository)
    lsm("course", "kit", repository, "--lab", "4")
    text = (repository / ".github" / "workflows" / "classroom.yml").read_text()
    grade = block(text, "- name: Grade\n        run")
    programs = tmp_path / "bin"
    programs.mkdir()
    os.symlink(sys.executable, programs / "python3")
    path = f"{programs}{os.pathsep}{ENVIRON['PATH']}"
    site = os.pathsep.join(one for one in sys.path if one)
    out = bash("-euc", grade, folder=repository, PATH=path, PYTHONPATH=site)
    assert out == "13 of 13 points\n" * 2
    assert ET.parse(repository / "report.xml").getroot()[0].get("failures") == "0"
    kept = block(text, "path").split()
    assert kept
    assert all((repository / name).is_file() for name in kept)


def test_the_same_kit_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lsm("course", "kit", tmp_path / name)
    a, b = ((tmp_path / name / "autograder.zip").read_bytes() for name in ("a", "b"))
    assert a == b
