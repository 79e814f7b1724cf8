"""What all tests share: no example of a property test is held against a clock, a test may be a
coroutine, and a watchdog ends a run that hangs, since a lost wakeup would hang it for good.

The folders in ``collect_ignore`` have make targets of their own.  Pytest collects them only where
they are named: ``pytest tests/browser``.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import inspect
import linecache
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
import states
from hypothesis import settings
from left_out import left_out_of
from progress import Progress

from lsmkv.engine.former_paths import present_path
from lsmkv.engine.util.signals import deferred

collect_ignore = [
    "bench",
    "browser",
    "deploys",
    "fuzz",
    "helpers/macos",
    "packaging",
    "stress",
    "yardstick",
]

# Seconds; only a hang takes that long, or what make test-nested asks for.
_LONGEST_TEST = 300.0 + float(os.environ.get("LSMKV_NESTED_SECONDS", "0"))

settings.register_profile("lsmkv", deadline=None)
settings.load_profile("lsmkv")

# A shell lets what it starts in the background ignore Ctrl-C, and so would the processes of tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def names_in(file: str) -> tuple[str, ...]:
    """Folders, files and test functions, below the root, that a file of this folder names."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return tuple(line.split()[0] for line in text.splitlines() if line and not line.startswith("#"))


WEEKLY = names_in("weekly.txt")
"""What make weekly alone runs."""
LONG = names_in("long.txt")
"""What make test leaves out, as it does what is run weekly."""
INTERPRETED = names_in("interpreted.txt")
"""What make run-compiled leaves out."""


@pytest.hookimpl(tryfirst=True)  # before those that were not asked for are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``long.txt``, ``weekly.txt`` and ``interpreted.txt``."""
    marks = (
        (pytest.mark.long, LONG + WEEKLY),
        (pytest.mark.weekly, WEEKLY),
        (pytest.mark.interpreted, INTERPRETED),
    )
    for mark, names in marks:
        within = tuple(f"{name}{separator}" for name in names for separator in ("/", "::"))
        for item in items:
            name = item.nodeid.partition("[")[0]
            if name in names or name.startswith(within):
                item.add_marker(mark)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the files that make test, or make test-all, leaves out."""
    left_out = {"not long": LONG + WEEKLY, "not weekly": WEEKLY}.get(config.option.markexpr, ())
    if not left_out or config.option.keyword:
        return None
    inside = collection_path.relative_to(config.rootpath).as_posix()
    return inside in left_out or None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the long tests of a part that ``make test`` has left out."""
    asked = config.option.markexpr == "not long" and not config.option.keyword
    if not asked or config.args_source is not config.ArgsSource.ARGS:
        return
    names = left_out_of(sorted(LONG + WEEKLY), config.args)
    if names:
        terminalreporter.write_line(
            "left out, since they take long (make test ARGS=FILE runs a file with all its tests,"
            " make test-all and make weekly run everything):"
        )
        for name in names:
            terminalreporter.write_line(f"  {name}")


class NoDoors:
    """Leaves out the doors to modules: they have the doctests of these."""

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Also in ``lsmkv``, for which a conftest of ``tests`` is not asked."""
        if not collection_path.is_relative_to(config.rootpath / "lsmkv"):
            return None
        name = collection_path.relative_to(config.rootpath).with_suffix("").as_posix()
        return (
            collection_path.suffix == ".py" and present_path(name.replace("/", ".")) is not None
        ) or None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the commands of testdata/*.txt answer, instead of comparing it",
    )

    parser.addoption(
        "--record-seconds",
        action="store_true",
        help="write what the tests of each folder took to tests/seconds.txt; on a quiet machine",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """A line of progress, unless something else was asked for."""
    states.begin(config)
    config.pluginmanager.register(NoDoors(), "no doors")
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and config.option.verbose <= 0 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(reporter), "progress")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write tests/seconds.txt, if the run was whole and that was asked for."""
    progress = session.config.pluginmanager.get_plugin("progress")
    if progress is None or exitstatus != 0 or not session.config.option.record_seconds:
        return
    head = (
        "# Seconds that the tests of make test take in each folder: pytest --record-seconds.\n"
        "# tests/test_long.py holds their sum.\n"
    )
    lines = [f"{name} {round(took, 1)}\n" for name, took in sorted(progress.seconds.items())]
    (Path(__file__).parent / "seconds.txt").write_text(head + "".join(lines), encoding="utf-8")


gc.disable()  # until all tests are collected: nothing of that is garbage


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what was collected: 1.7 million objects, which took each
    full collection a second.
    """
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine: in the loop of its fixture ``runner``, or in a new one."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    runner: asyncio.Runner | None = pyfuncitem.funcargs.get("runner")
    run = asyncio.run if runner is None else runner.run
    run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Thousands of warnings about torn logs are turned off."""
    caplog.set_level(logging.CRITICAL, logger="lsmkv")


@pytest.fixture(autouse=True)
def _no_section_is_left() -> Iterator[None]:
    """Signals are deferred no longer than the calls that defer them."""
    yield
    assert (deferred._depth, deferred._undisturbed, deferred._own) == (0, 0, {})


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="session")
def _real_stderr(pytestconfig: pytest.Config) -> Iterator[int]:
    """Where a traceback can be read although the run dies: past pytest's capture."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    if capture is None:
        fd = os.dup(2)
    else:
        with capture.global_and_fixture_disabled():
            fd = os.dup(2)
    yield fd
    os.close(fd)


@pytest.fixture
def signals_are_heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests that let a signal's handler raise at any moment.

    What it raises in a call by the garbage collector is swallowed by the interpreter; hypothesis,
    once imported, has itself called at every collection: nobody is, for so long.  What it raises in
    a finalizer, or in what a weak set of the standard library does when a member dies (one has all
    threads), is only reported, and is no finding: CPython lets nobody else have it.
    """
    callbacks = list(gc.callbacks)
    gc.callbacks.clear()
    report = sys.unraisablehook

    def report_others(what: sys.UnraisableHookArgs) -> None:
        interrupt = what.exc_value is not None and not isinstance(what.exc_value, Exception)
        finalizer = getattr(what.object, "__name__", "") == "__del__"
        weak = getattr(what.object, "__module__", "") in {"_weakrefset", "weakref"}
        if not interrupt or not (finalizer or weak):
            report(what)

    monkeypatch.setattr(sys, "unraisablehook", report_others)
    yield
    gc.callbacks.extend(callbacks)


@pytest.fixture
def interrupted_at() -> Callable[..., bool]:
    """Makes a call, with a Ctrl-C before one line, by its number of all those that the call runs in
    a module, or in several; returns whether it came to that.  Where they are not compiled."""

    def run(module: ModuleType, line: int, call: Callable[[], object], *more: ModuleType) -> bool:
        left = line
        files = {one.__file__ for one in (module, *more)}

        def trace(frame: FrameType, event: str, _argument: object) -> Any:
            nonlocal left
            if frame.f_code.co_filename not in files:
                return None
            # CPython looks for signals after calls: none comes just behind a with, or at its end,
            # nor at a try, which calls nothing.
            here = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
            if event == "line" and not here.startswith(("with ", "try:")):
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    return run


@pytest.fixture(autouse=True)
def _watchdog(_real_stderr: int) -> Iterator[None]:
    """Ends a run that hangs, and shows where every thread stands."""
    if sys.platform == "emscripten":  # which has no thread for it
        yield
        return
    faulthandler.dump_traceback_later(_LONGEST_TEST, exit=True, file=_real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
