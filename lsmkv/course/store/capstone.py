"""Lab 13: the student's store loads the names of Unicode, survives a kill, and is read by LevelDB.

The report says what the student's filters saved.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import lsmkv
from lsmkv.course.store.parts import PARTS
from lsmkv.course.store.session import Session
from lsmkv.tools.sample_keys import Misspeller, unicode_names
from lsmkv.tools.text import count

try:
    import plyvel
except ImportError:
    plyvel = None

NAMES = 5_000
"""The number of names loaded by default, evenly spaced among all."""
_BATCH = 100
_GETS = 500

Pairs = dict[str, str]


class Finding(NamedTuple):
    """A step of the capstone."""

    passed: bool
    what: str
    message: str


def some_names(number: int) -> Pairs:
    """Names of characters, evenly spaced among all, each with its character."""
    records = list(unicode_names().expected.items())
    every = max(1, len(records) // max(1, number))
    return {key.decode(): value.decode() for key, value in records[::every][:number]}


def capstone(session: Session, number: int, say: Callable[[str], None]) -> bool:
    """Run the steps of lab 13, and print each; True if all pass and all parts are the student's."""
    say(f"Lab 13: your store, with {count(number, 'name')} of Unicode")
    passed = True
    for finding in _steps(session, some_names(number)):
        passed = passed and finding.passed
        say(f"  {'passed' if finding.passed else 'failed':<6}  {finding.what}: {finding.message}")
    used = len(session.used)
    say(f"Parts: {used} of {len(PARTS)} are yours.")
    if passed and used < len(PARTS):
        say("Lab 13 is done once all of them are: 'lsmkv course status' shows the way.")
    return passed and used == len(PARTS)


def _steps(session: Session, names: Pairs) -> Iterator[Finding]:
    keys = list(names)
    dice = random.Random(13)
    dice.shuffle(keys)
    half = len(keys) // 2
    _load(session, names, keys[:half])
    session.kill()
    session.reopen()
    lost = _differ(session, {key: names[key] for key in keys[:half]})
    yield Finding(
        not lost,
        "a kill",
        f"its process was killed after {half:,} names, and {len(lost):,} are missing",
    )
    _load(session, names, keys[half:])
    session.ask("flush")
    present = dice.sample(keys, min(_GETS, len(keys)))
    wrong = _differ(session, {key: names[key] for key in present})
    yield Finding(not wrong, "names", f"{len(present):,} Gets, {len(wrong):,} wrong answers")
    yield _saved(session, keys, dice)
    amplification = session.ask("amplification")
    yield Finding(True, "writes", f"{amplification:.2f} bytes of tables for each byte put")
    session.close()
    yield _by_another_reader(session.store, names)
    session.reopen()


def _load(session: Session, names: Pairs, keys: list[str]) -> None:
    for at in range(0, len(keys), _BATCH):
        session.ask("load", pairs=[(key, names[key]) for key in keys[at : at + _BATCH]])


def _differ(session: Session, expected: dict[str, str | None]) -> list[str]:
    """The keys whose values are not those expected."""
    found = session.ask("get_all", keys=list(expected))
    both = zip(expected.items(), found, strict=True)
    return [key for (key, value), got in both if got != value]


def _saved(session: Session, keys: list[str], dice: random.Random) -> Finding:
    """Gets of misspelled names, and what filters save of their reads."""
    taken = {key.encode() for key in keys}
    misspeller = Misspeller(sorted(taken), taken.__contains__, dice)
    absent = [key.decode() for key in misspeller.absent_keys(_GETS)]
    asked = session.ask("without", keys=absent)
    predicted = session.ask("predict", tables=asked["tables"])
    before = session.ask("stats")
    wrong = _differ(session, dict.fromkeys(absent))
    after = session.ask("stats")
    read = after["filter_false_positives"] - before["filter_false_positives"]
    without = asked["without_filters"]
    message = (
        f"{len(absent):,} Gets of misspelled names searched {count(read, 'block')},"
        f" and {without:,} without filters: they saved {without - read:,}."
        f" Predicted: {predicted['blocks']:.1f}"
    )
    if wrong:
        message = f"{count(len(wrong), 'misspelled name')} were found"
    return Finding(not wrong, "what your filters saved", message)


def _by_another_reader(store: str, names: Pairs) -> Finding:
    """The store, read by LevelDB, or by lsmkv's own reader where that is not installed."""
    expected = {key.encode(): value.encode() for key, value in names.items()}
    with tempfile.TemporaryDirectory(prefix="lsmkv-course-") as scratch:
        copy = os.path.join(scratch, "store")
        shutil.copytree(store, copy)
        who = "lsmkv's reader, since plyvel is not installed," if plyvel is None else "LevelDB"
        try:
            found = _content(copy)
        except (lsmkv.Error, RuntimeError) as error:  # plyvel's errors are of the second kind
            return Finding(False, "another reader", f"{who} finds it damaged: {error}")
    others = {key: value for key, value in found.items() if key in expected}
    return Finding(
        others == expected,
        "another reader",
        f"{who} reads {count(len(others), 'name')} of {len(expected):,}",
    )


def _content(store: str) -> dict[bytes, bytes]:
    opened: Any = (
        lsmkv.DB(store, read_only=True)
        if plyvel is None
        else plyvel.DB(store, paranoid_checks=True)
    )
    try:
        return dict(opened.iterator())
    finally:
        opened.close()
