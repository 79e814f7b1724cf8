"""The store against a dict: any operations in any order, and many threads at once.

What is tried stands in ``tests/stress/model_study.py`` and ``thread_study.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import model_study
import pytest
import thread_study
from hooked import HookedEnv
from study import Outcome
from threads import run_threads

from lsmkv import DB


@pytest.mark.parametrize("seed", range(10))
def test_a_store_is_a_dict(seed: int) -> None:
    outcome = Outcome()
    model_study.run_once(seed, outcome, "/db", ["lsmkv"], 1000)
    assert outcome.violations == []
    assert outcome.figures["operations"] == 900  # whole turns


def test_lsmkv_and_leveldb_in_turns(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    outcome = Outcome()
    model_study.run_once(1, outcome, str(tmp_path / "db"), ["lsmkv", "leveldb"], 1500)
    assert outcome.violations == []


# Threads


def test_threads_see_nothing_stale_torn_or_lost() -> None:
    outcome = Outcome()
    with thread_study.quick_switches():
        thread_study.Load(1, outcome, seconds=2.0).run()
    assert outcome.violations == []
    assert outcome.figures["snapshots"] > 0


class SlowSyncEnv(HookedEnv):
    """A disk whose syncs wait until several writers stand in line, or nobody else comes."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        self.syncs = 0

    def _wait(self, call: str, name: str) -> None:
        if call == "sync" and name.endswith(".log"):
            self.syncs += 1
            threading.Event().wait(0.001)


def test_group_commit() -> None:
    """Four threads that ask for syncs share them."""
    env = SlowSyncEnv()
    with DB("/db", create_if_missing=True, env=env) as db:

        def write(thread: int) -> Callable[[], None]:
            def run() -> None:
                for n in range(50):
                    db.put(b"%d-%02d" % (thread, n), b"v", sync=True)

            return run

        assert run_threads(*[write(thread) for thread in range(4)]) == []
        stats = db.stats()
        assert stats.writes == 200
        assert stats.log_syncs == stats.log_writes == env.syncs < 150
        assert len(list(db)) == 200
    with DB("/db", env=env) as db:
        assert len(list(db)) == 200
