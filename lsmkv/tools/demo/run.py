"""The demo, from keys to figures."""

from __future__ import annotations

import contextlib
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from lsmkv import DB
from lsmkv.tools.demo.measure import (
    LAYOUTS,
    READING,
    Loading,
    Measurement,
    compact,
    load,
    measure,
)
from lsmkv.tools.demo.reading import TITLES
from lsmkv.tools.demo.timing import ROUNDS, Times, time_gets
from lsmkv.tools.drawing import progress
from lsmkv.tools.sample_keys import DataSet, Misspeller

_NUMBERED = re.compile(rb"[0-9]")
_EXAMPLES = 50


@dataclass(frozen=True)
class Plan:
    """The parameters of a run."""

    data: DataSet
    layouts: tuple[str, ...]
    lookups: int
    seed: int
    directory: str | None
    """The directory of the stores; None for a temporary directory that is removed."""


@dataclass(frozen=True)
class Questions:
    """The keys that are looked up, in random order."""

    present: list[tuple[bytes, bytes]]
    absent: list[bytes]
    examples: list[tuple[bytes, bytes]]
    """Some keys, each with its misspelling."""


@dataclass
class Outcome:
    """All that was measured, in the order of the layouts."""

    questions: Questions
    example: tuple[bytes, bytes]
    """A key and its misspelling, which more tables cover than those of the other examples."""
    loadings: list[Loading] = field(default_factory=list)
    as_loaded: list[Measurement] = field(default_factory=list)
    compacted: list[Measurement] = field(default_factory=list)
    """Empty if there was nothing to compact, since no key was covered by more than one table."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "loadings": [asdict(one) for one in self.loadings],
            "as_loaded": [one.to_dict() for one in self.as_loaded],
            "compacted": [one.to_dict() for one in self.compacted],
            "wrong_answers": self.wrong,
        }

    @property
    def lookups(self) -> int:
        """The number of all Gets."""
        return sum(one.present.gets + one.absent.gets for one in self.as_loaded + self.compacted)

    @property
    def wrong(self) -> int:
        """Answers that differ from what was loaded."""
        return sum(one.present.wrong + one.absent.wrong for one in self.as_loaded + self.compacted)


def run_demo(
    plan: Plan, directory: str, as_loaded: Callable[[Outcome], None] = lambda _: None
) -> Outcome:
    """Load the stores and look keys up, then compact them and look the keys up again.

    ``directory`` is the :func:`place` of the stores, each of which has the name of its layout.
    ``as_loaded`` is called before they are compacted.
    """
    questions = _questions(plan)
    outcome = Outcome(questions, questions.examples[0])
    for layout in plan.layouts:
        path = os.path.join(directory, layout)
        with progress(f"Loading, {TITLES[layout]}", "key", len(plan.data.records)) as bar:
            outcome.loadings.append(load(path, layout, plan.data.records, bar.advance))
    outcome.example = _telling(questions.examples, directory, plan.layouts[0])
    outcome.as_loaded = _measure_all(plan, directory, questions, compacted=False)
    as_loaded(outcome)
    if any(one.overlapping > 1 for one in outcome.as_loaded):
        for layout in plan.layouts:
            with progress(f"Compacting, {TITLES[layout]}", ""):
                compact(os.path.join(directory, layout), layout)
        outcome.compacted = _measure_all(plan, directory, questions, compacted=True)
    return outcome


def _telling(
    examples: list[tuple[bytes, bytes]], directory: str, layout: str
) -> tuple[bytes, bytes]:
    """The first example of those whose misspelling would cost most without filters.

    What filters answer does not matter for the choice.
    """
    with DB(os.path.join(directory, layout), **READING, **LAYOUTS[layout]) as db:
        return max(examples, key=lambda one: db.explain(one[1]).blocks_without_filters)


def _questions(plan: Plan) -> Questions:
    """Existing keys, each at most once, and as many absent ones made from random keys."""
    rng = random.Random(plan.seed)
    records = list(plan.data.expected.items())
    present = rng.sample(records, min(plan.lookups, len(records)))
    expected = plan.data.expected
    misspeller = Misspeller(list(expected), expected.__contains__, rng)
    absent = misspeller.absent_keys(len(present))
    plain = [key for key, _ in present if not _NUMBERED.search(key)] or [present[0][0]]
    examples = [(key, misspeller.misspelt(key)) for key in plain[:_EXAMPLES]]
    return Questions(present, absent, examples)


def _measure_all(
    plan: Plan, directory: str, questions: Questions, *, compacted: bool
) -> list[Measurement]:
    measured: list[Measurement] = []
    lookups = len(questions.present) + len(questions.absent)
    times = _time_all(plan, directory, questions)
    for layout, (hits, misses) in zip(plan.layouts, times, strict=True):
        with progress(f"Looking up, {TITLES[layout]}", "key", lookups) as bar:
            measured.append(
                measure(
                    os.path.join(directory, layout),
                    layout,
                    questions.present,
                    questions.absent,
                    bar.advance,
                    compacted=compacted,
                    times=(hits, misses),
                )
            )
    return measured


def _time_all(plan: Plan, directory: str, questions: Questions) -> list[list[Times]]:
    """For each layout, the times of Gets of existing keys and of absent ones."""
    with (
        contextlib.ExitStack() as opened,
        progress("Timing Gets, in turn", "round", ROUNDS) as bar,
    ):
        stores = [
            opened.enter_context(DB(os.path.join(directory, layout), **READING, **LAYOUTS[layout]))
            for layout in plan.layouts
        ]
        kinds = [[key for key, _ in questions.present], questions.absent]
        return time_gets(stores, kinds, bar.advance)


@contextlib.contextmanager
def place(plan: Plan) -> Iterator[str]:
    """The directory of the stores: the user's, if none of them exists there, or a temporary one."""
    if plan.directory is None:
        with tempfile.TemporaryDirectory(prefix="lsmkv-demo-") as directory:
            yield directory
        return
    os.makedirs(plan.directory, exist_ok=True)
    for layout in plan.layouts:
        path = os.path.join(plan.directory, layout)
        if os.path.lexists(path):
            raise ValueError(f"{path} exists; the demo makes new stores")
    yield plan.directory
