"""The studies of ``tests/stress/``, each at the size that the suite has time for."""

from __future__ import annotations

import importlib

import pytest
import simulation_study
from run_studies import names_of_studies
from study import Study


@pytest.mark.long
@pytest.mark.parametrize("name", names_of_studies())
def test_no_violation(name: str) -> None:
    """And each has tried something."""
    study: Study = importlib.import_module(name)
    outcome = study.run(1.0, 7, lambda line: None)
    assert outcome.violations == []
    assert outcome.figures
    assert min(outcome.figures.values()) > 0


@pytest.mark.long
def test_no_violation_in_two_minutes_of_schedules() -> None:
    """Which are others than those of the study above."""
    outcome = simulation_study.run(2.0, 8, lambda line: None)
    assert outcome.violations == []
