"""The studies of ``tests/stress/``, each at the size that the suite has time for."""

from __future__ import annotations

import importlib

import pytest
from run_studies import names_of_studies
from sharing_history import History
from study import Study

SMALL = 0.2


def tried(name: str, size: float, seed: int) -> None:
    """No violation, and each kind of thing has been tried."""
    study: Study = importlib.import_module(name)
    outcome = study.run(size, seed, lambda line: None)
    assert outcome.violations == []
    assert outcome.figures
    assert min(outcome.figures.values()) > 0


@pytest.mark.parametrize("name", names_of_studies())
def test_no_violation(name: str) -> None:
    tried(name, SMALL, 6)


@pytest.mark.parametrize("name", names_of_studies())
def test_no_violation_at_full_size(name: str) -> None:
    tried(name, 1.0, 7)


def test_no_violation_at_full_size_of_more_schedules() -> None:
    tried("simulation_study", 2.0, 8)


GOOD = {
    0: "w? 1 10\nw 1 10 20\nr 1 0 12 14\nw? 2 30\nw 2 30 40\nc? \nc 1\n",
    1: "r 0 0 5 6\nr 0 1 15 25\nb 0 1 1 1 26 28\nr 0 2 35 36\nc? \n",
}
"""What two processes have written down, the second of them killed while it counts."""


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        (1, "r 0 0 21 22", "is older than 1"),
        (1, "r 0 3 50 60", "no more than 2 was begun"),
        (1, "r 0 1 37 38", "after 2 had been read"),
        (1, "b 0 2 2 1 50 51", "was seen as"),
        (1, "c 1", "counted to the same number"),
        (1, "wrong process 1 counted from 3 to 5", "counted from 3 to 5"),
    ],
)
def test_a_wrong_history_of_several_processes_is_found(name: int, line: str, found: str) -> None:
    history = History()
    for process, text in GOOD.items():
        history.add(process, text)
    assert history.violations({0: 2, 1: 0}, 1) == []
    assert history.violations({0: 2, 1: 0}, 2) == []  # the killed one may have counted
    assert history.violations({0: 1, 1: 0}, 1) == ["process 0: 1 is left of 2"]
    assert len(history.violations({0: 2, 1: 0}, 3)) == 1
    assert len(history.violations({0: 2, 1: 0}, 0)) == 2
    history.add(name, f"{line}\n")
    assert any(found in violation for violation in history.violations({0: 2, 1: 0}, 2))
