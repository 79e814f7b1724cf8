"""Asks a lab's right and broken functions, in a separate process with limits.

So neither the command nor the grader hangs on an input without end, and no file of the broken code
is in a student's folder: it answers through a pipe.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

from lsmkv.course.faults.fault import InputError, answer_of, call_in, size_of
from lsmkv.course.faults.registry import SUBJECTS, fault_of
from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import find
from lsmkv.course.running import MEMORY_MIB
from lsmkv.course.seeds import mark_of
from lsmkv.course.student import limit

SECONDS = 10
"""Seconds of processor time for one input."""

_WAIT = 300
_LONGEST = 2000
"""Characters of an answer that is shown."""


class Answers(NamedTuple):
    """Answers of the right and the broken code for one input."""

    right: str
    broken: str
    size: int
    """The size of the input."""
    least: int
    """The size of the smallest input that the course knows."""

    @property
    def is_found(self) -> bool:
        """True if the input shows the fault."""
        return self.right != self.broken


def ask(lab: Lab, seed: int, text: str) -> Answers:
    """Ask both.  Raises :class:`InputError` if the text is not a call of one of the functions, or
    if it takes too long."""
    asked = json.dumps({"lab": lab.slug, "seed": seed, "text": text})
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "lsmkv.course.faults.asking"],
            input=asked.encode(),
            capture_output=True,
            timeout=_WAIT,
            check=False,
        )
        said = json.loads(done.stdout)
    except (ValueError, subprocess.TimeoutExpired) as error:
        raise InputError("it takes too much time or memory") from error
    if isinstance(said, str):
        raise InputError(said)
    return Answers(*said)


def answers(lab: Lab, seed: int, text: str) -> Answers:
    """Ask both in this process.  Raises :class:`InputError`."""
    subject, mark, fault = SUBJECTS[lab.slug], mark_of(seed).encode(), fault_of(lab, seed)
    name, arguments = call_in(text)
    if name not in subject.right:
        raise InputError(f"there is no {name}: the functions are {', '.join(subject.right)}")
    right = answer_of(subject.right[name], arguments)
    broken = answer_of(subject.variant(fault, mark)[name], arguments)
    if right in _OF_WRONG_SHAPE:
        raise InputError(f"the arguments are not those of {name}: {subject.calls[name]}")
    return Answers(right, broken, size_of(arguments), size_of(fault.shows(mark)))


_OF_WRONG_SHAPE = ("TypeError", "IndexError", "KeyError", "AttributeError", "AssertionError")
"""Exceptions of the right function after a wrong call."""


def shorter(text: str) -> str:
    """An answer that is shown.

    >>> shorter("b'ant'")
    "b'ant'"
    """
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


def main() -> None:
    """Answer the question on stdin."""
    asked = json.load(sys.stdin)
    limit(SECONDS, MEMORY_MIB)
    said: object
    try:
        said = answers(find(asked["lab"]), asked["seed"], asked["text"])
    except (InputError, MemoryError) as error:
        said = str(error) or "it takes too much memory"
    print(json.dumps(said))


if __name__ == "__main__":
    main()
