"""Which planted mistakes of concurrency the simulation finds: ``mutants.py [--only NAME]``.

Each is planted alone in a copy of the repository, as ``tests/yardstick`` does, and the runs of
``simulation_study.py`` go over the copy until one fails, for ten minutes of a core at most.  With
``--mirror`` the test file that mirrors the changed module runs instead.  The outcomes are written
to ``mutants.txt`` as they come; a program that was stopped goes on where it was.  The printed
schedules are in ``build/mutants``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "yardstick"))

from mistakes import MISTAKES, Mistake  # noqa: E402
from plant import SHORT, Copy, planted  # noqa: E402
from result_rows import SIMULATIONS, quoted, read_rows, write_rows  # noqa: E402
from simulation_study import MODES, try_mode  # noqa: E402

RESULTS = HERE / "mutants.txt"
PAGE = SIMULATIONS
SECONDS = 600.0
"""Of one core: how long a mistake is looked for."""
REDUCE = 400
"""How many runs a failure is worth, to find the switches that it needs."""
MOST_SWITCHES = 36
"""Forced switches that fit one screen.  Where a failure needs more, another one is looked for."""

_TAKEN_OVER = (
    "a version edit is not synced",
    "a finished table is not synced",
    "a pin is released once more each time",
    "a batch with a condition joins a group",
)
"""Those of ``mistakes.py`` that show only where threads or crashes come in between."""

# Two are left out, since nothing comes of them.  A view that MemtableRoom.switch reads before
# it takes the lock: only a compaction can end in between, since a flush would need an immutable
# memtable, of which there is none, and an ingest the writers' lock.  The older version stays
# readable, because the view holds it, and the flush that follows puts the newest one into the view.
# And a view that Store.read_view reads before it takes the lock: what is missing in it was written
# after the call began, so that the reader sees the moment at which the view was read.
MUTANTS: tuple[Mistake, ...] = (
    # Waiting and waking
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
        "the next leader is not woken",
        "locks",
        "Writer._commit_in_turn",
        "if queue.waiting:\n            queue.wake_first()",
        "pass",
        "A write that did not fit into a group is made a tenth of a second late.",
    ),
    Mistake(
        "a follower waits before it looks",
        "locks",
        "WriteQueue.wait",
        "ticket = pending.ticket()\n",
        "ticket = pending.ticket()\n        ticket.acquire_soon()\n",
        "A write that was committed in between returns a tenth of a second late.",
    ),
    Mistake(
        "who has found another call at work is not woken",
        "locks",
        "Background.run_next_job",
        "store.changed.notify_all()  # calls that have found this one at work",
        "pass",
        "Without threads: a call waits for work that another call has done already.",
    ),
    Mistake(
        "work that is waited for is not begun",
        "locks",
        "Background.ticket",
        "self.schedule()",
        "pass",
        "A call waits for a compaction that nobody does.",
    ),
    # Writers
    Mistake(
        "a sequence is visible before the memtable has it",
        "locks",
        "Commit._apply",
        "with lock.guard:\n            if store.sharing",
        "store.versions.last_sequence = first + count - 1\n"
        "        with lock.guard:\n            if store.sharing",
        "A snapshot that is taken in between changes: at first it lacks the batch.",
    ),
    Mistake(
        "the pins are read before the lock is taken",
        "locks",
        "Commit._apply",
        "with lock.guard:\n"
        "            if store.sharing is not None:\n"
        "                store.sharing.publish(first + count - 1)\n"
        "            if store.empty_ranges.active:\n"
        "                store.empty_ranges.note(operations)\n"
        "            memtable = view.memtable\n"
        "            newest = store.pinned.newest()\n"
        "            user_bytes = memtable.add(first, operations, newest, store.pinned.in_order())",
        "newest, pinned = store.pinned.newest(), list(store.pinned.in_order())\n"
        "        with lock.guard:\n"
        "            memtable = view.memtable\n"
        "            user_bytes = memtable.add(first, operations, newest, pinned)",
        "A snapshot that is taken in between loses the versions that are overwritten.",
    ),
    Mistake(
        "a batch is visible before the log has it",
        "locks",
        "Commit.write",
        "self.batch = batch\n        try:",
        "self._apply(batch)\n        self.batch = batch\n        try:",
        "A value that was read is gone after a kill.",
    ),
    Mistake(
        "a group loses its last batch",
        "locks",
        "WriteQueue.build_group",
        "for member in members for operation",
        "for member in members[:-1] for operation",
        "A write is acknowledged that was not made.",
    ),
    Mistake(
        "a flush does not exclude writers",
        "locks",
        "Writer._begin_flush",
        "with store.lock.nested, self._lock.guard:",
        "with store.lock.nested:",
        "A batch goes into the log of a memtable that it is not in.",
    ),
    Mistake(
        "a close does not wait for a writer",
        "locks",
        "Writer.close",
        "with self._lock.guard:",
        "if True:",
        "The log is closed in the middle of a commit.",
    ),
    Mistake(
        "an ingest does not exclude writers",
        "locks",
        "Writer.publish",
        "with store.lock.nested, self._lock.guard:",
        "with store.lock.nested:",
        "A batch goes into a log that the ingest removes.",
    ),
    # Transactions
    Mistake(
        "a transaction checks its keys before the lock is taken",
        "locks",
        "DB._commit_unless_changed",
        "writer.write(list(batch.operations), sync, check.raise_if_changed)",
        "check.raise_if_changed()\n        writer.write(list(batch.operations), sync)",
        "An update is lost.",
    ),
    Mistake(
        "a transaction checks its ranges before the lock alone",
        "locks",
        "ConflictCheck.raise_if_changed",
        "if self._looked_ahead is not None:",
        "if False:",
        "A key that comes into the range during the commit is a phantom.",
    ),
    Mistake(
        "a transaction does not look into new tables",
        "locks",
        "DB._commit_unless_changed",
        "ConflictCheck(self._open_store(), sequence, tables, keys, ranges)",
        "ConflictCheck(self._open_store(), sequence, self._open_store().open_view().version.numbers"
        ", keys, ranges)",
        "An update is lost if the other one was flushed meanwhile.",
    ),
    Mistake(
        "an iterator of a transaction sees none of its writes",
        "iterators",
        "TransactionIterator.__init__",
        "self._open_scan().own_writes = own_writes",
        "pass",
        "A program decides by what it has changed already.",
    ),
    # Readers
    Mistake(
        "a view is taken without the lock",
        "locks",
        "Store.read_view",
        "with lock.nested, lock.guard:",
        "if True:",
        "An iterator misses the last writes, while a new memtable begins.",
    ),
    Mistake(
        "a view is taken under two locks, in the wrong order",
        "locks",
        "Store.read_view",
        "with lock.nested, lock.guard:",
        "with lock.nested, lock.guard, lock.writers.guard:",
        "A writer and a reader wait for each other.",
    ),
    Mistake(
        "a sequence is read before the lock is taken",
        "locks",
        "Store.read_view",
        "with lock.nested, lock.guard:\n"
        "            view = self.view_at(sequence)\n            if fixed is not None:\n"
        "                view = fixed\n            last = self.versions.last_sequence",
        "last = self.versions.last_sequence\n"
        "        with lock.nested, lock.guard:\n"
        "            view = self.view_at(sequence)\n            if fixed is not None:\n"
        "                view = fixed",
        "The versions at that sequence are overwritten before they are pinned.",
    ),
    Mistake(
        "an iterator releases its pin when it is made",
        "locks",
        "Reader.iterator",
        "read = self.read_view(sequence, fixed)",
        "read = self.read_view(sequence, fixed)\n        read.release()",
        "What is overwritten during a scan is missing in it.",
    ),
    Mistake(
        "a Get passes over writes that wait while the lock is taken",
        "memtable",
        "MemTable.get",
        "tagged = buffer.find(key, sequence)",
        "tagged = None",
        "A key that was written is not found while somebody holds the lock.",
    ),
    # Background work
    Mistake(
        "any new version takes the place of the memtable",
        "locks",
        "BackgroundJobs._finish_commit",
        "if commit.flushed and view.version is not version:",
        "if view.version is not version:",
        "A compaction ends while a memtable waits to be flushed: its writes are gone.",
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
        "two calls do background work at once",
        "locks",
        "Background.run_next_job",
        "with store.lock.nested, work.guard:",
        "with store.lock.nested:",
        "Without threads: two calls flush the same memtable.",
    ),
    Mistake(
        "a flush forgets what is pinned",
        "compaction",
        "BackgroundJobs.flush",
        "oldest_pinned = store.pinned.oldest(store.versions.last_sequence)",
        "oldest_pinned = store.versions.last_sequence",
        "A snapshot loses the versions that it sees.",
    ),
    Mistake(
        "a compaction forgets what is pinned",
        "compaction",
        "BackgroundJobs._carry_out",
        "oldest_pinned = store.pinned.oldest(store.versions.last_sequence)",
        "oldest_pinned = store.versions.last_sequence",
        "A snapshot loses the versions that it sees.",
    ),
    Mistake(
        "tables of a reader are removed",
        "compaction",
        "VersionSet.live_numbers",
        "return alive",
        "return set(self.current.numbers)",
        "An iterator comes to a table that is gone.",
    ),
    Mistake(
        "tables that are being made are removed",
        "compaction",
        "remove_obsolete_files",
        "number not in live and number not in pending_outputs",
        "number not in live",
        "A flush in the middle of a compaction or an ingest removes its tables.",
    ),
    Mistake(
        "a log is removed with its memtable in memory",
        "compaction",
        "remove_obsolete_files",
        "number < versions.log_number and",
        "number < store.open_view().memtable.log_number and",
        "After a kill the writes of the memtable that was waiting are gone.",
    ),
    *(mistake for mistake in MISTAKES if mistake.name in _TAKEN_OVER),
)


_TRIAL = """
import json, os, sys
from simulation_study import MODES, try_mode

