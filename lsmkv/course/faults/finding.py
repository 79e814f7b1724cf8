"""A student's finding about a fault: a call that shows it, and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from lsmkv.course.faults.asking import ask, shorter
from lsmkv.course.faults.fault import InputError
from lsmkv.course.lab import Lab
from lsmkv.tools.foreign import NotRegularError, open_foreign

_MOST = 1 << 20
"""Bytes of a file."""


@dataclass(frozen=True)
class Finding:
    """A finding, judged."""

    call: str
    sentence: str
    """For the teacher to read."""
    is_found: bool
    size: int
    """The size of the call; 0 if it is invalid."""
    least: int
    """The size of the smallest call that the course knows."""
    message: str


def file_name(lab: Lab) -> str:
    """The file of a finding."""
    return f"fault{lab.number}.txt"


def parts_of(text: str) -> tuple[str, str]:
    """The call and the sentence of a file.

    >>> parts_of("f(1)\\n# It adds\\n# one.\\n")
    ('f(1)', 'It adds one.')
    """
    lines = text.splitlines()
    said = (line.strip().lstrip("#").strip() for line in lines if line.lstrip().startswith("#"))
    call = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return call.strip(), " ".join(said)


def finding_in(folder: str, lab: Lab, seed: int) -> Finding | None:
    """The finding of a lab in a folder; None if there is none."""
    try:
        with open_foreign(folder, file_name(lab)) as file:
            call, sentence = parts_of(file.read(_MOST).decode(errors="replace"))
    except (FileNotFoundError, NotRegularError):
        return None
    try:
        found = ask(lab, seed, call)
    except InputError as error:
        return Finding(call, sentence, False, 0, 0, f"This shows nothing: {error}.")
    right, broken = shorter(found.right), shorter(found.broken)
    if not found.is_found:
        message = f"This shows nothing: both answer {right}."
    else:
        message = (
            f"This shows the fault: the broken code answers {broken}, and right is {right}."
            f" Its size is {found.size:,}; the smallest that the course knows has {found.least:,}."
        )
    return Finding(call, sentence, found.is_found, found.size, found.least, message)
