"""``lsmkv course see``: the steps of a student's part beside the engine's, and where they part."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import typer

import lsmkv
from lsmkv.course.lab import Check
from lsmkv.course.labs import asked_tables, block, reading_store
from lsmkv.course.labs.formats import entries_in
from lsmkv.course.labs.registry import find
from lsmkv.course.labs.scratch import scratch
from lsmkv.course.running import MEMORY_MIB, PASSED, SECONDS, Limits, run_checks
from lsmkv.course.steps import lab_file
from lsmkv.tools.console import MISS, guarded, write_line
from lsmkv.tools.text import printable

BITS = 10
_INTERVAL = 2
_WIDEST = 52
"""Characters of a step in its column."""


class Step(NamedTuple):
    """A step of a part: what it is, and what it gives."""

    what: str
    result: str


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
        yield Step(f"byte {at} of the filter", f"{byte:02x}  {words}")
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
        yield Step(f"{start:3}  {what}", data[start : start + size].hex(" ") or "nothing")
    if len(data) > len(right):
        yield Step(f"{len(right):3}  after the end", data[len(right) :].hex(" "))
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
    """What there is to see of a lab."""

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


@guarded
def see(
    lab_name: Annotated[
        str, typer.Argument(metavar="LAB", help="The lab's number or short name: 4 or bloom.")
    ],
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The key whose steps are shown.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="The file; by default the lab's own, in this folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Show the steps of your part beside the engine's, for one key: labs 3, 4 and 8.

    Lab 3: a block, part by part. Lab 4: a hash, the bytes of a filter, and questions to it. Lab 8:
    the filters that a Get asks and the blocks that it reads. The first step that differs is marked.
    The exit status is 1 if one does.

    JSON: "lab", "key", "outcome", "message", and "steps", each with "what", "yours" and "engine".
    """
    lab = find(lab_name)
    sight = SIGHTS.get(lab.slug)
    if sight is None:
        others = ", ".join(str(find(slug).number) for slug in SIGHTS)
        raise ValueError(f"there are no steps of lab {lab.number} to see; labs {others} have some")
    path = os.path.abspath(lab_file(lab, ".") if file is None else file)
    asked = sight.key if key is None else key
    mine: list[Step] = []

    def run(code: ModuleType) -> str:
        mine.extend(sight.steps(code, asked))
        return "seen"

    checks = [Check("the steps", run)]
    (result,) = run_checks(lab, path, Limits(SECONDS, MEMORY_MIB), checks=checks)
    engine = list(sight.steps(sight.engine, asked))
    pairs = list(zip_longest(mine, engine, fillvalue=None))
    if as_json:
        found = {"lab": lab.number, "key": asked, "outcome": result.outcome}
        steps = [_as_json(yours, theirs) for yours, theirs in pairs]
        write_line(json.dumps(found | {"message": result.message, "steps": steps}))
    else:
        _print_beside(pairs)
        if result.outcome != PASSED:
            write_line(f"{result.outcome}: {printable(result.message)}")
    differs = any(yours != theirs for yours, theirs in pairs)
    if differs or result.outcome != PASSED:
        raise typer.Exit(MISS)


def _as_json(yours: Step | None, theirs: Step | None) -> dict[str, str | None]:
    """A step for programs; None for one that is missing."""
    step = theirs or yours
    assert step is not None
    results = [None if one is None else one.result for one in (yours, theirs)]
    return {"what": step.what, "yours": results[0], "engine": results[1]}


def _print_beside(pairs: Sequence[tuple[Step | None, Step | None]]) -> None:
    """Print two lists of steps, line by line."""
    wide = max(len(step.what) for pair in pairs for step in pair if step is not None)
    lengths = [len(yours.result) for yours, _ in pairs if yours is not None]
    broad = min(_WIDEST, max([*lengths, len("yours")]))
    write_line(f"  {'':{wide}}  {'yours':{broad}}  the engine's")
    differs = False
    for yours, theirs in pairs:
        one = _as_json(yours, theirs)
        what, mine, engine = one["what"], one["yours"] or "-", one["engine"] or "-"
        mark = "  "
        if yours != theirs and not differs:
            mark, differs = "->", True
        write_line(printable(f"{mark}{what:{wide}}  {mine:{broad}}  {engine}"))