def spent():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system

def tries():
    size = 0.4
    for turn in range(1, 1000):
        for name, share, options in MODES:
            first, left = turn * 1_000_000, max(1, int(share * size))
            while left > 0 and spent() < SECONDS:
                report = try_mode(turn, left, options, reduce=0, first=first)
                left -= report.runs
                first += report.runs
                yield name, options, report
        size *= 1.5

runs = 0
found = None
for name, options, report in tries():
    runs += report.runs
    if report.failure is not None:
        seconds = spent()
        seed = report.failure.seed
        again = try_mode(0, 1, options, reduce=REDUCE, first=seed)
        failure = again.failure or report.failure
        needed = len(failure.schedule)
        if found is None or needed < found["needed"]:
            found = {"mode": name, "runs": runs, "seed": seed, "seconds": seconds}
            found.update(kind=failure.kind, needed=needed, had=failure.found)
            found["lines"] = len(failure.schedule_table())
            text = str(failure)
        if needed <= MOST_SWITCHES:
            break
    if spent() >= SECONDS:
        break
if found:
    print(text, file=sys.stderr)
print(json.dumps(found or {"runs": runs, "seconds": spent()}))
"""

_LONGEST = 120.0
"""Seconds for a test file, which takes half a minute on a busy machine; a longer one hangs."""


class Outcome(NamedTuple):
    """What is known of a mistake."""

    kind: str
    """What kind of failure the simulation found, ``not found``, or ``-``: not tried yet."""
    mode: str
    seed: int
    runs: int
    """How many there were until it was found, this one included."""
    seconds: int
    """Seconds of a core until then."""
    needed: int
    """Forced switches that are left of those that the run had."""
    had: int
    lines: int
    """Of the printed schedule."""
    test: str
    """The first test that fails in the mirroring test file; ``none``, or ``-``: not tried yet."""


UNKNOWN = Outcome("-", "-", 0, 0, 0, 0, 0, 0, "-")
_HEAD = """\
# What finds the mistakes of mutants.py, which writes this: the simulation (kind of failure, mode,
# seed, runs until then, seconds of a core until then, forced switches that the failure needs, of
# those that the run had, lines of the printed schedule), and the test file of the changed module.
"""


def read_outcomes(path: Path = RESULTS) -> dict[str, Outcome]:
    """By the names of the mistakes, as far as they are known."""
    return {
        name: Outcome(kind, mode, *map(int, numbers), test=test)
        for name, kind, mode, *numbers, test in read_rows(path)
    }


def write_outcomes(outcomes: dict[str, Outcome], path: Path = RESULTS) -> None:
    """In the order of the list; others are left out."""
    known = (one.name for one in MUTANTS if one.name in outcomes)
    write_rows(path, _HEAD, ((name, *outcomes[name]) for name in known))


def table(outcomes: dict[str, Outcome]) -> str:
    """What ``docs/reference/simulations.md`` shows of them."""
    lines = [
        "| planted mistake | found as | mode | seed | runs | seconds | switches"
        " | the tests of the module alone |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    tried = [(mistake.name, outcomes[mistake.name]) for mistake in MUTANTS]
    for name, one in tried:
        tests = {"-": "not run", "none": "find nothing"}.get(one.test, "find it")
        lines.append(
            f"| {name} | {one.kind} | {one.mode} | {one.seed} | {one.runs} | {one.seconds}"
            f" | {one.needed} | {tests} |"
        )
    found = sum(one.kind != "not found" for _, one in tried)
    by_tests = sum(one.test not in ("-", "none") for _, one in tried)
    lines += [
        "",
        f"The simulation finds {found} of {len(tried)}; the test file of the changed module"
        f" {by_tests}.",
    ]
    return "".join(f"{line}\n" for line in lines)


def page(text: str) -> str:
    """The text of ``docs/reference/simulations.md`` with what is known now."""
    return quoted(text, "mutants", table(read_outcomes()))


def refuse_failure_of_the_source(mode: str, seed: int) -> None:
    """End the program if a run fails without any mistake, too."""
    options = next(options for name, _, options in MODES if name == mode)
    report = try_mode(0, 1, options, reduce=0, first=seed)
    if report.failure is not None:
        raise SystemExit(f"a run of the source as it is fails, {mode}: {report.failure}")


def simulate_mutant(
    mistake: Mistake, copy: Copy, log: Path, before: Outcome, seconds: float
) -> Outcome:
    """Look for it, for so many seconds of a core at most."""
    path, text = planted(mistake, copy.functions)
    right = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    trial = _TRIAL.replace("SECONDS", str(seconds)).replace("REDUCE", str(REDUCE))
    trial = trial.replace("MOST_SWITCHES", str(MOST_SWITCHES))
    place = copy.root / "tests" / "stress"
    try:
        with log.open("wb") as errors:
            done = subprocess.run(
                [sys.executable, "-c", trial],
                cwd=copy.root,  # which comes first in the path
                env={**os.environ, "PYTHONPATH": f"{copy.root}{os.pathsep}{place}"},
                stdout=subprocess.PIPE,
                stderr=errors,
                check=True,
            )
    finally:
        path.write_bytes(right)
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
    found = json.loads(done.stdout)
    if "mode" in found:
        refuse_failure_of_the_source(found["mode"], found["seed"])
    found["seconds"] = round(found["seconds"])
    if "kind" not in found and seconds < SECONDS:
        return before
    return before._replace(**{"kind": "not found", "mode": "-", **found})


def main() -> int:
    """Try the mistakes; 1 if the simulation misses one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="a mistake, though it was tried before"
    )
    parser.add_argument("--mirror", action="store_true", help="run the mirroring test files")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of a core; fewer leave a mistake untried"
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="write the table of docs/reference/simulations.md, and run nothing",
    )
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    logs = ROOT / "build" / "mutants"
    logs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the copy is removed
    outcomes = read_outcomes()
    with tempfile.TemporaryDirectory(prefix="lsmkv-mutants-") as place:
        copy = Copy(Path(place), 1, _LONGEST)
        for mistake in MUTANTS:
            if arguments.only is not None and mistake.name not in arguments.only:
                continue
            before = outcomes.get(mistake.name, UNKNOWN)
            known = before.test if arguments.mirror else before.kind
            if arguments.only is None and known != "-":
                continue
            if arguments.mirror:
                result = copy.try_mistake(mistake, (SHORT,), mirror_only=True)
                after = before._replace(test=result.test or "none")
            else:
                log = logs / f"{mistake.name.replace(' ', '-')}.txt"
                after = simulate_mutant(mistake, copy, log, before, arguments.seconds)
            print(" | ".join(map(str, (mistake.name, *after))), flush=True)
            # Another run may have written meanwhile.
            outcomes = {**read_outcomes(), mistake.name: after}
            write_outcomes(outcomes)
    missed = [name for name, one in outcomes.items() if one.kind == "not found"]
    print(f"not found: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
