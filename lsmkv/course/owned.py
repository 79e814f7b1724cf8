"""The owner of a submission's data, the predictions, and the finding."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lsmkv.course.faults.finding import Finding, finding_in
from lsmkv.course.lab import Lab
from lsmkv.course.predict.keeping import Prediction, judged, questions_of, shared_with
from lsmkv.course.predict.registry import changed
from lsmkv.course.seeds import FILE, Owner, read_owner, seed_of

FAULT_POINTS = 2
"""Points of a fault that was found; a right prediction has 1."""


class Own(NamedTuple):
    """The folder of a student's own data, and its owner."""

    folder: str
    owner: Owner

    @property
    def seed(self) -> int:
        """The seed that follows from the name, regardless of the file."""
        return seed_of(self.owner.student)


@dataclass(frozen=True)
class OwnWork:
    """A student's work in one lab with their own data."""

    asked: int
    """The number of questions."""
    predictions: list[Prediction]
    finding: Finding | None

    @property
    def right(self) -> int:
        """The number of right predictions."""
        return sum(one.is_right for one in self.predictions)

    @property
    def is_found(self) -> bool:
        """True if the fault is found."""
        return self.finding is not None and self.finding.is_found

    @property
    def points(self) -> int:
        """1 for each right prediction, and 2 for the fault."""
        return self.right + FAULT_POINTS * self.is_found

    @property
    def maximum(self) -> int:
        """The points of all of them."""
        return self.asked + FAULT_POINTS


def find_own(folder: str) -> Own | None:
    """The data of a student in a folder or below it, the nearest; None if there are none.

    ``ValueError`` if the file is damaged.
    """
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        if FILE in names:
            owner = read_owner(path)
            return None if owner is None else Own(path, owner)
    return None


def own_work(own: Own, lab: Lab) -> OwnWork:
    """Return the work in a lab."""
    asked = len(questions_of(lab, own.owner))
    return OwnWork(asked, judged(lab, own.owner), finding_in(own.folder, lab, own.seed))


def look_at(owns: Mapping[str, Own], labs: Sequence[Lab]) -> dict[str, list[str]]:
    """Return remarks for the teacher on the owners of some folders, by the folders' names."""
    said = shared_with({name: own.owner for name, own in owns.items()}, labs)
    for name, own in owns.items():
        student = own.owner.student
        words: list[str] = []
        if not own.owner.is_intact:
            words.append(f"the seed in {FILE} was changed")
        if len(owns) > 1 and _letters(student) not in _letters(name):
            words.append(f"the data are those of {student!r}")
        words += [
            f"the data are also those of {other}"
            for other, theirs in owns.items()
            if other != name and theirs.seed == own.seed
        ]
        words += [f"data/{file} was changed" for file in changed(own.folder, own.seed)]
        said[name] = words + said[name]
    return said


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
