"""Progress of a student in the course, and the next step."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS
from lsmkv.course.running import NOT_WRITTEN, PASSED, Result

_UNWRITTEN = " is not written yet"


def has_begun(lab: Lab, path: str) -> bool:
    """True if a file exists and is no longer the starter."""
    if not os.path.isfile(path):  # a FIFO would wait for its writer
        return False
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read() != lab.starter()


def current_lab(folder: str) -> Lab:
    """The lab in a folder whose file was saved last, of those that are begun; otherwise the first.

    Raises ``FileNotFoundError``, which says where to go, if the folder has no lab at all.
    """
    there = [lab for lab in LABS if os.path.exists(os.path.join(folder, lab.file_name))]
    if not there:
        raise _nowhere(folder, LABS[0].file_name)
    begun = [lab for lab in there if has_begun(lab, os.path.join(folder, lab.file_name))]
    if not begun:
        return there[0]
    return max(begun, key=lambda lab: os.stat(os.path.join(folder, lab.file_name)).st_mtime_ns)


def lab_file(lab: Lab, folder: str) -> str:
    """The path of a lab's file in a folder; ``FileNotFoundError`` says where to go if it is not
    there."""
    path = os.path.join(folder, lab.file_name)
    if not os.path.exists(path):
        raise _nowhere(folder, lab.file_name)
    return path


def _nowhere(folder: str, name: str) -> FileNotFoundError:
    """The error for a folder without a lab: it names a folder nearby that has it."""
    near = [
        entry.name for entry in sorted(os.scandir(folder), key=lambda e: e.name) if entry.is_dir()
    ]
    places = [one for one in (*near, "..") if os.path.exists(os.path.join(folder, one, name))]
    words = "it is not in this folder: "
    if places:
        words += f"'cd {places[0]}' first"
    else:
        words += (
            "go to the one that 'lsmkv course new' made, or make it with 'lsmkv course new DIR'"
        )
    return FileNotFoundError(errno.ENOENT, words, name)


def next_step(lab: Lab, results: Sequence[Result], file: str) -> str:
    """One thing to do after these results."""
    first = next((result for result in results if result.outcome != PASSED), None)
    if first is None:
        after = next((other for other in LABS if other.number == lab.number + 1), None)
        if after is None:
            return "Next: nothing. That was the last lab."
        return f"Next: lab {after.number}, {after.title}: 'lsmkv course show {after.number}'."
    is_one_reason = len(results) > 1 and all(one.message == first.message for one in results)
    if is_one_reason and first.outcome != NOT_WRITTEN:
        return f"Next: make {file} run."
    name = first.message.removesuffix(_UNWRITTEN)
    if first.outcome == NOT_WRITTEN and name in lab.functions:
        return f"Next: write {name} in {file}. 'lsmkv course show {lab.number}' describes it."
    return f"Next: the check {first.check!r}. A hint: 'lsmkv course show {lab.number} --hint 1'."
