"""The process that runs one engine: ``python -m lsmkv.tools.bench.worker``.

A job comes as JSON on stdin.  Each step is written at once, as a line with a JSON object, so that
the parent process can show it, and so that a worker ends (with a broken pipe) soon after its
parent.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from lsmkv.tools.bench.engines import make_engine
from lsmkv.tools.bench.memory import peak_rss
from lsmkv.tools.bench.settings import Settings
from lsmkv.tools.bench.store import Engine
from lsmkv.tools.bench.studies import STUDIES, require_right
from lsmkv.tools.bench.workbench import Bench
from lsmkv.tools.bench.workloads import THREADED, WORKLOADS

ONE_THREAD = "its stores are for one thread each"


@dataclass(frozen=True)
class Job:
    """The job of a worker."""

    engine: str
    directory: str
    """It exists and is empty."""
    settings: Settings
    names: tuple[str, ...]
    """Workloads and studies, in the order in which they are run."""

    def to_json(self) -> str:
        """The text for a worker's stdin."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job in that text."""
        plain = json.loads(text)
        settings, names = Settings(**plain.pop("settings")), tuple(plain.pop("names"))
        return cls(settings=settings, names=names, **plain)


def main() -> int:
    """Run the job on stdin; the exit status is 0, or 1 after an error, which is reported."""
    job = Job.from_json(sys.stdin.read())
    name = ""
    try:
        engine = make_engine(job.engine)
        _report({"version": engine.version})
        settings = job.settings if engine.threads else replace(job.settings, threads=1)
        bench = Bench(engine, job.directory, settings)
        for name in job.names:
            _report({"begin": name})
            _report({"end": name} | _result_of(engine, bench, name, job.settings.threads))
        _report({"peak_rss": peak_rss()})
    except BrokenPipeError:
        return 1
    except Exception as error:
        _report({"error": f"{name}: {type(error).__name__}: {error}".removeprefix(": ")})
        return 1
    return 0


def _result_of(engine: Engine, bench: Bench, name: str, threads: int) -> dict[str, Any]:
    """The result of a workload or study, or why it was skipped."""
    reason = engine.cannot.get(name)
    writer_beside = name == "readwhilewriting"
    wants_threads = name in THREADED and threads > 1
    if reason is None and not engine.threads and (wants_threads or writer_beside):
        reason = ONE_THREAD
    if reason is not None:
        return {"skipped": reason}
    if name in STUDIES:
        return {"result": STUDIES[name](bench)}
    outcome = WORKLOADS[name](bench)
    require_right(outcome.seen, outcome.expected)
    return {"result": outcome.to_dict()}


def _report(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
