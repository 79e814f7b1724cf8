"""What docs/filters.md says was measured: ``python filters.py DIRECTORY PAGE``.

The JSON goes into ``compiled/`` or ``pure/`` below the directory, whichever this lsmkv is; then the
page's tables are made anew from what both modes left there.  Counts come from real stores, times
from the same builders and policies that these use.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import corpora
import filters_page
import typer

import lsmkv
from lsmkv.engine.filter.key_hashes import KeyHashes
from lsmkv.engine.filter.known import policy_from_text
from lsmkv.engine.filter.levels import spread
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.options import FilterLayout, OptionArguments, make_options
from lsmkv.engine.stats import Stats
from lsmkv.engine.table.filter_block import (
    FilterBlockBuilder,
    FilterBlockReader,
    FilterReader,
    TableFilterBuilder,
    TableFilterReader,
)
from lsmkv.engine.table.reader import Table
from lsmkv.tools.bench.machine import machine
from lsmkv.tools.console import guarded, say
from lsmkv.tools.output import open_output

FILE = "filters.json"
"""What is left in the directory of a mode."""

_GIB = 1 << 30
_GROUP = 34  # keys of a data block: 4 KiB of entries of some 120 bytes
_BLOCK = 4096
_BATCH = 1000
_ROUNDS = 3
_TRIALS = 6
_NEARLY = 0.002
_RUNS = (1, 10, 100)  # sizes of levels 0, 1 and 2
_BITS = 10.0
_TABLE = 20_000  # keys of a table of 2 MiB, about


class Setting(NamedTuple):
    """Filters of one kind."""

    policy: str
    layout: FilterLayout
    keys_a_table: int | None = None
    """None for one table."""

    def arguments(self) -> OptionArguments:
        """The options of a store that has them."""
        return {"filter_policy": self.made(), "filter_layout": self.layout}

    def made(self) -> FilterPolicy:
        """The policy."""
        policy = policy_from_text(self.policy)
        assert policy is not None
        return policy


SETTINGS = {
    "bloom, 2 KiB": Setting("bloom:10", "block"),
    "bloom, table": Setting("bloom:10", "table"),
    "bloom64, 2 KiB": Setting("bloom64:10", "block"),
    "bloom64, table": Setting("bloom64:10", "table"),
    "fuse": Setting("fuse", "table"),
    "fuse, 10,000 keys": Setting("fuse", "table", 10_000),
}
"""What is measured, by the names that the page gives them."""


class Scale(NamedTuple):
    """How much is measured."""

    keys: int
    """The most keys that are taken of a corpus: the first ones in their order."""
    run: int
    """Keys of the smallest level; the others have 10 and 100 times as many."""
    gets: int
    """Gets of absent keys in these levels."""
    series: int
    """Time series that are scanned or stored."""


class Store:
    """A store in memory, without caches, that grows by one table at a time."""

    def __init__(self) -> None:
        self._env = lsmkv.MemoryEnv()
        self._rng = random.Random(2)
        self._values = [self._rng.randbytes(50) * 2 for _ in range(_BATCH)]

    def open(self, **arguments: Any) -> lsmkv.DB:
        """The store, with the options that all measurements have."""
        return lsmkv.DB(
            "/store",
            env=self._env,
            create_if_missing=True,
            write_buffer_size=_GIB,
            lru_cache_size=0,
            seek_compaction=False,
            background="thread",
            **arguments,
        )

    def add_table(self, keys: list[bytes], **arguments: Any) -> None:
        """One more table, of these keys: on level 2, 1 or 0, above those that it overlaps."""
        with self.open(**arguments) as db:
            tables = len(db.tables())
            for start in range(0, len(keys), _BATCH):
                with db.write_batch() as batch:
                    for key, value in zip(keys[start : start + _BATCH], self._values, strict=False):
                        batch.put(key, value)
            db.flush()
            if len(db.tables()) != tables + 1:
                raise lsmkv.Error("a compaction ran, or a table was divided")

    def filter_bytes(self, prefixes: bool = False, **arguments: Any) -> int:
        """Bytes of all filters, or of the prefix filters."""
        options = make_options(**arguments)
        directory = self._env.open_directory("/store")
        total = 0
        for name in directory.names():
            if name.endswith(".ldb"):
                with directory.open(name) as file:
                    table = Table(options, file)
                    if prefixes:
                        assert table.prefix_filter is not None
                        total += len(table.prefix_filter.contents)
                    else:
                        total += sum(len(reader.contents) for reader in table.filters.readers)
        return total


def counted(db: lsmkv.DB, work: Callable[[], None]) -> tuple[Stats, int]:
    """The counters of a piece of work, and its nanoseconds."""
    before = db.stats()
    start = time.perf_counter_ns()
    work()
    taken = time.perf_counter_ns() - start
    return db.stats() - before, taken


def measure_corpus(keys: list[bytes]) -> dict[str, dict[str, Any]]:
    """Every other key loaded, and the ones between asked, under each setting."""
    loaded, asked = keys[::2], keys[1::2]
    random.Random(3).shuffle(asked)
    return {name: measure_setting(setting, loaded, asked) for name, setting in SETTINGS.items()}


def measure_setting(setting: Setting, loaded: list[bytes], asked: list[bytes]) -> dict[str, Any]:
    """Counts and times of one setting."""
    store = Store()
    arguments = setting.arguments()
    tables = max(1, len(loaded) // (setting.keys_a_table or len(loaded)))
    size = setting.keys_a_table or len(loaded)
    for number in range(tables):
        stop = len(loaded) if number == tables - 1 else (number + 1) * size
        store.add_table(loaded[number * size : stop], **arguments)

    def get_all() -> None:
        for key in asked:
            if db.get(key) is not None:
                raise lsmkv.Error(f"{key!r} is there")

    with store.open(**arguments) as db:
        get_all()  # opens the tables
        stats, taken = counted(db, get_all)
        taken = min(taken, *(counted(db, get_all)[1] for _ in range(_ROUNDS - 1)))
    figures = {
        "loaded": len(loaded),
        "tables": tables,
        "bits_a_key": 8 * store.filter_bytes(**arguments) / len(loaded),
        "asked": stats.filters_asked,
        "false_positives": stats.filters_asked - stats.filter_negatives,
        "gets": len(asked),
        "blocks_read": stats.blocks_read,
        "get_ns": taken / len(asked),
    }
    if setting.keys_a_table is None:
        figures |= times(setting, loaded, asked)
    return figures


def times(setting: Setting, loaded: list[bytes], asked: list[bytes]) -> dict[str, float]:
    """Nanoseconds a key to build the filters, and to ask them, the hash included: the best of
    three rounds."""
    policy = setting.made()
    groups = [loaded[start : start + _GROUP] for start in range(0, len(loaded), _GROUP)]
    build, contents = min(build_time(policy, setting.layout, groups) for _ in range(_ROUNDS))
    reader: FilterReader
    if setting.layout == "block":
        reader = FilterBlockReader(policy, contents)
    else:
        reader = TableFilterReader(policy, contents)
    # Each key is asked of the filter of the block where it would be.
    place = {key: number for number, group in enumerate(groups) for key in group}
    pairs: list[tuple[int, bytes]] = []
    at = 0
    for key in sorted([*loaded, *asked]):
        if key in place:
            at = place[key]
        else:
            pairs.append((at * _BLOCK, key))
    random.Random(4).shuffle(pairs)
    probe = min(probe_time(reader, pairs) for _ in range(_ROUNDS))
    return {"build_ns": build / len(loaded), "probe_ns": probe / len(asked)}


def build_time(policy: FilterPolicy, layout: str, groups: list[list[bytes]]) -> tuple[int, bytes]:
    """Nanoseconds to build the filters of a table, and their bytes."""
    start = time.perf_counter_ns()
    if layout == "block":
        block = FilterBlockBuilder(policy)
        for number, group in enumerate(groups):
            block.start_block(number * _BLOCK)
            block.add_keys(group)
        contents = block.finish()
    else:
        whole = TableFilterBuilder(policy)
        for group in groups:
            whole.add_keys(group)
        contents = whole.finish()
    return time.perf_counter_ns() - start, contents


def probe_time(reader: FilterReader, pairs: list[tuple[int, bytes]]) -> int:
    """Nanoseconds to ask for all keys, each with the offset of its block."""
    may_match = reader.may_match
    start = time.perf_counter_ns()
    for offset, key in pairs:
        may_match(offset, KeyHashes(key))
    return time.perf_counter_ns() - start


def measure_levels(scale: Scale) -> dict[str, dict[str, Any]]:
    """Uniform bits against Monkey's, at equal memory, in three levels of random keys."""
    rng = random.Random(5)
    sizes = [scale.run * size for size in _RUNS]
    levels = [sorted({rng.randbytes(16) for _ in range(size)}) for size in sizes]
    asked = [rng.randbytes(16) for _ in range(scale.gets)]
    figures: dict[str, dict[str, Any]] = {}
    for name, setting in SETTINGS.items():
        if setting.policy == "fuse":
            continue
        store = store_of_levels(setting, levels, [_BITS] * len(sizes))
        uniform = ask_levels(store, setting, asked)
        # Filters are rounded up to whole bytes, by more or by less than with uniform bits.
        average = _BITS
        for _ in range(_TRIALS):
            bits = spread(average, sizes)
            store = store_of_levels(setting, levels, bits)
            more = uniform["filter_bytes"] / store.filter_bytes(**setting.arguments())
            if 1 <= more < 1 + _NEARLY:
                break
            average *= more - _NEARLY / 2
        figures[name] = {
            "uniform": uniform,
            "by level": ask_levels(store, setting, asked) | {"bits": bits},
        }
    return figures


