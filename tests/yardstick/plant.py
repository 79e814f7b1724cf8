"""Measures the test suite: ``plant.py [--tests short|all] [--part PART] [--only NAME] [--list]``.

It copies the repository, plants one mistake of ``mistakes.py`` at a time in the copy, and runs the
suite there until the first failure: the test file that mirrors the changed module, then the folders
around that, then what else ``make test`` runs, then the long tests.  A test that fails without the
mistake too does not count, and one that hangs does.  Each outcome is written to ``results.txt`` at
once, and what pytest said to ``build/yardstick``.  A program that was stopped goes on where it was;
``--only`` tries a mistake again.  Not for Windows.

mutmut and cosmic-ray were looked at (3.8 and 8.7).  Both make their mutants by rules, such as
another comparison or constant, and neither takes a list: not a sync that is left out, nor two steps
in another order; and cosmic-ray finds a mutant by its line, which any change above it moves.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from mistake import PARTS, Mistake
from mistakes import MISTAKES

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.txt")
LOGS = ROOT / "build" / "yardstick"

SHORT, LONG = "make test", "make test-all"
"""The suites: the second one adds the long tests."""
_MARKS = {SHORT: "not long", LONG: "long and not weekly"}
_LEFT_OUT = ("course",)
_OWN_TEST = "tests/test_yardstick.py"  # which every planted mistake breaks
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
_SUMMARY = "short test summary info"
_HUNG = "Timeout (0:"  # faulthandler's, when the watchdog of tests/conftest.py ends a test
_LONGEST = 3600.0
"""Seconds for one call of pytest, which takes minutes; a longer one hangs."""


class CannotPlantError(Exception):
    """The function of a mistake, or its text, is not there exactly once."""


# Planting


class Place(NamedTuple):
    """A function in a file: its first and last line, counted from 1."""

    path: Path
    first: int
    last: int


def parsed(path: Path) -> ast.AST:
    """The tree of a file."""
    return ast.parse(path.read_bytes())


def functions_in(
    package: Path, tree_of: Callable[[Path], ast.AST] = parsed
) -> dict[str, list[Place]]:
    """The functions of the engine by their qualified names, without modules."""
    found: dict[str, list[Place]] = {}

    def visit(node: ast.AST, path: Path, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                last = child.end_lineno or child.lineno
                found.setdefault(prefix + child.name, []).append(Place(path, child.lineno, last))
            elif isinstance(child, ast.ClassDef):
                visit(child, path, f"{prefix}{child.name}.")
            else:
                visit(child, path, prefix)

    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in _LEFT_OUT:
            visit(tree_of(path), path, "")
    return found


def planted(mistake: Mistake, functions: dict[str, list[Place]]) -> tuple[Path, str]:
    """The file that a mistake changes, and what it then holds; :class:`CannotPlantError`."""
    places = functions.get(mistake.function, [])
    if len(places) != 1:
        raise CannotPlantError(f"{len(places)} functions are called {mistake.function}")
    path, first, last = places[0]
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    body = "".join(lines[first - 1 : last])
    count = body.count(mistake.right)
    if count != 1:
        raise CannotPlantError(f"{mistake.right!r} is {count} times in {mistake.function}")
    changed = body.replace(mistake.right, mistake.wrong)
    return path, "".join([*lines[: first - 1], changed, *lines[last:]])


# Results


class Result(NamedTuple):
    """What found a mistake: a test of a suite, or nothing in all that was run."""

    name: str
    suite: str
    """``make test`` or ``make test-all``: the smallest suite that finds it, or the largest that
    does not."""
    test: str
    seconds: int

    def __str__(self) -> str:
        found = f"found by {self.suite}" if self.test else f"not found by {self.suite}"
        return f"{self.name} | {found} | {self.test or '-'} | {self.seconds} s"


def read_results(path: Path) -> dict[str, Result]:
    """The results of a file, by the names of their mistakes; none if there is no file."""
    results: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if line.startswith("#") or not line:
            continue
        name, found, rest = line.split(" | ", 2)
        test, seconds = rest.rsplit(" | ", 1)
        suite = LONG if found.endswith(LONG) else SHORT
        took = int(seconds.removesuffix(" s"))
        results[name] = Result(name, suite, "" if test == "-" else test, took)
    return results


def write_results(path: Path, results: Iterable[Result]) -> None:
    """Replace the file, in the order of the list of mistakes; others are left out."""
    order = {mistake.name: at for at, mistake in enumerate(MISTAKES)}
    known = (result for result in results if result.name in order)
    some = sorted(known, key=lambda result: order[result.name])
    found = {suite: sum(bool(one.test) and one.suite == suite for one in some) for suite in _MARKS}
    head = (
        "# What finds the mistakes of mistakes.py: written by plant.py (make yardstick).\n"
        f"# {len(some)} of {len(MISTAKES)} tried; {SHORT} finds {found[SHORT]},"
        f" {LONG} {found[LONG]} more.\n"
    )
    new = path.with_suffix(".new")
    new.write_text(head + "".join(f"{result}\n" for result in some), encoding="utf-8")
    new.replace(path)


def suites_left(result: Result | None, suites: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the suites that are still to be run for a mistake."""
    if result is None:
        return suites
    return () if result.test or result.suite == LONG else suites[1:]


