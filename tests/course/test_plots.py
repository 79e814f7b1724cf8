"""A lab's results are drawn: the student's figures beside the engine's."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from commands import lsm
from labs import STARTERS, load, reference

from lsmkv.course.labs.registry import LABS, find
from lsmkv.engine.filter.bloom import BloomFilterPolicy

pytest.importorskip("matplotlib")

from documents import svg_texts

from lsmkv.course.plots import PLOTS

BLOOM, READING = find("bloom"), find("reading")


@pytest.fixture
def bloom() -> ModuleType:
    return load(reference(BLOOM))


def test_rates_of_the_reference_are_leveldbs(bloom: ModuleType) -> None:
    plot = PLOTS["bloom"](bloom)
    assert {"yours", "LevelDB's", "bits a key", "false-positive rate"} <= {*svg_texts(plot.svg)}
    assert plot.measured["yours"] == plot.measured["LevelDB's"]
    assert 0.005 < plot.measured["yours"][10] < 0.02


def test_rates_of_another_filter_are_its_own(bloom: ModuleType) -> None:
    bloom.create_filter = lambda keys, bits: BloomFilterPolicy(max(1, bits // 2)).create_filter(
        keys
    )
    measured = PLOTS["bloom"](bloom).measured
    assert measured["yours"][10] > 5 * measured["LevelDB's"][10]


def test_reads_of_the_reference_are_the_engines() -> None:
    plot = PLOTS["reading"](load(reference(READING)))
    assert {"no filters: yours", "10 bits a key: lsmkv"} <= {*svg_texts(plot.svg)}
    for filters in ("no filters", "2 bits a key", "16 bits a key"):
        assert plot.measured[f"{filters}: yours"] == plot.measured[f"{filters}: lsmkv"]
    wasted = [plot.measured[f"{one}: yours"][1] for one in ("no filters", "5 bits a key")]
    assert wasted[0] > 10 * wasted[1] > 0


def test_reads_of_a_get_without_filters_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / READING.file_name
    source = Path(reference(READING)).read_text()
    path.write_text(source.replace("or not table.key_may_match(block, key)", "", 1))
    measured = PLOTS["reading"](load(str(path))).measured
    assert measured["10 bits a key: yours"] == measured["no filters: lsmkv"]
    assert measured["10 bits a key: lsmkv"][1] < 0.1


def test_the_command_writes_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(reference(BLOOM), tmp_path)
    monkeypatch.chdir(tmp_path)
    done = lsm("course", "plot", "4")
    line = "lab4_bloom.svg  lab 4: false positive rates by bits per key, yours and LevelDB's\n"
    assert (done.status, done.out) == (0, line)
    assert "yours" in svg_texts((tmp_path / "lab4_bloom.svg").read_bytes())
    done = lsm("course", "plot", "bloom", BLOOM.file_name, "--output", "mine.svg", "--json")
    figures = json.loads(done.out)
    assert (figures["lab"], figures["output"]) == (4, "mine.svg")
    assert set(figures["measured"]) == {"yours", "LevelDB's"}
    assert (tmp_path / "mine.svg").read_bytes() == (tmp_path / "lab4_bloom.svg").read_bytes()


def test_the_command_says_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = lsm("course", "plot", "4", STARTERS / BLOOM.file_name)
    assert done.status == 1
    assert "not written  the picture: create_filter is not written yet\n" in done.out
    assert list(tmp_path.iterdir()) == []
    wrong = tmp_path / "wrong.py"
    wrong.write_text(Path(reference(BLOOM)).read_text() + "\nkey_may_match = lambda k, d: False\n")
    done = lsm("course", "plot", "4", wrong)
    assert "At 1 bits a key, your filter says no" not in done.out
    assert "At 1 bit a key, your filter says no to a key that is in it" in done.out


def test_the_command_refuses_what_it_cannot_draw(tmp_path: Path) -> None:
    for lab in LABS:
        if lab.slug not in PLOTS:
            done = lsm("course", "plot", lab.slug)
            assert (done.status, done.out) == (2, "")
            assert re.search(
                r"no picture of the results of lab \d+; labs 4 and 8 have one", done.err
            )
    done = lsm("course", "plot", "4", reference(BLOOM), "--output", tmp_path / "x.png")
    assert (done.status, list(tmp_path.iterdir())) == (2, [])
    assert "the picture is SVG, so its name must end in .svg" in done.err


def test_the_command_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lsmkv.course.plots")
    monkeypatch.delitem(sys.modules, "lsmkv.tools.plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = lsm("course", "plot", "4", reference(BLOOM))
    assert done.status == 2
    assert "course plot needs matplotlib: pip install '.[plot]'" in done.err
