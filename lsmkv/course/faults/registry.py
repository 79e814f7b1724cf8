"""The faults of each lab, and their assignment to students."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lsmkv.course.faults import encoding, manifest, measuring, reading, state, tables
from lsmkv.course.faults.fault import Fault, Files, Subject, answer_of
from lsmkv.course.lab import Lab
from lsmkv.course.seeds import dice, mark_of

SUBJECTS: Final[Mapping[str, Subject]] = {
    "keys": encoding.KEYS,
    "log": encoding.LOG,
    "block": encoding.BLOCK,
    "bloom": tables.BLOOM,
    "filter_block": tables.FILTER_BLOCK,
    "table": tables.TABLE,
    "merging": reading.MERGING,
    "reading": reading.READING,
    "manifest": manifest.MANIFEST,
    "recovery": state.RECOVERY,
    "compaction": state.COMPACTION,
    "measuring": measuring.MEASURING,
}
"""The functions of each lab with their faults, by the lab's short name."""


def fault_of(lab: Lab, seed: int) -> Fault:
    """The fault that a student has to find."""
    return dice(seed, f"fault {lab.number}").choice(SUBJECTS[lab.slug].faults)


def traces_of(lab: Lab, seed: int) -> Files:
    """Return a student's clues to the fault: files by name, and a text of calls with answers."""
    subject, mark = SUBJECTS[lab.slug], mark_of(seed).encode()
    code = subject.variant(fault_of(lab, seed), mark)
    lines = [f"# Lab {lab.number}: what the broken code answers.  At least one answer is wrong.\n"]
    for name, arguments in subject.scene(mark, dice(seed, f"scene {lab.number}")):
        shown = ", ".join(map(repr, arguments))
        lines.append(f"{name}({shown})\n    {answer_of(code[name], arguments)}\n")
    try:
        files = dict(subject.files(code, mark))
    except Exception:  # the broken code may not even write them
        files = {}
    return {f"fault{lab.number}.calls.txt": "".join(lines).encode(), **files}