def store_of_levels(setting: Setting, levels: list[list[bytes]], bits: list[float]) -> Store:
    """A store of these levels, in tables of at most 20,000 keys."""
    store = Store()
    for keys, one in reversed(list(zip(levels, bits, strict=True))):
        policy = setting.made().with_bits(one)  # type: ignore[attr-defined]
        for start in range(0, len(keys), _TABLE):
            table = keys[start : start + _TABLE]
            store.add_table(table, filter_policy=policy, filter_layout=setting.layout)
    return store


def ask_levels(store: Store, setting: Setting, asked: list[bytes]) -> dict[str, Any]:
    """What Gets of absent keys read in a store of three levels."""

    def get_all() -> None:
        for key in asked:
            db.get(key)

    with store.open(**setting.arguments()) as db:
        stats, _ = counted(db, get_all)
        if {table.level for table in db.tables()} != set(range(len(_RUNS))):
            raise lsmkv.Error("the levels are not those that were to be made")
    return {
        "filter_bytes": store.filter_bytes(**setting.arguments()),
        "gets": len(asked),
        "asked": stats.filters_asked,
        "blocks_read": stats.blocks_read,
        "false_positives": [
            level.filters_asked - level.filter_negatives for level in stats.levels[: len(_RUNS)]
        ],
    }


