"""A run of the demo: its stores, measured as loaded and compacted, and removed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from demos import LINES, printed
from started import ended_by

import lsmkv
from lsmkv.tools.demo.measure import LAYOUTS
from lsmkv.tools.demo.run import Outcome, Plan, place, run_demo
from lsmkv.tools.sample_keys import lines_as_keys


def test_overlapping_tables_are_compacted_and_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LAYOUTS, "block", LAYOUTS["block"] | {"write_buffer_size": 16 << 10})
    data = lines_as_keys(LINES, "file")
    plan = Plan(data, ("block",), 500, 1, None)
    asked: list[int] = []

    def as_loaded(outcome: Outcome) -> None:
        with lsmkv.DB(os.path.join(directory, "block"), seek_compaction=False) as db:
            for _, absent in [outcome.example, *outcome.questions.examples]:
                asked.append(db.explain(absent).blocks_without_filters)

    with place(plan) as directory:
        outcome = run_demo(plan, directory, as_loaded)
    (before,), (after,) = outcome.as_loaded, outcome.compacted
    assert asked[0] == max(asked) > 1  # the example that is shown is a telling one
    assert before.overlapping > 1
    assert after.overlapping == 1
    assert outcome.wrong == 0
    assert before.absent.checks_per_get > 1.5
    assert after.absent.checks_per_get <= 1
    assert "After compact_range(): at most 1 table" in printed(plan, outcome, 80)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_demo_leaves_no_files(
    tmp_path: Path, key_file: Path, number: signal.Signals
) -> None:
    patch = (
        "from lsmkv.tools.demo import run\n"
        "def measure(*_, **__):\n"
        "    print('ready', flush=True)\n"
        "    signal.pause()\n"
        "run.measure = measure\n"
    )

    def ready() -> None:
        assert len(list(tmp_path.glob("lsmkv-demo-*/block/CURRENT"))) == 1

    arguments = ("demo", "--keys", key_file, "--layout", "block")
    environment = {"TMPDIR": str(tmp_path)}
    demo = ended_by([number], patch, *arguments, ready=ready, environment=environment)
    assert (demo.status, demo.err) == (128 + number, b"")
    assert os.listdir(tmp_path) == []