# The suite, in a copy


def mirror_of(module: str) -> str:
    """The test file of a module; both lie below the repository."""
    places = [str(ROOT / "tests"), str(ROOT / "tests" / "helpers")]
    sys.path += places
    try:
        import test_mirror
    finally:
        del sys.path[-len(places) :]
    path = module.removeprefix("lsmkv/")
    return "tests/" + str(test_mirror.file_of_tests(path))


def widening(mirror: str) -> list[list[str]]:
    """Arguments of pytest: that test file, then the folders around it, then all else.

    A mistake is most often found close to its place, long before the whole suite has run.
    """
    parts = mirror.split("/")[:-1]
    folders = ["/".join(parts[:size]) for size in range(len(parts), 1, -1)]
    found = [[mirror]]
    for folder in folders:
        found.append([folder, *(f"--ignore={one[0]}" for one in found)])
    return [*found, [f"--ignore={one[0]}" for one in found]]


class Copy:
    """A copy of what git tracks, in which mistakes are planted."""

    def __init__(self, root: Path, workers: int, longest: float) -> None:
        self.root = root
        self._workers = workers
        self._longest = longest
        self._broken: list[str] = []  # tests that fail in the copy without any mistake
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        self.functions = functions_in(root / "lsmkv")

    def try_mistake(self, mistake: Mistake, suites: tuple[str, ...], mirror_only: bool) -> Result:
        """Plant a mistake, run the suites until a test finds it, and take the mistake away."""
        path, text = planted(mistake, self.functions)
        mirror = mirror_of(path.relative_to(self.root).as_posix())
        log = LOGS / f"{re.sub('[^a-z0-9]+', '-', mistake.name.lower())}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        started = time.monotonic()
        suite = test = ""
        for suite in suites:
            for some in [[mirror]] if mirror_only else widening(mirror):
                test = self._failure_with(path, text, ["-m", _MARKS[suite], *some], log)
                if test:
                    break
            if test:
                break
        return Result(mistake.name, suite, test, round(time.monotonic() - started))

    def _failure_with(self, path: Path, text: str, arguments: list[str], log: Path) -> str:
        """The first test that fails while a file holds ``text``, and passes otherwise."""
        right = path.read_bytes()
        while True:
            self._store(path, text.encode())
            try:
                test, note = self._first_failure(arguments, log)
                if test and not note and self._passes(test, log):
                    note = " (not every time)"  # by chance, or for the load of the machine
            finally:
                self._store(path, right)
            if not test or self._passes(test, log):
                return test + note
            print(f"fails without any mistake, and is left out from now on: {test}", flush=True)
            self._broken.append(test)

    def _store(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Its time and size may be those of the text before.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def _first_failure(self, arguments: list[str], log: Path) -> tuple[str, str]:
        """The first test that fails, and a note on it; the note alone if no test is known to have
        ended the run, and nothing if all pass."""
        # A test that hangs ends its worker; a new one would only hang in the next test.
        parallel = [f"-n{self._workers}", "--max-worker-restart=0"]
        code, output = self._pytest([*parallel, *arguments], log)
        if code is None:
            return "", f"a run that hangs: it did not end in {self._longest:.0f} s"
        if code in (0, 5):  # 5: none of the tests is of this suite
            return "", ""
        if code == 4:
            raise SystemExit(f"pytest could not run: see {log}")
        failed = _FAILED.search(output.rpartition(_SUMMARY)[2])
        if failed is None:
            return "", f"a run that ended with {code}"
        return failed[1], " (it hangs)" if _HUNG in output else ""

    def _passes(self, test: str, log: Path) -> bool:
        """Whether a test passes alone."""
        code, _ = self._pytest([test], log)
        return code in (0, 4)  # 4: its name cannot be given to pytest, nor left out

    def _pytest(self, arguments: list[str], log: Path) -> tuple[int | None, str]:
        """The exit code, None if it had to be killed, and the output."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += [f"--ignore={_OWN_TEST}", *(f"--deselect={one}" for one in self._broken)]
        environment = {
            **os.environ,
            "LSMKV_EXPECT_COMPILED": "0",
            "PYTHONPATH": str(self.root),
        }
        environment.pop("PYTHONSAFEPATH", None)
        with log.open("a+b") as output:
            begin = output.seek(0, os.SEEK_END)
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None = None
            try:
                code = process.wait(self._longest)
            except subprocess.TimeoutExpired:
                pass
            finally:
                # Processes of tests that are left; the session is pytest's alone.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
            output.seek(begin)
            return code, output.read().decode("utf-8", "replace")


def main() -> int:
    """Run what is asked for; 1 if there is a mistake that nothing finds, or that is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", choices=("short", "all"), default="all", help="make test alone")
    parser.add_argument("--part", choices=PARTS, help="mistakes of one part")
    parser.add_argument("--only", metavar="NAME", help="one mistake, though it was tried before")
    parser.add_argument("--list", action="store_true", help="show the mistakes, and run nothing")
    parser.add_argument("--mirror", action="store_true", help="the mirroring test files alone")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where outcomes go")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest-xdist")
    parser.add_argument("--longest", type=float, default=_LONGEST, help="seconds until it hangs")
    arguments = parser.parse_args()
    chosen = [
        mistake
        for mistake in MISTAKES
        if arguments.part in (None, mistake.part) and arguments.only in (None, mistake.name)
    ]
    if not chosen:
        parser.error(f"no mistake is called {arguments.only!r}: see --list")
    results = read_results(arguments.results)
    if arguments.list:
        for mistake in chosen:
            print(f"{mistake.part:<10}  {mistake.name}: {mistake.harm}")
            print(f"{'':<10}  {results.get(mistake.name) or 'not tried yet'}")
        return 0
    # As Ctrl-C does: the tests end, the copy goes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    refused = 0
    suites = (SHORT,) if arguments.tests == "short" or arguments.mirror else (SHORT, LONG)
    with tempfile.TemporaryDirectory(prefix="lsmkv-yardstick-") as place:
        copy = Copy(Path(place), arguments.workers, arguments.longest)
        for mistake in chosen:
            before = None if arguments.only else results.get(mistake.name)
            left = suites_left(before, suites)
            if not left:
                continue
            try:
                result = copy.try_mistake(mistake, left, arguments.mirror)
            except CannotPlantError as error:
                print(f"{mistake.name}: refused, {error}", flush=True)
                refused += 1
                continue
            if arguments.mirror and not result.test:
                print(f"{mistake.name} | not found by its mirror", flush=True)
                continue
            print(result, flush=True)
            results[mistake.name] = result
            write_results(arguments.results, results.values())
    missed = [one.name for one in chosen if one.name in results and not results[one.name].test]
    print(f"not found: {', '.join(missed) or 'none'}")
    return 1 if missed or refused else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
