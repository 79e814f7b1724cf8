"""Views of a lab: the steps of a part, of any code that has its functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from types import ModuleType
from typing import Any, Literal, NamedTuple

import lsmkv
from lsmkv.course.lab import Check, Lab
from lsmkv.course.labs import asked_tables, block, reading_store
from lsmkv.course.labs.formats import entries_in
from lsmkv.course.labs.registry import find
from lsmkv.course.labs.temporary_stores import scratch
from lsmkv.course.running import MEMORY_MIB, PASSED, SECONDS, Limits, run_checks

BITS = 10
_INTERVAL = 2


Kind = Literal["bits", "bytes", "text"]
"""The result of a step: a byte of a filter, bytes of a block, or words.  The page draws it."""


class Step(NamedTuple):
    """A step of a part: its name and its result."""

    what: str
    result: str
    kind: Kind = "text"


Steps = Callable[[Any, str], Iterator[Step]]
"""The steps of a part, for a key; the first argument has the functions."""


class _Engine:
    """The engine's own, under the names of lab 4."""

    @staticmethod
    def bloom_hash(key: bytes) -> int:
        return lsmkv.BloomFilterPolicy(BITS).key_hash(key)

    @staticmethod
    def probes(bits_per_key: int) -> int:
        return lsmkv.BloomFilterPolicy(bits_per_key).probes

    @staticmethod
    def create_filter(keys: list[bytes], bits_per_key: int) -> bytes:
        return lsmkv.BloomFilterPolicy(bits_per_key).create_filter(keys)

    @staticmethod
    def key_may_match(key: bytes, filter_data: bytes) -> bool:
        return lsmkv.BloomFilterPolicy(BITS).key_may_match(key, filter_data)


def bloom_steps(code: Any, key: str) -> Iterator[Step]:
    """Lab 4: a filter of one key, and the questions to it."""
    name = key.encode()
    yield Step(f"hash of {key}", f"{code.bloom_hash(name):#010x}")
    yield Step(f"probes at {BITS} bits a key", str(code.probes(BITS)))
    data = code.create_filter([name], BITS)
    for at, byte in enumerate(data):
        bits = [str(8 * at + bit) for bit in range(8) if byte >> bit & 1]
        is_last = at == len(data) - 1
        words = f"k = {byte}" if is_last else f"bits {', '.join(bits)}" if bits else "no bit"
        yield Step(
            f"byte {at} of the filter", f"{byte:02x}  {words}", "text" if is_last else "bits"
        )
    for asked in (name, b"dodo", b"moa"):
        said = "maybe" if code.key_may_match(asked, data) else "no"
        yield Step(f"is {asked.decode()} there", said)


class _Blocks:
    """The engine's own, under the names of lab 3."""

    @staticmethod
    def build_block(entries: block.Entries, restart_interval: int) -> bytes:
        return block.built(entries, restart_interval)

    @staticmethod
    def seek(data: bytes, target: bytes) -> tuple[bytes, bytes] | None:
        entries = ((entry.key, entry.value) for entry in entries_in(data))
        return next((one for one in entries if one[0] >= target), None)


def block_steps(code: Any, key: str) -> Iterator[Step]:
    """Lab 3: a small block, part by part, and a search in it."""
    right = block.built(block.SAMPLE, _INTERVAL)
    data = code.build_block(block.SAMPLE, _INTERVAL)
    for start, size, what in block.parts(right):
        yield Step(f"{start:3}  {what}", data[start : start + size].hex(" ") or "nothing", "bytes")
    if len(data) > len(right):
        yield Step(f"{len(right):3}  after the end", data[len(right) :].hex(" "), "bytes")
    yield Step(f"seek {key}", repr(code.seek(right, key.encode())))


class _Walk:
    """The engine's path of a Get, under the name of lab 8."""

    @staticmethod
    def get(levels: asked_tables.Levels, key: bytes) -> bytes | None:
        for table in asked_tables.candidates(levels, key):
            number = next((n for n, end in enumerate(table.index_keys) if key <= end), None)
            if number is None or not table.key_may_match(number, key):
                continue
            for found, value in table.read_block(number):
                if found == key:
                    return value
        return None


def get_steps(code: Any, key: str) -> Iterator[Step]:
    """Lab 8: the filters that a Get asks and the blocks that it reads, in a store of 9 tables."""
    steps: list[asked_tables.Step] = []
    with scratch() as directory:
        store = os.path.join(directory, "store")
        reading_store.fill(store, reading_store.BITS)
        with reading_store.opened(store, steps) as levels:
            value = code.get(levels, key.encode())
    for step in steps:
        yield Step(f"level {step.level}", str(step))
    yield Step("the answer", "there is no such key" if value is None else repr(value))


class Sight(NamedTuple):
    """The view of a lab."""

    key: str
    """The key by default."""
    steps: Steps
    engine: type


SIGHTS = {
    "block": Sight("antonym", block_steps, _Blocks),
    "bloom": Sight("owl", bloom_steps, _Engine),
    "reading": Sight("04711", get_steps, _Walk),
}
"""By the lab's short name."""


class Seen(NamedTuple):
    """The steps of a student's part and of the engine, for one key."""

    lab: Lab
    key: str
    outcome: str
    message: str
    steps: list[tuple[Step | None, Step | None]]
    """The student's and the engine's; None for one that is missing."""

    @property
    def differs(self) -> int | None:
        """The first step that differs from the engine's."""
        both = enumerate(self.steps)
        return next((at for at, (yours, engine) in both if yours != engine), None)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data.

        Keys: "lab", "key", "outcome", "message", "differs", and "steps", each with "what",
        "kind", "yours" and "engine".
        """
        return {
            "lab": self.lab.number,
            "key": self.key,
            "outcome": self.outcome,
            "message": self.message,
            "differs": self.differs,
            "steps": [_plain(yours, engine) for yours, engine in self.steps],
        }


def sight_of(lab: Lab) -> Sight:
    """Return the view of a lab.  Raises ``ValueError``, which names the labs that have it."""
    sight = SIGHTS.get(lab.slug)
    if sight is None:
        others = ", ".join(str(find(slug).number) for slug in SIGHTS)
        raise ValueError(f"there are no steps of lab {lab.number} to see; labs {others} have some")
    return sight


def look(lab: Lab, path: str, key: str | None = None) -> Seen:
    """Run a student's part for a key, in a separate process, and the engine's.

    Costs a process: some tenths of a second.  Raises ``ValueError`` for a lab that has no steps.
    """
    sight = sight_of(lab)
    asked = sight.key if key is None else key
    mine: list[Step] = []

    def run(code: ModuleType) -> str:
        mine.extend(sight.steps(code, asked))
        return "seen"

    checks = [Check("the steps", run)]
    (result,) = run_checks(lab, path, Limits(SECONDS, MEMORY_MIB), checks=checks)
    engine = sight.steps(sight.engine, asked)
    message = "" if result.outcome == PASSED else result.message
    return Seen(lab, asked, result.outcome, message, list(zip_longest(mine, engine)))


def _plain(yours: Step | None, engine: Step | None) -> dict[str, str | None]:
    step = engine or yours
    assert step is not None
    results = [None if one is None else one.result for one in (yours, engine)]
    return {"what": step.what, "kind": step.kind, "yours": results[0], "engine": results[1]}
