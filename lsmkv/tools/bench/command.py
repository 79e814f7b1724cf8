"""``lsmkv bench``: the command, its options and the plan made of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from lsmkv.tools.bench import report
from lsmkv.tools.bench.engines import OWN, PEERS, folder_of_peers, is_installed
from lsmkv.tools.bench.runner import NAMES, Plan, run
from lsmkv.tools.bench.settings import MIB, Settings, Shape
from lsmkv.tools.bench.workloads import WORKLOADS
from lsmkv.tools.console import guarded, say, write_json, write_line
from lsmkv.tools.drawing import progress
from lsmkv.tools.options import argument, choice, flag, option

ALL = "all"


class Codec(StrEnum):
    """The compression of blocks in LevelDB and related stores."""

    SNAPPY = "snappy"
    NONE = "none"


@guarded
def bench(
    names: Annotated[
        list[str] | None, argument("[NAME]...", "Workloads and studies; all workloads if none.")
    ] = None,
    against: str = option("", "PEERS", f"Any of {','.join(PEERS)}, or 'all' that there are."),
    num: int = option(200_000, "N", "Entries.", min=1),
    value_size: Annotated[int, typer.Option(metavar="BYTES", min=0)] = 100,
    threads: int = option(1, "N", "Share the keys of a workload.", min=1, max=256),
    bloom_bits: int = option(10, "BITS", "Filter bits a key; 0: no filters.", min=0),
    cache_size: int = option(8 * MIB, "BYTES", "The size of the block cache.", min=0),
    compression: Codec = choice(Codec.SNAPPY, "The codec of blocks."),
    shape: Shape = choice(Shape.SETTLED, "Where reads find the entries."),
    own_defaults: bool = flag(
        "Each engine with its own filters, caches and buffers.", "--own-defaults"
    ),
    histogram: bool = flag("Time each operation by itself.", "--histogram"),
    rounds: int = option(3, "N", "How often each engine runs, in turn.", min=1),
    seed: int = option(1, "N", "The seed of the random choices."),
    directory: str | None = option(None, "DIR", "Make the stores in here.", "--dir"),
    as_json: bool = flag("The figures as JSON.", "--json"),
) -> None:
    """Measure lsmkv, and its peers beside it: db_bench's workloads under db_bench's names.

    Workloads: fillseq fillbatch fillrandom overwrite fillsync readrandom readmissing readhot
    readseq readreverse seekrandom seek10 deleterandom scandeleted queue readwhilewriting
    compact open openlog openkilled.

    Studies, each run once: sustained (the slowest of many puts), growth (Gets in larger and
    larger stores), incompressible (Gets of values that do not compress), footprint (bytes on
    disk, and written), absent (bytes that Gets write), memory, import.

    Reads find all entries where the background work of fillrandom has left them (settled), or
    half of them below, a quarter in a table above, and a quarter in the memtable (written) or in
    a second table (deep), or all in one level (compacted).

    Each engine runs in a separate process, in turn, round after round, on the same keys and
    values (half compressible). Medians are printed, and ratios to lsmkv with their spread. Every
    answer is checked. A workload that a peer cannot run is '-'. Stores are made in DIR, or in the
    system's temporary directory, and removed.

    JSON: "lsmkv", "compiled", "machine", "settings", "rounds", "engines", "workloads" (of each:
    "ops", and by engine "micros" and "ratio" with "median", "low" and "high"), "studies".
    """
    settings = Settings(
        num=num,
        value_size=value_size,
        threads=threads,
        bloom_bits=bloom_bits,
        cache_size=cache_size,
        compression="none" if compression is Codec.NONE else "snappy",
        histogram=histogram,
        seed=seed,
        shape=shape,
        own_defaults=own_defaults,
    )
    figures = measure(make_plan(names or [], against, settings, rounds, directory))
    if as_json:
        write_json(figures)
        return
    for line in report.lines(figures):
        write_line(line)


def make_plan(
    names: list[str], against: str, settings: Settings, rounds: int, directory: str | None
) -> Plan:
    """The plan for these names (all workloads if there are none) and comma-separated peers.

    A peer that is not installed is reported and left out.  ``ValueError`` for an unknown name;
    ``NoPeersError`` for peers where there is no checkout.
    """
    chosen = tuple(dict.fromkeys(names or WORKLOADS))
    _require_known(chosen, NAMES, "workload or study")
    peers = tuple(dict.fromkeys(name for name in against.split(",") if name))
    _require_known(peers, (*PEERS, ALL), "peer")
    wanted = PEERS if ALL in peers else peers
    if wanted:
        folder_of_peers()
    missing = tuple(name for name in wanted if not is_installed(name))
    for name in missing:
        say(f"{name} is not installed, and left out: pip install '.[bench]' in lsmkv's checkout")
    return Plan(
        settings=settings,
        workloads=tuple(name for name in chosen if name in WORKLOADS),
        studies=tuple(name for name in chosen if name not in WORKLOADS),
        engines=(OWN, *(name for name in wanted if name not in missing)),
        missing=missing,
        rounds=rounds,
        directory=directory,
    )


def measure(plan: Plan) -> dict[str, Any]:
    """Run the plan, with a progress bar; returns the JSON that the command prints."""
    with progress("Benchmark", "run") as bar:
        return run(plan, bar.report).to_dict()


def _require_known(names: tuple[str, ...], known: tuple[str, ...], kind: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"no such {kind}: {name} (there are {' '.join(known)})")
