"""A child process: what it receives, how it ends, what it does not inherit."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from lsmkv.engine.env.local import LocalDirectory, LocalEnv
from lsmkv.engine.env.process import (
    Process,
    ProcessEnded,
    can_start,
    inherited_directory,
    interpreter,
    processors,
    random_token,
)
from lsmkv.engine.util import threads

pytestmark = pytest.mark.skipif(not can_start(), reason="no interpreter to start")
_PATIENCE = 20.0  # seconds; only a fault takes that long

ECHO = """
    import os, sys, signal
    from lsmkv.engine.env.process import Port, ProcessEnded, inherited_directory
    def main(owner, descriptor, path):
        port = Port(owner)
        directory = inherited_directory(descriptor, path)
        print("not a line of ours", flush=True)
        os.write(1, b"nor this")
        try:
            while True:
                line = port.receive(60)
                if line == b"names":
                    line = " ".join(sorted(directory.names())).encode()
                elif line == b"descriptors":
                    line = " ".join(os.listdir("/proc/self/fd")).encode()
                elif line == b"where":
                    line = f"{path} {os.getpgid(0) == os.getpid()} {sys.flags.isolated}".encode()
                elif line == b"modules":
                    late = {"lsmkv.engine.db.db", "site"} & set(sys.modules)
                    line = str(bool(late)).encode()
                elif line == b"nice":
                    port.step_back()
                    line = str(os.nice(0)).encode()
                elif line == b"exit":
                    os._exit(7)
                elif line == b"work":
                    port.send(b"begun")
                    while True:
                        port.listen()
                elif line == b"flood":
                    for _ in range(1000):
                        port.send(bytes(1000).replace(bytes(1), b"x"))
                port.send(line)
        except ProcessEnded:
            directory.create("ended").close()
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[LocalDirectory]:
    (tmp_path / "place").mkdir()
    with LocalEnv().open_directory(str(tmp_path / "place")) as directory:
        yield directory


@pytest.fixture
def start(
    place: LocalDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Process]]:
    (tmp_path / "echo_for_test.py").write_text(textwrap.dedent(ECHO))
    monkeypatch.syspath_prepend(str(tmp_path))
    started: list[Process] = []

    def begin() -> Process:
        started.append(Process("echo_for_test", place))
        return started[-1]

    yield begin
    for process in started:
        process.end()
        assert process.ended


def answer(process: Process, line: bytes) -> bytes:
    process.send(line)
    return await_line(process)


def await_line(process: Process) -> bytes:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        received = process.receive(0.05)
        if received is not None:
            return received
    raise AssertionError("no answer")


def test_lines_go_both_ways(start: Callable[[], Process]) -> None:
    process = start()
    assert answer(process, b"hello") == b"hello"
    assert answer(process, b"") == b""
    process.send(b"one")
    process.send(b"two")
    assert [await_line(process), await_line(process)] == [b"one", b"two"]
    assert process.receive(0) is None


def test_lines_longer_than_a_pipe_holds(start: Callable[[], Process]) -> None:
    process = start()
    long = b"x" * 3_000_000
    assert answer(process, long) == long


def test_both_ends_may_send_before_either_reads(start: Callable[[], Process]) -> None:
    process = start()
    process.send(b"flood")
    time.sleep(0.2)
    process.send(b"y" * 1_000_000)
    assert [len(await_line(process)) for _ in range(1000)] == [1000] * 1000
    assert await_line(process) == b"flood"
    assert await_line(process) == b"y" * 1_000_000


def test_a_process_keeps_its_directory_after_a_rename(
    start: Callable[[], Process], place: LocalDirectory, tmp_path: Path
) -> None:
    place.create("file").close()
    os.rename(tmp_path / "place", tmp_path / "elsewhere")
    (tmp_path / "place").mkdir()
    assert answer(start(), b"names") == b"file"


def test_a_process_is_isolated(start: Callable[[], Process], place: LocalDirectory) -> None:
    process = start()
    assert answer(process, b"where") == f"{place.path} True 1".encode()
    assert answer(process, b"modules") == b"False"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_no_other_descriptor_goes_along(
    start: Callable[[], Process], place: LocalDirectory
) -> None:
    lock = place.lock("LOCK")
    read, write = os.pipe()
    os.set_inheritable(read, True)
    try:
        listed = answer(start(), b"descriptors").decode().split()
    finally:
        os.close(read)
        os.close(write)
        lock.close()
    # 0 to 2, the directory, its ends of two pipes, and the one that lists.
    assert len(listed) == 7


def test_a_process_can_lower_its_priority(start: Callable[[], Process]) -> None:
    assert int(answer(start(), b"nice")) >= min(19, os.nice(0) + 5)  # the lowest is 19


def test_the_end_of_a_process_raises_process_ended(start: Callable[[], Process]) -> None:
    process = start()
    process.send(b"exit")
    with pytest.raises(ProcessEnded):
        await_line(process)
    process.end()
    assert process.ended
    assert process.status == 7


def test_sending_to_one_that_has_ended(start: Callable[[], Process]) -> None:
    process = start()
    assert answer(process, b"hello") == b"hello"
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: process.ended)
    with pytest.raises(ProcessEnded):
        answer(process, b"x" * 10)
    assert process.status == -signal.SIGKILL


