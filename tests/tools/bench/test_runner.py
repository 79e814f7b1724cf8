"""lsmkv.tools.bench.runner: engines in processes of their own, in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.runner import Plan, WorkerError, run
from lsmkv.tools.bench.settings import Settings


def plan(directory: Path, **changes: Any) -> Plan:
    given: dict[str, Any] = {
        "settings": Settings(num=100),
        "workloads": ("fillseq",),
        "studies": (),
        "engines": (OWN,),
        "missing": (),
        "rounds": 1,
        "directory": str(directory),
    }
    return Plan(**given | changes)


def test_a_worker_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"^nothing: KeyError: 'nothing'$"):
        run(plan(tmp_path, engines=(OWN, "nothing")), lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_dies_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    (broken / "lsmkv").mkdir(parents=True)
    (broken / "lsmkv" / "__init__.py").write_text("raise SystemExit(7)\n")
    (tmp_path / "stores").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(lsmkv, "__file__", str(broken / "lsmkv" / "__init__.py"))
        with pytest.raises(WorkerError, match="lsmkv: its process ended with status 7"):
            run(plan(tmp_path / "stores"), lambda *_: None)
        with pytest.raises(WorkerError, match="lsmkv: its process ended with status 7"):
            run(plan(tmp_path / "stores", workloads=(), studies=("import",)), lambda *_: None)
    assert list((tmp_path / "stores").iterdir()) == []


def test_progress_counts_every_run(tmp_path: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    peers = (OWN, "dbm")
    run(
        plan(tmp_path, engines=peers, rounds=2, studies=("sustained", "import")),
        lambda *step: steps.append(step),
    )
    assert [step[0] for step in steps] == list(range(8))
    assert {step[1] for step in steps} == {8}
    assert [step[2] for step in steps] == [
        "round 1 of 2: lsmkv, fillseq",
        "round 1 of 2: dbm, fillseq",
        "round 2 of 2: dbm, fillseq",
        "round 2 of 2: lsmkv, fillseq",
        "study: lsmkv, sustained",
        "study: dbm, sustained",
        "study: lsmkv, import",
        "study: dbm, import",
    ]
