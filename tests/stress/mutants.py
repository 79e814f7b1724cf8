"""Which planted mistakes of concurrency the simulation finds: ``mutants.py [--only NAME]``.

Each is planted alone in a copy of the package, as ``tests/yardstick`` does, and the runs of
``simulation_study.py`` go over the copy until one fails.  The outcomes are in ``mutants.txt``: what
kind of failure it was, after how many runs, and how many forced switches it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "yardstick"))

from mistakes import MISTAKES, Mistake  # noqa: E402
from plant import functions_in, planted  # noqa: E402

RESULTS = HERE / "mutants.txt"
SIZE = 2.0
"""As of the study: how much is tried before a mistake counts as not found."""

_TAKEN_OVER = ("a sync does not exclude writers",)
MUTANTS: tuple[Mistake, ...] = (
    *(mistake for mistake in MISTAKES if mistake.name in _TAKEN_OVER),
    Mistake(
        "a change of state wakes all but one",
        "locks",
        "StateChange.notify_all",
        "for lock in locks:",
        "for lock in locks[1:]:",
        "A writer that waits for a flush waits for ever.",
    ),
    Mistake(
        "followers are not woken",
        "locks",
        "WriteQueue.release_followers",
        "member.wake()",
        "pass",
        "A write that another one has committed returns a tenth of a second late.",
    ),
    Mistake(
        "a batch becomes visible without the lock",
        "locks",
        "Commit._apply",
        "with lock.guard:\n            lock.owner = lock.writers.owner  # as claim() does",
        "if True:\n            pass",
        "A snapshot sees a part of a batch.",
    ),
    Mistake(
        "a view is taken without the lock",
        "locks",
        "Store.read_view",
        "with lock.afterwards, lock.guard:\n            lock.claim()",
        "if True:",
        "An iterator misses the last writes, while a new memtable begins.",
    ),
    Mistake(
        "a view is taken under two locks, in the wrong order",
        "locks",
        "Store.read_view",
        "with lock.afterwards, lock.guard:",
        "with lock.afterwards, lock.guard, lock.writers.guard:",
        "A writer and a reader wait for each other.",
    ),
    Mistake(
        "the view before a new memtable is an old one",
        "locks",
        "Writer._switch_memtable",
        "with store.lock.guard:\n            store.lock.claim()\n"
        "            view = store.open_view()",
        "view = store.open_view()\n        with store.lock.guard:\n            store.lock.claim()",
        "A compaction that ends meanwhile is forgotten, and its inputs are gone.",
    ),
    Mistake(
        "the view before a new version is an old one",
        "locks",
        "BackgroundJobs._finish_commit",
        "with store.lock.afterwards, store.lock.guard:\n            store.lock.claim()\n"
        "            view = store.open_view()",
        "view = store.open_view()\n        with store.lock.afterwards, store.lock.guard:\n"
        "            store.lock.claim()",
        "A memtable that begins meanwhile is forgotten, and its writes with it.",
    ),
    Mistake(
        "two threads do background work",
        "locks",
        "Background._start_thread",
        "self.threadless or self._running_thread is not None or",
        "self.threadless or",
        "Two compactions take the same inputs.",
    ),
    Mistake(
        "work that is waited for is not begun",
        "locks",
        "Background.ticket",
        "self.schedule()",
        "pass",
        "A call waits for a compaction that nobody does.",
    ),
    Mistake(
        "a flush does not exclude writers",
        "locks",
        "Writer._begin_flush",
        "with store.lock.afterwards, self._lock.guard:\n            self._lock.claim()",
        "with store.lock.afterwards:",
        "A batch goes into the log of a memtable that it is not in.",
    ),
    Mistake(
        "tables that are being made are removed",
        "compaction",
        "remove_obsolete_files",
        "number not in live and number not in pending_outputs",
        "number not in live",
        "A flush in the middle of a compaction removes its outputs.",
    ),
)

_TRIAL = """
import json, sys
from simulation_study import MODES, try_mode
runs = 0
for name, share, options in MODES:
    report = try_mode(1, max(1, int(share * SIZE)), options)
    runs += report.runs
    if report.failure is not None:
        failure = report.failure
        print(json.dumps([name, failure.kind, runs, len(failure.schedule), failure.found]))
        print(report, file=sys.stderr)
        break
else:
    print(json.dumps(None))
"""


def try_mutant(mistake: Mistake, copy: Path, log: Path) -> str:
    """One line: how it was found, or that it was not."""
    path, text = planted(mistake, functions_in(copy / "lsmkv"))
    right = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    started = time.monotonic()
    try:
        with log.open("ab") as errors:
            done = subprocess.run(
                [sys.executable, "-c", _TRIAL.replace("SIZE", str(SIZE))],
                env={**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{HERE}"},
                stdout=subprocess.PIPE,
                stderr=errors,
                check=True,
            )
    finally:
        path.write_bytes(right)
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    found = json.loads(done.stdout)
    seconds = round(time.monotonic() - started)
    if found is None:
        return f"{mistake.name} | not found | {seconds} s"
    mode, kind, runs, needed, had = found
    return (
        f"{mistake.name} | {kind} | run {runs}, {mode} | {needed} of {had} switches | {seconds} s"
    )


def main() -> int:
    """Try the mistakes; 1 if one is not found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="NAME", help="one mistake")
    arguments = parser.parse_args()
    logs = ROOT / "build" / "mutants"
    logs.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="lsmkv-mutants-") as place:
        copy = Path(place)
        shutil.copytree(
            ROOT / "lsmkv", copy / "lsmkv", ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
        for mistake in MUTANTS:
            if arguments.only in (None, mistake.name):
                log = logs / f"{mistake.name.replace(' ', '-')}.txt"
                log.unlink(missing_ok=True)
                lines.append(try_mutant(mistake, copy, log))
                print(lines[-1], flush=True)
    found = sum("| not found |" not in line for line in lines)
    if arguments.only is None:
        head = (
            "# Mistakes of mutants.py that the simulation finds: the kind of failure, the run, the"
            " forced\n# switches that it needs of those that it had.  Written by mutants.py.\n"
            f"# {found} of {len(lines)} are found.\n"
        )
        RESULTS.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return 0 if found == len(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