def test_an_ended_process_is_reaped_at_once(start: Callable[[], Process]) -> None:
    process = start()
    assert answer(process, b"hello") == b"hello"
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: process.ended)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)  # not even a zombie


@pytest.mark.parametrize("state", ["idle", "busy", "stopped", "starting"])
def test_end_is_prompt(start: Callable[[], Process], state: str) -> None:
    process = start()
    if state != "starting":
        assert answer(process, b"hello") == b"hello"
    if state == "busy":
        assert answer(process, b"work") == b"begun"
    elif state == "stopped":
        os.kill(process.pid, signal.SIGSTOP)
    process.end()
    assert process.ended
    process.end()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_ctrl_c_does_not_reach_the_process(start: Callable[[], Process]) -> None:
    process = start()
    assert answer(process, b"hello") == b"hello"
    for _ in range(10):
        os.kill(process.pid, signal.SIGINT)
    assert answer(process, b"still here") == b"still here"


def test_a_missing_module_ends_the_process(place: LocalDirectory) -> None:
    process = Process("lsmkv.no_such_module", place)
    try:
        with pytest.raises(ProcessEnded):
            await_line(process)
    finally:
        process.end()
    assert process.status == 1


def program(path: Path) -> str:
    """A file that may be executed."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"no program")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_cannot_be_executed_raises(
    place: LocalDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path / "python3"))
    with pytest.raises(OSError, match="python"):
        Process("lsmkv.engine.db.compact.worker", place)
    gc.collect()


def test_which_python_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert can_start()
    assert interpreter() == sys.executable
    for name in ("python3.13t", "pypy3", "python", "Python"):
        monkeypatch.setattr(sys, "executable", program(tmp_path / name))
        assert interpreter() == sys.executable
    base = program(tmp_path / "base" / "python3")
    monkeypatch.setattr(sys, "_base_executable", base)
    for name in ("uwsgi", "python-config", "myprogram"):
        monkeypatch.setattr(sys, "executable", program(tmp_path / name))
        assert interpreter() == base
    for gone in ("", None, "/no/such/python3"):
        monkeypatch.setattr(sys, "executable", gone)
        assert interpreter() == base
    monkeypatch.setattr(sys, "_base_executable", "/usr/bin/uwsgi")
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path))
    assert not can_start()
    assert interpreter() == ""
    major, minor = sys.version_info[:2]
    installed = program(tmp_path / "bin" / f"python{major}.{minor}{sys.abiflags}")
    assert interpreter() == installed
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not can_start()


def test_processors_and_tokens() -> None:
    assert processors() >= 1
    tokens = {random_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 16 and int(token, 16) >= 0 for token in tokens)


OWNER = """
    import os, sys, time
    sys.path[:0] = {path!r}
    from lsmkv.engine.env.local import LocalEnv
    from lsmkv.engine.env.process import Process
    directory = LocalEnv().open_directory({place!r})
    process = Process("echo_for_test", directory)
    process.send({order!r})
    while process.receive(0.1) is None:
        pass
    child = {child}
    sys.stdout.write(f"{{process.pid}} {{child}}\\n")
    sys.stdout.flush()
    if child == 0:
        sys.stdout.close()
        time.sleep(100)
    time.sleep(100)
"""


@pytest.mark.parametrize("order", [b"hello", b"work"])
@pytest.mark.parametrize("fork", [False, True])
def test_a_process_ends_when_its_owner_is_killed(
    start: object, tmp_path: Path, place: LocalDirectory, order: bytes, fork: bool
) -> None:
    """Also if a fork of the owner holds the pipes open."""
    program = OWNER.format(
        path=sys.path, place=place.path, order=order, child="os.fork()" if fork else "-1"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    child = -1
    try:
        assert owner.stdout is not None
        lines = [owner.stdout.readline().split() for _ in range(2 if fork else 1)]
        pid = int(lines[0][0])
        child = max(int(line[1]) for line in lines)
        os.kill(pid, 0)
        owner.kill()
        wait_until(lambda: place.exists("ended"))
    finally:
        owner.kill()
        owner.wait()
        if child > 0:
            os.kill(child, signal.SIGKILL)
        assert owner.stdout is not None
        owner.stdout.close()


def test_abandoned_in_a_forked_child(start: Callable[[], Process]) -> None:
    process = start()
    assert answer(process, b"hello") == b"hello"
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            process.abandon()
            process._process.__del__()  # nothing to warn of
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert answer(process, b"hello") == b"hello"


def test_an_inherited_directory_is_used_and_not_passed_on(place: LocalDirectory) -> None:
    descriptor = os.dup(place.descriptor)
    os.set_inheritable(descriptor, True)
    with inherited_directory(descriptor, "inherited") as directory:
        assert not os.get_inheritable(descriptor)
        assert directory.path == "inherited"
        directory.create("file").close()
    assert place.exists("file")


def test_a_thread_that_cannot_be_started(
    place: LocalDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    def refuse(_: object, arguments: tuple[Any, ...]) -> None:
        started.append(arguments[0])
        raise RuntimeError("no more threads")

    monkeypatch.setattr(threads.system, "start_new_thread", refuse)
    with pytest.raises(RuntimeError, match="no more"):
        Process("lsmkv.engine.db.compact.worker", place)
    assert started[0].returncode == -signal.SIGKILL
    assert started[0].stdin.closed
    assert started[0].stdout.closed