def measure_scans(scale: Scale) -> dict[str, dict[str, Any]]:
    """Scans of absent time series, in five overlapping tables, with prefix filters and without."""
    points, tables = 20, 5
    stored, (first, *absent) = range(0, scale.series, 2), range(1, scale.series - 1, 2)
    figures: dict[str, dict[str, Any]] = {}
    for policy in ("bloom:10", "bloom64:10", "fuse"):
        for prefixes in (False, True):
            arguments: dict[str, Any] = {"filter_policy": policy_from_text(policy)}
            if prefixes:
                arguments["prefix_extractor"] = b":"
            store = Store()
            for table in range(tables):
                moments = range(table * points, (table + 1) * points)
                keys = [corpora.series_key(one, moment) for one in stored for moment in moments]
                store.add_table(keys, **arguments)

            def scan_all(some: list[int]) -> None:
                for series in some:
                    prefix = corpora.series_key(series, 0)[:13]
                    if any(True for _ in db.iterator(prefix=prefix)):
                        raise lsmkv.Error(f"{prefix!r} is there")

            with store.open(**arguments) as db:
                scan_all([first])  # opens the tables; a second scan of a prefix would read nothing
                stats, taken = counted(db, partial(scan_all, absent))
            figures[policy + (" and prefixes" if prefixes else "")] = {
                "tables": tables,
                "scans": len(absent),
                "blocks_read": stats.blocks_read,
                "filters_asked": stats.filters_asked,
                "false_positives": stats.filters_asked - stats.filter_negatives,
                "prefix_filter_bytes": store.filter_bytes(True, **arguments) if prefixes else 0,
                "prefixes": tables * len(stored),
                "scan_ns": taken / len(absent),
            }
    return figures


def measure(scale: Scale) -> dict[str, Any]:
    """All figures, as plain data."""
    found: dict[str, Any] = {}
    missing: list[str] = []
    for name, made in corpora.CORPORA.items():
        try:
            keys = made()[: scale.keys]
        except corpora.MissingCorpusError as error:
            missing.append(f"{name}: {error}")
            continue
        say(f"{name}: {len(keys):,} keys")
        found[name] = measure_corpus(keys)
    say("levels")
    levels = measure_levels(scale)
    say("scans")
    return {
        "lsmkv": lsmkv.__version__,
        "compiled": lsmkv.COMPILED,
        "machine": machine(os.curdir),
        "scale": scale._asdict(),
        "corpora": found,
        "missing": missing,
        "levels": levels,
        "scans": measure_scans(scale),
    }


def read_figures(directory: str) -> dict[str, dict[str, Any]]:
    """The figures of each mode that has any; ``ValueError`` if they are another mode's."""
    found: dict[str, dict[str, Any]] = {}
    for mode in filters_page.MODES:
        path = os.path.join(directory, mode, FILE)
        if os.path.exists(path):
            with open(path, "rb") as file:
                found[mode] = json.load(file)
            if found[mode]["compiled"] is not (mode == "compiled"):
                raise ValueError(f"{path}: these figures are not those of lsmkv {mode}")
    return found


@guarded
def filters(
    directory: Annotated[str, typer.Argument(metavar="DIRECTORY", help="Where the JSON goes.")],
    page: Annotated[str, typer.Argument(metavar="PAGE", help="Its tables are replaced.")],
    keys: Annotated[int, typer.Option(metavar="N", min=40)] = 400_000,
    run: Annotated[int, typer.Option(metavar="N", min=10)] = 2_000,
    gets: Annotated[int, typer.Option(metavar="N", min=1)] = 300_000,
    series: Annotated[int, typer.Option(metavar="N", min=4)] = 1_000,
) -> None:
    """Measure filters in this mode, and make the page's tables of both modes' figures."""
    figures = measure(Scale(keys, run, gets, series))
    folder = os.path.join(directory, "compiled" if lsmkv.COMPILED else "pure")
    os.makedirs(folder, exist_ok=True)
    with open_output(os.path.join(folder, FILE), force=True) as file:
        file.write(json.dumps(figures, indent=1).encode() + b"\n")
    with open(page, encoding="utf-8") as old:
        text = filters_page.with_tables(old.read(), read_figures(directory))
    with open_output(page, force=True) as file:
        file.write(text.encode())


if __name__ == "__main__":
    typer.run(filters)
