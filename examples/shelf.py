"""A shelf of Python objects: ``shelve.open``, on lsmkv.

    python examples/shelf.py [DIRECTORY]

``lsmkv.open`` is a mapping like those of ``dbm``, which is what ``shelve.Shelf`` wants below it.
What that gains: keys come in order, a range of them can be read, others may read the shelf while it
is open, and a process that is killed leaves it whole.

Loading a pickle can run any code that its author chose: never open a shelf that others could have
written to.  ``JsonShelf`` has the same use without that danger, for what JSON can say.
"""

from __future__ import annotations

import json
import shelve
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import lsmkv

Flag = Literal["r", "w", "c", "n"]


@dataclass
class Animal:
    """Something to keep."""

    legs: int
    says: str


def open_shelf(path: Path, flag: Flag = "c") -> shelve.Shelf[Any]:
    """What ``shelve.open`` returns, with its flags: 'r', 'w', 'c' and 'n'."""
    return shelve.Shelf(lsmkv.open(path, flag))


class JsonShelf(MutableMapping[str, Any]):
    """A shelf of numbers, text, lists and dicts, kept as JSON."""

    def __init__(self, path: Path, flag: Flag = "c") -> None:
        self._store = lsmkv.open(path, flag)

    def __getitem__(self, key: str) -> Any:
        return json.loads(self._store[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self._store[key] = json.dumps(value)

    def __delitem__(self, key: str) -> None:
        del self._store[key]

    def __iter__(self) -> Iterator[str]:
        return (key.decode() for key in self._store)

    def __len__(self) -> int:
        """It reads every key: an LSM tree keeps no count."""
        return len(self._store)

    def __enter__(self) -> JsonShelf:
        return self

    def __exit__(self, *error: object) -> None:
        self._store.close()


def main(path: Path) -> None:
    with open_shelf(path / "animals", "n") as shelf:
        shelf["wren"] = Animal(2, "tiny, and loud")
        shelf["ant"] = Animal(6, "nothing")
        shelf["cow"] = Animal(4, "moo")
        with open_shelf(path / "animals", "r") as reader:  # while the writer has it open
            print("in order:", ", ".join(reader))
            print("the ant has", reader["ant"].legs, "legs")

    with lsmkv.open(path / "animals") as store:  # the store below, for what a shelf cannot do
        names = store.db.iterator(start=b"b", stop=b"d", include_value=False)
        print("from b to d:", [name.decode() for name in names])

    # With writeback=True a change inside of a value is kept, too; close() writes what was used.
    below = lsmkv.open(path / "animals", "w")
    with shelve.Shelf[Any](below, writeback=True) as shelf:
        shelf["cow"].says = "moo, moo"
    with open_shelf(path / "animals", "r") as shelf:
        print("the cow says", shelf["cow"].says)
        try:
            shelf["dodo"] = Animal(2, "nothing any more")
        except lsmkv.ReadOnlyError:
            print("no dodo: the shelf is open for reading")

    with JsonShelf(path / "json", "n") as plain:
        plain["ant"] = {"legs": 6, "eats": ["seeds", "honeydew"]}
        plain["bee"] = {"legs": 6, "eats": ["nectar"]}
        print("as JSON:", plain["ant"]["eats"], "-", len(plain), "kept")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory))
