"""Exceptions of signal handlers in the middle of operations on integers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lsmkv

INTERRUPTED = """
import signal
from lsmkv.engine.filter.bloom64 import bloom64_positions

class Interrupted(Exception): pass

raised = caught = 0
def interrupt(signum, frame):
    global raised
    raised += 1
    raise Interrupted

# The products have more than 62 bits, of which compiled code makes integers of CPython's.
filter_data = bytes([255]) * (1 << 22) + bytes([30])
positions = bloom64_positions(2**62 - 12345, filter_data)
signal.signal(signal.SIGALRM, interrupt)
def work_until_interrupted(turn):
    before = raised
    signal.setitimer(signal.ITIMER_REAL, 5e-6 + turn % 37 * 1e-6)
    while raised == before:
        assert bloom64_positions(2**62 - 12345, filter_data) == positions
    for _ in range(100):  # the interpreter checks for signals
        pass

for turn in range(2000):
    # A call, as CPython 3.13 leaves the jump at the end of a loop out of the try around it.
    try:
        work_until_interrupted(turn)
    except Interrupted:
        caught += 1
print(raised, caught)
"""

SUBCLASS = """
from lsmkv.engine.filter.bloom64 import bloom64_positions

class Odd(int):
    def refuse(self, *others): raise RuntimeError("not an operation of int's")
    __mul__ = __rmul__ = __add__ = __radd__ = __and__ = __rand__ = refuse

filter_data = bytes([255]) * (1 << 22) + bytes([30])
try:
    assert bloom64_positions(Odd(2**80), filter_data) is not None
except (RuntimeError, IndexError):
    pass
print("alive")
"""


def run(script: str) -> str:
    """What a program prints.  It fails if it is ended by a signal."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="needs timers that send signals")
def test_every_exception_of_a_handler_arrives_and_every_result_is_right() -> None:
    raised, caught = map(int, run(INTERRUPTED).split())
    assert raised == caught == 2000


def test_a_subclass_of_int_whose_methods_raise_ends_no_process() -> None:
    assert run(SUBCLASS) == "alive"


@pytest.mark.skipif(not lsmkv.COMPILED, reason="interpreted classes have no such method")
def test_no_class_has_the_method_for_mypyc_alone() -> None:
    for name in lsmkv.__all__:
        assert "__internal_mypyc_setup" not in dir(getattr(lsmkv, name))
