"""Runs engines in turn, each in a process of its own, and collects their results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import lsmkv
from lsmkv.tools.bench import memory
from lsmkv.tools.bench.engines import OWN
from lsmkv.tools.bench.results import Results
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.studies import STUDIES
from lsmkv.tools.bench.worker import Job
from lsmkv.tools.bench.workloads import WORKLOADS
from lsmkv.util.progress import Progress

Message = dict[str, Any]

_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
_IMPORTS = 11


@dataclass(frozen=True)
class Plan:
    """The engines, workloads and studies to run."""

    settings: Settings
    workloads: tuple[str, ...]
    studies: tuple[str, ...]
    engines: tuple[str, ...]
    """lsmkv comes first."""
    missing: tuple[str, ...]
    """Engines that were asked for and are not installed."""
    rounds: int
    """How often the workloads are run; studies are run once."""
    directory: str | None
    """Where the stores are made and removed; None for the system's temporary directory."""


class WorkerError(lsmkv.Error):
    """A process that was to measure an engine failed."""


def run(plan: Plan, progress: Progress) -> Results:
    """Run the plan; ``WorkerError`` if a worker fails.  It leaves no process and no directory."""
    results = Results(plan.settings, plan.rounds, plan.engines, plan.missing)
    with tempfile.TemporaryDirectory(prefix="lsmkv-bench-", dir=plan.directory) as place:
        results.note_machine(place)
        meter = _Meter(progress, plan)
        for number in range(plan.rounds if plan.workloads else 0):
            meter.title = f"round {number + 1} of {plan.rounds}"
            # In turn; an engine that comes later in one round comes earlier in the next.
            order = plan.engines if number % 2 == 0 else plan.engines[::-1]
            for engine in order:
                _run_worker(plan, engine, plan.workloads, place, results, meter)
        for study in plan.studies:
            meter.title = "study"
            for engine in plan.engines:
                if study in _PROBES:
                    meter.begin(engine, study)
                    results.add_study(study, engine, _PROBES[study](engine, plan, place))
                    meter.end()
                else:
                    _run_worker(plan, engine, (study,), place, results, meter)
    return results


class _Meter:
    """The progress of the whole run."""

    def __init__(self, progress: Progress, plan: Plan) -> None:
        each = plan.rounds * len(plan.workloads) + len(plan.studies)
        self._progress = progress
        self._total = each * len(plan.engines)
        self._done = 0
        self.title = ""

    def begin(self, engine: str, name: str) -> None:
        self._progress(self._done, self._total, f"{self.title}: {engine}, {name}")

    def end(self) -> None:
        self._done += 1


def _run_worker(
    plan: Plan,
    engine: str,
    names: tuple[str, ...],
    place: str,
    results: Results,
    meter: _Meter,
) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{engine}-", dir=place) as directory:
        job = Job(engine, directory, plan.settings, names)
        for message in _converse(job):
            if "version" in message:
                results.note_version(engine, message["version"])
            elif "begin" in message:
                meter.begin(engine, message["begin"])
            elif "end" in message:
                name = message["end"]
                outcome = message.get("result", {"skipped": message.get("skipped")})
                if name in STUDIES:
                    results.add_study(name, engine, outcome)
                else:
                    results.add_round(name, engine, outcome)
                meter.end()
            elif "peak_rss" in message:
                results.note_peak(engine, message["peak_rss"])


def _converse(job: Job) -> Iterator[Message]:
    """The messages of a worker; the process is killed when the caller stops reading them."""
    with _started([sys.executable, "-P", "-m", "lsmkv.tools.bench.worker"]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # its exit status says more
            process.stdin.write(job.to_json())
            process.stdin.close()
        for line in process.stdout:
            message: Message = json.loads(line)
            if "error" in message:
                raise WorkerError(f"{job.engine}: {message['error']}")
            yield message
        status = process.wait()
    if status != 0:
        raise WorkerError(f"{job.engine}: its process {_ended(status)}")


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that imports the same lsmkv as this one, and is killed when the block ends.

    It has a session of its own: Ctrl-C reaches only this process, which then ends it.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(lsmkv.__file__)))
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _output_of(engine: str, arguments: list[str]) -> str:
    with _started([sys.executable, "-P", *arguments]) as process:
        output, _ = process.communicate()
        status = process.returncode
    if status != 0:
        raise WorkerError(f"{engine}: its process {_ended(status)}")
    return output


def _ended(status: int) -> str:
    """
    >>> _ended(3), _ended(-9)
    ('ended with status 3', 'was ended by SIGKILL')
    """
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def _memory(engine: str, plan: Plan, place: str) -> Message:
    """The output of :mod:`lsmkv.tools.bench.memory` for an engine."""
    if engine not in (OWN, "plyvel"):
        return {"skipped": "it has another API"}
    settings = plan.settings
    numbers = settings.num, settings.value_size, settings.bloom_bits, settings.cache_size
    with tempfile.TemporaryDirectory(prefix=f"{engine}-", dir=place) as directory:
        arguments = [memory.__file__, engine, directory, *map(str, numbers)]
        answer: Message = json.loads(_output_of(engine, arguments))
    return answer


def _import(engine: str, plan: Plan, place: str) -> Message:
    """How long ``import`` takes in a new interpreter."""
    times = [
        1000 * float(_output_of(engine, ["-c", _IMPORT.format(engine)])) for _ in range(_IMPORTS)
    ]
    return {"milliseconds": statistics.median(times), "low": min(times), "high": max(times)}


_PROBES: dict[str, Callable[[str, Plan, str], Message]] = {"memory": _memory, "import": _import}
"""Studies of whole processes, which need one that has not imported lsmkv yet."""

NAMES = (*WORKLOADS, *STUDIES, *_PROBES)
"""Everything that can be run."""
