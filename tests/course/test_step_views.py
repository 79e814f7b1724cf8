"""The steps of a lab's part, of the engine and of a student."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import folder_of_references, plant
from labs import reference

from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.step_views import SIGHTS, look, sight_of
from lsmkv.engine.filter.bloom import BloomFilterPolicy


def test_the_bytes_of_the_filter_are_the_policys() -> None:
    sight = SIGHTS["bloom"]
    steps = list(sight.steps(sight.engine, "emu"))
    made = bytes(int(step.result[:2], 16) for step in steps if step.what.startswith("byte "))
    assert made == BloomFilterPolicy(10).create_filter([b"emu"])
    assert [step.kind for step in steps if step.what.startswith("byte ")][-2:] == ["bits", "text"]
    assert steps[-3].result == "maybe"


def test_the_bytes_of_the_block_stand_in_order() -> None:
    sight = SIGHTS["block"]
    steps = [step for step in sight.steps(sight.engine, "bee") if step.kind == "bytes"]
    at = 0
    for step in steps:
        assert int(step.what.split()[0]) == at
        at += len(step.result.split()) if step.result != "nothing" else 0
    assert at == 45


@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.slug not in SIGHTS])
def test_a_lab_without_steps_names_those_that_have_some(lab: object) -> None:
    with pytest.raises(ValueError, match="labs 3, 4, 8 have some"):
        sight_of(lab)  # type: ignore[arg-type]


def test_a_part_that_is_right_differs_nowhere() -> None:
    lab = find("bloom")
    seen = look(lab, str(reference(lab)), "emu")
    assert (seen.outcome, seen.message, seen.differs) == ("passed", "", None)
    plain = seen.to_dict()
    assert list(plain) == ["lab", "key", "outcome", "message", "differs", "steps"]
    assert all(step["yours"] == step["engine"] for step in plain["steps"])


def test_a_part_that_ends_early_differs_where_it_ends(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    plant(folder, 4, "def probes(bits_per_key):\n    return 1 / 0\n")
    seen = look(find("bloom"), str(folder / "lab4_bloom.py"))
    assert (seen.outcome, seen.differs) == ("error", 1)
    assert seen.to_dict()["steps"][1]["yours"] is None
