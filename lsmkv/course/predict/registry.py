"""The task of each lab for each seed, and the files in which a student finds their own data."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from typing import Final

from lsmkv.course.lab import Lab
from lsmkv.course.labs.registry import LABS
from lsmkv.course.predict import encoding, reading, state, tables
from lsmkv.course.predict.task import Task
from lsmkv.course.seeds import Owner, dice, mark_of, seed_of, write_owner
from lsmkv.tools.foreign import open_foreign

DIRECTORY = "data"
"""The folder of a student's own data, in theirs."""

TASKS: Final[Mapping[str, Callable[[random.Random, str], Task]]] = {
    "keys": encoding.keys,
    "log": encoding.log,
    "block": encoding.block,
    "bloom": tables.bloom,
    "filter_block": tables.filter_block,
    "table": tables.table,
    "merging": reading.merging,
    "reading": reading.reading,
    "manifest": reading.manifest,
    "recovery": state.recovery,
    "compaction": state.compaction,
    "measuring": state.measuring,
}
"""Functions that make the task of a lab, by the lab's short name."""


def task_of(lab: Lab, seed: int, purpose: str = "predict") -> Task:
    """The task of a lab.  Another purpose has other data from the same seed."""
    return TASKS[lab.slug](dice(seed, f"{purpose} {lab.number}"), mark_of(seed))


def files_of(lab: Lab, seed: int) -> dict[str, bytes]:
    """The files of a lab's data, by name."""
    task = task_of(lab, seed)
    text = f"# Lab {lab.number}, your own data. They follow from the name in student.json.\n"
    return {f"lab{lab.number}.txt": (text + task.text()).encode(), **task.files}


def write_for(folder: str, student: str) -> list[str]:
    """Write the owner of a folder, and the data of all labs; returns the paths of the data.

    ``ValueError`` if the name is empty.
    """
    name = " ".join(student.split())
    if not name:
        raise ValueError("the name of a student is empty")
    seed = seed_of(name)
    write_owner(folder, Owner(name, seed))
    os.makedirs(os.path.join(folder, DIRECTORY), exist_ok=True)
    paths: list[str] = []
    for lab in LABS:
        for name, content in files_of(lab, seed).items():
            paths.append(os.path.join(folder, DIRECTORY, name))
            with open(paths[-1], "wb") as file:
                file.write(content)
    return paths


def changed(folder: str, seed: int) -> list[str]:
    """The names of data files in a folder that differ from those of the seed."""
    found: list[str] = []
    for lab in LABS:
        for name, content in files_of(lab, seed).items():
            try:
                with open_foreign(folder, DIRECTORY, name) as file:
                    is_same = file.read(len(content) + 1) == content
            except OSError:
                continue  # not handed in
            if not is_same:
                found.append(name)
    return found
