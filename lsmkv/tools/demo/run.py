"""The demo, from keys to exit status."""

from __future__ import annotations

import contextlib
import os
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from lsmkv.tools.console import progress
from lsmkv.tools.demo.keys import DataSet, Misspeller
from lsmkv.tools.demo.measure import Loading, Measurement, compact, load, measure
from lsmkv.tools.demo.reading import TITLES
from lsmkv.tools.demo.report import Report

_NUMBERED = re.compile(rb"[0-9]")


@dataclass(frozen=True)
class Plan:
    """What the user asked for."""

    data: DataSet
    layouts: tuple[str, ...]
    lookups: int
    seed: int
    directory: str | None
    """Where the stores are left; None for a temporary place that is removed."""


@dataclass(frozen=True)
class Questions:
    """What is looked up, in random order."""

    present: list[tuple[bytes, bytes]]
    absent: list[bytes]
    example: tuple[bytes, bytes]
    """A key and its misspelling."""


@dataclass
class Outcome:
    """All that was measured, in the order of the layouts."""

    loadings: list[Loading] = field(default_factory=list)
    as_loaded: list[Measurement] = field(default_factory=list)
    compacted: list[Measurement] = field(default_factory=list)
    """Empty if there was nothing to compact: no key had more than one table to ask."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "loadings": [asdict(one) for one in self.loadings],
            "as_loaded": [one.to_dict() for one in self.as_loaded],
            "compacted": [one.to_dict() for one in self.compacted],
            "wrong_answers": self.wrong,
        }

    @property
    def wrong(self) -> int:
        """Answers that were not what was loaded."""
        return sum(one.present.wrong + one.absent.wrong for one in self.as_loaded + self.compacted)


def run_demo(plan: Plan, report: Report) -> Outcome:
    """Load, look up, and report as it goes."""
    questions = _questions(plan)
    outcome = Outcome()
    with _place(plan) as directory:
        report.begin(plan.data, plan.directory)
        for layout in plan.layouts:
            path = os.path.join(directory, layout)
            with progress(f"Loading, {TITLES[layout]}", "key", len(plan.data.records)) as bar:
                outcome.loadings.append(load(path, layout, plan.data.records, bar.advance))
            report.loaded(outcome.loadings[-1], len(plan.data.records))
        report.asking(len(questions.present), questions.example)
        outcome.as_loaded = _measure_all(plan, directory, questions, compacted=False)
        report.measured(outcome.as_loaded)
        if any(one.overlapping > 1 for one in outcome.as_loaded):
            for layout in plan.layouts:
                with progress(f"Compacting, {TITLES[layout]}", ""):
                    compact(os.path.join(directory, layout), layout)
            outcome.compacted = _measure_all(plan, directory, questions, compacted=True)
            report.measured(outcome.compacted)
    report.end(outcome.as_loaded, outcome.compacted, len(plan.data.expected), outcome.wrong)
    return outcome


def _questions(plan: Plan) -> Questions:
    """Every key at most once where it exists; as many that do not, made from keys at random."""
    rng = random.Random(plan.seed)
    records = list(plan.data.expected.items())
    present = rng.sample(records, min(plan.lookups, len(records)))
    misspeller = Misspeller(plan.data, rng)
    absent = misspeller.absent_keys(len(present))
    example = next((key for key, _ in present if not _NUMBERED.search(key)), present[0][0])
    return Questions(present, absent, (example, misspeller.misspelt(example)))


def _measure_all(
    plan: Plan, directory: str, questions: Questions, *, compacted: bool
) -> list[Measurement]:
    measured: list[Measurement] = []
    lookups = len(questions.present) + len(questions.absent)
    for layout in plan.layouts:
        with progress(f"Looking up, {TITLES[layout]}", "key", lookups) as bar:
            measured.append(
                measure(
                    os.path.join(directory, layout),
                    layout,
                    questions.present,
                    questions.absent,
                    bar.advance,
                    compacted=compacted,
                )
            )
    return measured


@contextlib.contextmanager
def _place(plan: Plan) -> Iterator[str]:
    """The directory of the stores: the user's, where none of them may exist, or a passing one."""
    if plan.directory is None:
        with tempfile.TemporaryDirectory(prefix="lsmkv-demo-") as directory:
            yield directory
        return
    os.makedirs(plan.directory, exist_ok=True)
    for layout in plan.layouts:
        path = os.path.join(plan.directory, layout)
        if os.path.lexists(path):
            raise ValueError(f"{path} exists; the demo makes its stores anew")
    yield plan.directory
