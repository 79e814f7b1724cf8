"""lsmkv.tools.bench.worker: the process that runs workloads and tells each step."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benches import SETTINGS, SYNCED, LossyEngine

from lsmkv.tools.bench import worker
from lsmkv.tools.bench.engines import OWN


def run_worker(job: worker.Job, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[Any]]:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(job.to_json()))
    monkeypatch.setattr("sys.stdout", out)
    status = worker.main()
    monkeypatch.undo()
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_worker_tells_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = worker.Job(OWN, str(tmp_path), SETTINGS, ("fillsync", "absent"))
    assert worker.Job.from_json(job.to_json()) == job
    status, messages = run_worker(job, monkeypatch)
    assert status == 0
    assert [next(iter(message)) for message in messages] == [
        *("version", "begin", "end", "begin", "end", "peak_rss")
    ]
    assert messages[2]["result"]["seen"] == SYNCED


def test_the_worker_tells_what_cannot_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, num=50, threads=2)
    names = ("readseq", "fillseq", "readwhilewriting", "open")
    _, messages = run_worker(worker.Job("dbm", str(tmp_path), settings, names), monkeypatch)
    ends = {message["end"]: message for message in messages if "end" in message}
    assert ends["readseq"]["skipped"] == "its keys are in no order"
    assert ends["fillseq"]["skipped"] == ends["readwhilewriting"]["skipped"] == worker.ONE_THREAD
    assert ends["open"]["result"]["ops"] == 1


def test_a_wrong_answer_ends_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "make_engine", lambda name: LossyEngine())
    job = worker.Job(OWN, str(tmp_path), replace(SETTINGS, num=100), ("fillseq", "open"))
    status, messages = run_worker(job, monkeypatch)
    assert status == 1
    assert messages[-1]["error"].startswith(
        "fillseq: WrongAnswerError: wrong answers: {'right': 99}"
    )
