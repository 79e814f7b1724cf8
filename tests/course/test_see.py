"""``lsmkv course see``: a student's steps beside the engine's."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from commands import lsm
from course_stores import folder_of_references, plant
from labs import reference
from processes import ENVIRON

from lsmkv.course.labs.registry import find
from lsmkv.course.step_views import SIGHTS


@pytest.mark.parametrize("slug", SIGHTS)
def test_a_right_part_has_the_engines_steps(slug: str) -> None:
    done = lsm("course", "see", slug, "--file", reference(find(slug)))
    assert (done.status, done.err) == (0, "")
    assert "->" not in done.out
    assert "yours" in done.out.splitlines()[0]
    assert len(done.out.splitlines()) > 6
    again = lsm("course", "see", slug, "--json", "--file", reference(find(slug)))
    found = json.loads(again.out)
    assert found["outcome"] == "passed"
    assert all(step["yours"] == step["engine"] for step in found["steps"])
    assert len(found["steps"]) == len(done.out.splitlines()) - 1


@pytest.mark.parametrize(
    ("lab", "source", "words"),
    [
        (4, "def bloom_hash(key):\n    return 7\n", "->hash of owl"),
        (4, "def create_filter(keys, bits):\n    return b''\n", "->byte 0 of the filter"),
        (
            3,
            "def build_block(entries, interval):\n    return bytes(90)\n",
            "->  1  entry 0: unshared",
        ),
        (3, "def seek(data, target):\n    return None\n", "->seek antonym"),
        (8, "def get(levels, key):\n    return levels[0][0].read_block(0) and None\n", "->level 0"),
    ],
)
def test_the_first_step_that_differs_is_marked(
    tmp_path: Path, lab: int, source: str, words: str
) -> None:
    folder = folder_of_references(tmp_path / "labs")
    plant(folder, lab, source)
    done = lsm("course", "see", str(lab), "--file", folder / find(str(lab)).file_name)
    assert done.status == 1
    (marked,) = [line for line in done.out.splitlines() if line.startswith("->")]
    assert marked.startswith(words)


def test_a_part_that_raises_ends_there(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    plant(folder, 4, "def probes(bits_per_key):\n    return 1 / 0\n")
    done = lsm("course", "see", "4", "--key", "emu", "--file", folder / "lab4_bloom.py")
    assert done.status == 1
    assert "hash of emu" in done.out
    assert "error: your code raised ZeroDivisionError: division by zero" in done.out


def test_other_labs_have_no_steps() -> None:
    done = lsm("course", "see", "5")
    assert (done.status, done.err) == (
        2,
        "lsmkv: there are no steps of lab 5 to see; labs 3, 4, 8 have some\n",
    )


def test_the_page_is_served_until_a_signal(tmp_path: Path) -> None:
    file = folder_of_references(tmp_path / "labs") / "lab4_bloom.py"
    arguments = ["course", "see", "4", "--file", str(file), "--page", "--port", "0", "--json"]
    started = [sys.executable, "-m", "lsmkv", *arguments]
    with subprocess.Popen(started, stdout=subprocess.PIPE, env=ENVIRON) as process:
        assert process.stdout is not None
        line = json.loads(process.stdout.readline())
        assert line["path"] == str(file)
        with urllib.request.urlopen(f"{line['url']}api/see", timeout=60) as answer:
            assert json.load(answer)["outcome"] == "passed"
        process.terminate()
    assert process.returncode == 128 + 15


def test_a_page_of_no_file_is_refused(tmp_path: Path) -> None:
    done = lsm("course", "see", "4", "--file", tmp_path / "none.py", "--page", "--port", "0")
    assert done.status == 2
    assert "none.py" in done.err
