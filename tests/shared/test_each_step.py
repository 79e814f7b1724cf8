"""Owners that are killed at each step of serving, of handing over, and of taking over.

Every 7th line that the engine runs then is such a step, and every 97th of taking over; the suite
takes every fourth of these, and ``make test-each-step`` each.  Whatever it is, each call of the
others returns, and has happened exactly once.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import ENVIRON

import lsmkv
from lsmkv import SharedDB

pytestmark = pytest.mark.skipif(lsmkv.COMPILED, reason="compiled code has no lines")

_SPARSE = 1 if "LSMKV_EACH_STEP" in os.environ else 4
_STRIDE = 7 * _SPARSE
_STRIDE_OF_OPENING = 97 * _SPARSE
_MOST = 20_000
_WORDS = 10.0
"""Seconds in which a process must say something."""


class Template:
    """The process of ``step_child.py``."""

    def __init__(self) -> None:
        script = str(Path(__file__).with_name("step_child.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", script], env=ENVIRON,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.pid = 0

    def begin(self, kind: str, step: int, path: Path) -> str:
        """Fork a process; its role."""
        self.say(f"{kind} {step} {path}")
        pid, role = self.word().split()
        self.pid = int(pid)
        return role

    def say(self, text: str) -> None:
        """Write it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")
        self._process.stdin.flush()

    def word(self) -> str:
        """The next line of what it says."""
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], _WORDS)[0], "it says nothing"
        return self._process.stdout.readline().decode().strip()

    def go(self) -> None:
        """Let what was forked last do what it is for."""
        os.kill(self.pid, signal.SIGUSR1)

    def ended(self) -> bool:
        """Whether it has ended."""
        return not Path(f"/proc/{self.pid}").exists()

    def wait(self, pid: int, seconds: float) -> bool:
        """Wait for the end of a process; False if that takes longer."""
        until = time.monotonic() + seconds
        while Path(f"/proc/{pid}").exists():
            if time.monotonic() > until:
                return False
            time.sleep(0.0005)
        return True

    def survived(self) -> bool:
        """Whether it had done all before it ended."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], 0)[0]:
            return False
        assert self.word() == "survived"
        return True

    def kill(self) -> None:
        """Kill it, if it has not ended."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self) -> None:
        """End all."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()


@pytest.fixture
def template() -> Iterator[Template]:
    made = Template()
    yield made
    made.close()


def count(db: SharedDB) -> int:
    return int(db.update(b"count", lambda old: b"%d" % (int(old or 0) + 1)) or 0)


def test_an_owner_that_is_killed_while_it_serves(path: Path, template: Template) -> None:
    for number, step in enumerate(range(1, _MOST, _STRIDE), 1):
        assert template.begin("serve", step, path) == "owner"
        with SharedDB(path) as db:
            assert count(db) == number
            db.put(b"k", b"%d" % number, sync=True)
            assert db.get(b"k") == b"%d" % number
            assert int(db.get(b"count", b"0")) == number
            survived = db.role == "member"
            template.kill()
            assert db.get(b"k") == b"%d" % number
        if survived:
            break
    assert number > 10


def test_an_owner_that_is_killed_while_it_hands_over(path: Path, template: Template) -> None:
    done = 0
    for number, step in enumerate(range(1, _MOST, _STRIDE), 1):  # noqa: B007 - it is looked at
        assert template.begin("close", step, path) == "owner"
        with SharedDB(path) as db:
            db.put(b"step", b"%d" % step)
            template.go()
            while not template.ended():
                done += 1
                assert count(db) == done
            done += 1
            assert count(db) == done
            assert db.get(b"step") == b"%d" % step
            assert db.role == "owner"
        if template.survived():
            break
    assert number > 10


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_new_owner_that_is_killed_while_it_takes_over(
    path: Path, template: Template, when: str
) -> None:
    """The last owner has died before or after it wrote a batch of the new one, which begins the
    epoch, recovers the log, looks at what became of its batch, and listens.

    A third process, which may not own, follows all of them.
    """
    SharedDB(path, create_if_missing=True).close()
    template.begin("close", _MOST, path)
    watching = SharedDB(path, may_own=False)
    template.kill()
    try:
        for number, step in enumerate(range(1, _MOST, _STRIDE_OF_OPENING), 1):  # noqa: B007
            assert template.begin(when, step, path) == "owner"
            owner = template.pid
            with SharedDB(path) as db:
                before = db.sequence
                assert template.begin("own", step, path) == "member"
                template.go()
                assert template.wait(template.pid, _WORDS)
                alone = template.wait(owner, 0.1)
                if not alone:  # it has not been asked to write
                    os.kill(owner, signal.SIGKILL)
                    assert template.wait(owner, _WORDS)
                survived = template.survived()
                db.put(b"next", b"%d" % step)  # or this one need not notice that its owner is dead
                written = db.get(b"own") == b"%d" % step
                assert db.sequence - before == written + 1
                assert written or not (survived or (alone and when == "after"))
                assert watching.sequence == db.sequence
                assert watching.get(b"next") == b"%d" % step
            if survived:
                break
        assert number > 10
    finally:
        watching.close()
