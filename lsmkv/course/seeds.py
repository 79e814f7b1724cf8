"""The owner of a folder: a student's name, from which every number of their own data follows.

``student.json`` in the folder has the name, the seed that follows from it, and the predictions.  A
seed is never taken from the file: the reader derives it from the name again, and says so if
the file has another one.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from dataclasses import asdict, dataclass, field

from lsmkv.tools.foreign import NotRegularError, open_foreign

FILE = "student.json"
"""The file, in a student's folder."""
_MOST = 1 << 20
"""Bytes of the file."""

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def seed_of(student: str) -> int:
    """The seed that follows from a student's name.

    >>> seed_of("ann") == seed_of("ann "), seed_of("ann") == seed_of("bob")
    (True, False)
    """
    text = f"lsmkv course 1\n{' '.join(student.split())}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def dice(seed: int, purpose: str) -> random.Random:
    """The random numbers of a seed for one purpose, such as ``"lab 4"``.

    >>> dice(1, "lab 4").random() == dice(1, "lab 4").random() != dice(1, "lab 5").random()
    True
    """
    return random.Random(f"{seed} {purpose}")


def mark_of(seed: int) -> str:
    """The letters and digits with which all keys of a student begin.

    >>> len(mark_of(1))
    8
    """
    drawn = dice(seed, "mark")
    letters = "".join(drawn.choice(_CONSONANTS) + drawn.choice(_VOWELS) for _ in range(3))
    return f"{letters}{drawn.randrange(10, 100)}"


@dataclass(frozen=True)
class Owner:
    """The content of ``student.json``."""

    student: str
    seed: int
    predictions: dict[str, list[str]] = field(default_factory=dict)
    """The predictions, by the number of the lab."""

    @property
    def is_intact(self) -> bool:
        """True if the seed is the one that follows from the name."""
        return self.seed == seed_of(self.student)


def read_owner(folder: str) -> Owner | None:
    """Return the owner of a folder; None if it has none.  ``ValueError`` if the file is damaged."""
    path = os.path.join(folder, FILE)
    try:
        with open_foreign(folder, FILE) as file:
            content = json.loads(file.read(_MOST))
        said = content["predictions"]
        predictions = {str(lab): [str(one) for one in said[lab]] for lab in said}
        return Owner(str(content["student"]), int(content["seed"], 16), predictions)
    except FileNotFoundError:
        return None
    except (
        ValueError, TypeError, KeyError, AttributeError, RecursionError, NotRegularError
    ) as error:  # fmt: skip
        raise ValueError(f"{path} is not what 'lsmkv course new --student' wrote") from error


def write_owner(folder: str, owner: Owner) -> None:
    """Write the owner of a folder."""
    content = asdict(owner) | {"seed": f"{owner.seed:016x}"}
    path = os.path.join(folder, FILE)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    os.replace(f"{path}.new", path)
