"""Runs engines in turn, each in a separate process, and collects their results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import lsmkv
from lsmkv.engine.util.progress import Progress
from lsmkv.tools.bench import memory
from lsmkv.tools.bench.engines import OWN, module_of
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.bench.results import Results
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.studies import STUDIES
from lsmkv.tools.bench.worker import Job
from lsmkv.tools.bench.workloads import WORKLOADS

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
    """Requested engines that are not installed."""
    rounds: int
    """The number of runs of the workloads; studies are run once."""
    directory: str | None
    """The parent directory of the temporary stores; None for the system's temporary directory."""


class WorkerError(lsmkv.Error):
    """A process that was to measure an engine failed."""


def run(plan: Plan, progress: Progress) -> Results:
    """Run the plan; ``WorkerError`` if a worker fails.  It leaves no process and no directory."""
    results = Results(plan.settings, plan.rounds, plan.engines, plan.missing)
    each = plan.rounds * len(plan.workloads) + len(plan.studies)
    done = 0
    with tempfile.TemporaryDirectory(prefix="lsmkv-bench-", dir=plan.directory) as place:
        results.machine = machine(place)
        for title, engine, names in _turns(plan):
            with contextlib.closing(_messages(plan, engine, names, place)) as messages:
                for message in messages:
                    results.take(engine, message)
                    if "begin" in message:
                        where = f"{title}: {engine}, {message['begin']}"
                        progress(done, each * len(plan.engines), where)
                    elif "end" in message:
                        done += 1
    return results


def _turns(plan: Plan) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield groups to run together, in order: a title, the engine, and the names."""
    for number in range(plan.rounds if plan.workloads else 0):
        # In turn; an engine that comes later in one round comes earlier in the next.
        order = plan.engines if number % 2 == 0 else plan.engines[::-1]
        for engine in order:
            yield f"round {number + 1} of {plan.rounds}", engine, plan.workloads
    for study in plan.studies:
        for engine in plan.engines:
            yield "study", engine, (study,)


def _messages(
    plan: Plan, engine: str, names: tuple[str, ...], place: str
) -> Generator[Message, None, None]:
    """The messages of a worker, or those that it would have for a study of whole processes."""
    with tempfile.TemporaryDirectory(prefix=f"{engine}-", dir=place) as directory:
        probe = _PROBES.get(names[0])
        if probe is None:
            yield from _converse(Job(engine, directory, plan.settings, names))
        else:
            yield {"begin": names[0]}
            yield {"end": names[0], "result": probe(engine, plan.settings, directory)}


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

    It has its own session: Ctrl-C reaches only this process, which then ends it.
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


def _memory(engine: str, settings: Settings, directory: str) -> Message:
    """The output of :mod:`lsmkv.tools.bench.memory` for an engine."""
    if engine not in (OWN, "plyvel"):
        return {"skipped": "it has another API"}
    numbers = settings.num, settings.value_size, settings.bloom_bits, settings.cache_size
    arguments = [memory.__file__, engine, directory, *map(str, numbers)]
    answer: Message = json.loads(_output_of(engine, arguments))
    return answer


def _import(engine: str, settings: Settings, directory: str) -> Message:
    """Measure ``import`` in a new interpreter."""
    program = _IMPORT.format(module_of(engine))
    times = [1000 * float(_output_of(engine, ["-c", program])) for _ in range(_IMPORTS)]
    return {"milliseconds": statistics.median(times), "low": min(times), "high": max(times)}


_PROBES: dict[str, Callable[[str, Settings, str], Message]] = {"memory": _memory, "import": _import}
"""Studies of whole processes, which need one that has not imported lsmkv yet."""

NAMES = (*WORKLOADS, *STUDIES, *_PROBES)
"""Everything that can be run."""
