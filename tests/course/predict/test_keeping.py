"""Predictions are kept once, and stand beside what the code finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from labs import reference

from lsmkv.course.labs.registry import find
from lsmkv.course.predict.keeping import (
    judged,
    keep,
    owner_of,
    require_predicted,
    run_beside,
    shared_with,
)
from lsmkv.course.predict.registry import task_of, write_for
from lsmkv.course.running import FAILED, PASSED, Limits, Result
from lsmkv.course.seeds import Owner, seed_of

BLOOM = find("bloom")


def answers(student: str) -> list[str]:
    return [one.answer for one in task_of(BLOOM, seed_of(student)).questions]


def test_predictions_are_kept_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no student\.json"):
        owner_of(str(tmp_path))
    write_for(str(tmp_path), "ann")
    with pytest.raises(ValueError, match="lab 4 asks 2 questions, and there must be an answer"):
        keep(str(tmp_path), BLOOM, ["1"])
    keep(str(tmp_path), BLOOM, ["[1, 2]", answers("ann")[1]])
    with pytest.raises(ValueError, match="are kept, and do not change"):
        keep(str(tmp_path), BLOOM, ["1", "2"])
    one, two = judged(BLOOM, owner_of(str(tmp_path)))
    assert (one.predicted, one.answer, one.is_right) == ("1 2", answers("ann")[0], False)
    assert one.reason.startswith("k is ")
    assert (two.is_right, two.reason) == (True, "")


def test_a_known_mistake_is_the_reason(tmp_path: Path) -> None:
    write_for(str(tmp_path), "ann")
    size = int(answers("ann")[1])
    keep(str(tmp_path), BLOOM, ["1", str(size - 1)])
    _, two = judged(BLOOM, owner_of(str(tmp_path)))
    assert two.reason.startswith("You left out the byte that holds k. ")


def test_the_first_check_waits_for_predictions(tmp_path: Path) -> None:
    path = str(tmp_path / BLOOM.file_name)
    require_predicted(BLOOM, path)
    write_for(str(tmp_path), "ann")
    with pytest.raises(ValueError, match="lab 4 asks 2 questions before its first check"):
        require_predicted(BLOOM, path)
    keep(str(tmp_path), BLOOM, ["1", "2"])
    require_predicted(BLOOM, path)


def test_results_are_those_of_the_students_code(tmp_path: Path) -> None:
    path = tmp_path / BLOOM.file_name
    shutil.copy(reference(BLOOM), path)
    passed = [Result("a", PASSED, "")]
    assert run_beside(BLOOM, str(path), Limits(60), passed) == []
    write_for(str(tmp_path), "ann")
    keep(str(tmp_path), BLOOM, ["1", "2"])
    assert run_beside(BLOOM, str(path), Limits(60), [Result("a", FAILED, "")]) == []
    found = run_beside(BLOOM, str(path), Limits(60), passed)
    assert [answer for _, answer in found] == answers("ann")
    path.write_text(path.read_text() + "\ndef probes(bits): raise NotImplementedError\n")
    (one, answer), (_, size) = run_beside(BLOOM, str(path), Limits(60), passed)
    assert (answer, one.answer, one.reason) == ("", "", "")
    assert size == answers("ann")[1]


def test_wrong_predictions_of_another_seed_are_noticed() -> None:
    def owner(name: str, *predicted: str) -> Owner:
        return Owner(name, seed_of(name), {"4": list(predicted)})

    owners = {
        "ann": owner("ann", *answers("ann")),
        "bob": owner("bob", *answers("ann")),
        "cem": owner("cem", "1", "1"),
        "dan": owner("dan", "1", "1"),
    }
    said = shared_with(owners, [BLOOM])
    assert said == {
        "ann": [],
        "bob": ["lab 4 has the same wrong predictions as ann, whose data are others"],
        "cem": [],
        "dan": [],
    }
