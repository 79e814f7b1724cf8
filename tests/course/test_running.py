"""A check ends in an outcome, whatever the student's file does to its process."""

from __future__ import annotations

import logging
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lsmkv
from lsmkv.course.failure import CheckFailure
from lsmkv.course.lab import Check, Lab
from lsmkv.course.running import Limits, Result, run_checks, without_network
from lsmkv.tools.signals import Terminated


def call(code: Any) -> str:
    return f"it returned {code.part()}"


CHECK = Check("a call", call)
LAB = Lab(99, "made_up", "A lab", ("part",), (CHECK, Check("another", call)), str)
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "student.py"


def run(file: Path, check: Check = CHECK, limits: Limits = Limits(60)) -> Result:  # noqa: B008
    (result,) = run_checks(LAB, str(file), limits, checks=[check])
    return result


@pytest.mark.parametrize(
    ("source", "outcome", "message"),
    [
        ("def part(): return 3", "passed", "it returned 3"),
        ("def part():\n    raise NotImplementedError", "not written", "part is not written yet"),
        (
            "def part():\n    return 1 / 0",
            "error",
            "ZeroDivisionError: division by zero\n  line 2: return 1 / 0\n  in part()",
        ),
        ("def part():\n    exit(1)", "error", "SystemExit: 1"),
        ("def part():\n    raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("def other(): pass", "error", "the file has no function part"),
        ("part = 3", "error", "the file has no function part"),
        ("def part(:", "error", "the file cannot be run: SyntaxError"),
        ("import no_such_module", "error", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("exit()", "error", "the file cannot be run: SystemExit"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
            "def part(): return A(1).x",
            "passed",
            "it returned 1",
        ),
    ],
)
def test_outcomes(file: Path, source: str, outcome: str, message: str) -> None:
    file.write_text(source)
    result = run(file)
    assert result.outcome == outcome
    assert message in result.message


def test_the_call_that_raised_is_shown(file: Path) -> None:
    file.write_text("def part(data, number):\n    return data[number]")
    check = Check("with arguments", lambda code: str(code.part(b"\x01" * 99, 100)))
    message = run(file, check).message
    assert "IndexError: index out of range\n  line 2: return data[number]\n" in message
    assert "  in part(the bytes 01 01" in message
    assert message.endswith("..., 100)")


def test_what_was_saved_last_is_run(file: Path) -> None:
    for number in range(3):
        file.write_text(f"def part(): return {number}")
        assert run(file).message == f"it returned {number}"


def test_a_file_that_is_not_there_is_an_error_of_the_command(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(file)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("def part():\n    while True: pass", "line 2: while True: pass"),
        ("import time\ndef part():\n    time.sleep(1000)", "line 3: time.sleep(1000)"),
        (
            "import os\ndef part():\n    for _ in iter(int, 1): os.getpid()",
            "line 3: for _ in iter(int, 1): os.getpid()",
        ),
    ],
    ids=["busy", "asleep", "busy in the system"],
)
def test_a_check_is_stopped_in_time(file: Path, source: str, where: str) -> None:
    file.write_text(source)
    result = run(file, limits=Limits(0.5))
    assert result.outcome == "stopped"
    place = "" if sys.platform == "win32" else f"\n  {where}"
    assert result.message == f"it was stopped after 0.5 s{place}"


@posix
def test_a_process_that_stops_itself_is_ended(file: Path) -> None:
    file.write_text("import os, signal\ndef part(): os.kill(os.getpid(), signal.SIGSTOP)")
    assert run(file, limits=Limits(0.5)).message == "it was stopped after 0.5 s"


def test_a_loop_at_the_top_of_the_file_is_stopped_once(file: Path) -> None:
    file.write_text("while True:\n    try: x = 1\n    except BaseException: pass")
    started: list[int] = []
    first, second = run_checks(LAB, str(file), Limits(0.5), started=started.append)
    assert (first.outcome, second.outcome, len(started)) == ("stopped", "stopped", 1)
    assert first.message == second.message
    assert first.message.startswith("it was stopped after 0.5 s")


@posix
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import os; os._exit(0)", "its process ended with status 0"),
        ("import os; os._exit(3)", "its process ended with status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed: SIGSEGV, an access"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "crashed: SIGKILL, which ends"),
        ("import os, time; os.fork(); time.sleep(99)", "after 0.5 s\n  line 3: import os, time"),
        (
            "import os; os.write([f for f in range(99) if os.path.exists(f'/proc/self/fd/{f}') and"
            " os.readlink(f'/proc/self/fd/{f}').startswith('pipe')][-1], b'\\0\\0\\0\\0')",
            "sent a malformed answer",
        ),
    ],
    ids=["ended", "status 3", "crashed", "killed", "forked", "spoke"],
)
def test_the_end_of_the_process_is_a_result_of_the_check_alone(
    file: Path, body: str, words: str
) -> None:
    file.write_text(f"def part():\n    1\n    {body}\n")
    after = Check("after it", lambda code: "it goes on")
    limits = Limits(0.5 if "after" in words else 60)
    results = run_checks(LAB, str(file), limits, checks=[CHECK, after])
    first, second = results
    assert (first.outcome, second.outcome) == ("stopped", "passed")
    assert words in first.message


FORGERIES = {
    "the checks": "import lsmkv.course.labs.registry as r\n"
    "for lab in r.LABS: object.__setattr__(lab, 'checks', ())",
    "the judge": "import lsmkv.course.failure as f\nf.require = lambda *a: None\n"
    "import lsmkv.course.running as r\nr.judge = lambda *a: r.Result('x', 'passed', '')",
    "Python": "import builtins, sys\nbuiltins.isinstance = lambda *a: True\n"
    "sys.modules['lsmkv'] = None",
    "the end": "import atexit, os\natexit.register(os._exit, 0)",
    "signals": "import signal\nfor n in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):\n"
    "    signal.signal(n, signal.SIG_IGN)",
    "prints": 'print(\'{"check": "x", "outcome": "passed", "message": ""}\', flush=True)',
    "an object that equals all": "class A:\n    def __eq__(self, other): return True\n",
}


@posix
@pytest.mark.parametrize("forged", FORGERIES)
def test_what_a_file_replaces_changes_no_verdict(file: Path, forged: str) -> None:
    def seven(code: Any) -> str:
        if code.part() != 7:
            raise CheckFailure("part must return 7")
        return ""

    body = "A()" if forged.startswith("an object") else "6"
    file.write_text(f"{FORGERIES[forged]}\ndef part(): return {body}\n")
    result = run(file, Check("seven", seven))
    assert result.outcome in ("failed", "error", "stopped")
    assert Lab.__dataclass_fields__
    assert isinstance(1, int)


@posix
def test_a_process_that_the_code_started_ends_with_it(file: Path, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    file.write_text(
        "import os, time\n"
        "def part():\n"
        "    pid = os.fork()\n"
        "    if not pid: time.sleep(1000)\n"
        f"    open({str(told)!r}, 'w').write(str(pid))\n"
        "    return 1\n"
    )
    assert run(file).outcome == "passed"
    stat = Path(f"/proc/{told.read_text()}/stat")
    for _ in range(1000):
        try:
            state = stat.read_text().split()[2]
        except OSError:
            return
        if state == "Z":  # ended, and nobody has waited for it
            return
        time.sleep(0.01)
    raise AssertionError("it still runs")


def test_there_is_no_network_where_that_is_allowed(file: Path) -> None:
    if not without_network():
        pytest.skip("unshare is not allowed here")
    file.write_text("import socket\ndef part(): socket.create_connection(('127.0.0.1', 9))")
    message = run(file).message
    assert "Network is unreachable" in message or "Cannot assign requested address" in message


def test_what_the_engine_wraps_is_reported_as_it_was_raised(file: Path) -> None:
    def wrapped(code: Any) -> str:
        logging.getLogger("lsmkv").warning("not to be seen")
        try:
            code.part()
        except Exception as error:
            raise lsmkv.Error("background work failed") from error
        return ""

    file.write_text("def part(): raise KeyError('k')")
    assert "KeyError: 'k'" in run(file, Check("wrapped", wrapped)).message

    def failed(code: Any) -> str:
        raise lsmkv.Error("background work failed") from CheckFailure("the filter is text")

    result = run(file, Check("failed", failed))
    assert (result.outcome, result.message) == ("failed", "the filter is text")
    assert not logging.getLogger("lsmkv").disabled


@posix
def test_a_signal_ends_more_than_the_check(file: Path) -> None:
    def terminated(code: Any) -> str:
        raise Terminated(128 + signal.SIGTERM)

    file.write_text("def part(): return 1")
    with pytest.raises(Terminated):
        run(file, Check("terminated", terminated))
