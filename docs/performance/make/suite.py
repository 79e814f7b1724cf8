"""Every run that docs/performance.md tells of: ``python suite.py DIRECTORY``.

Each is what one ``lsmkv bench`` command does; its JSON goes into ``compiled/`` or ``pure/`` below
the directory, whichever this lsmkv is.  The page module makes the page of them.
"""

from __future__ import annotations

import json
import os
from typing import Annotated, NamedTuple

import typer
from rows import READS

import lsmkv
from lsmkv.tools.bench.command import make_plan, measure
from lsmkv.tools.bench.settings import MIB, Settings, Shape
from lsmkv.tools.console import guarded, say
from lsmkv.tools.output import open_output

LARGE_WORKLOADS = (
    *("fillseq", "fillbatch", "fillrandom", "overwrite", "readrandom", "readmissing", "readhot"),
    *("readseq", "readreverse", "seek10", "deleterandom", "scandeleted", "queue"),
    *("compact", "open", "openlog", "openkilled"),
)
"""What is run with more entries, too."""

SHAPES = (Shape.WRITTEN, Shape.DEEP, Shape.COMPACTED)
"""In which the reads are run: one run for each, by its name."""

TIMED = ("fillrandom", "readrandom", "readwhilewriting")
"""What is run once more with a clock for each operation."""

COMPILED_RUNS = (
    *("entries", "threads", "cached", "defaults", "large", "latencies", "peers"),
    *SHAPES,
    *("sustained", "growth", "incompressible", "footprint", "absent", "memory", "import"),
)
PURE_RUNS = ("entries", "threads", "cached")
"""What there are bars for in pure mode."""

_THREADS = 8
_ALL_CACHED = 1024 * MIB


class Scale(NamedTuple):
    """How much is run."""

    num: int
    large: int
    sustained: int
    growth: int
    incompressible: int
    rounds: int


class Run(NamedTuple):
    """What one command is given."""

    names: list[str]
    settings: Settings
    rounds: int
    against: str = "plyvel"


def runs(scale: Scale, compiled: bool) -> dict[str, Run]:
    """All runs, by name.  Pure Python goes fewer rounds."""
    rounds = scale.rounds if compiled else (scale.rounds + 1) // 2
    plain = Settings(num=scale.num)
    large = Settings(num=scale.large)
    cached = Settings(num=scale.num, cache_size=_ALL_CACHED)
    shapes = {
        shape.value: Run(
            list(READS), Settings(num=scale.num, shape=shape), rounds, "plyvel,plyvel+crc,rocksdict"
        )
        for shape in SHAPES
    }
    return {
        "entries": Run([], plain, rounds),
        "threads": Run(["fillsync"], Settings(num=scale.num, threads=_THREADS), rounds),
        "cached": Run(["readrandom"], cached, rounds),
        "defaults": Run([], Settings(num=scale.num, own_defaults=True), rounds),
        "large": Run(list(LARGE_WORKLOADS), large, rounds),
        "latencies": Run(list(TIMED), Settings(num=scale.num, histogram=True), rounds),
        "peers": Run([], plain, rounds, "plyvel,rocksdict,lmdb,sqlite3,dbm"),
        **shapes,
        "sustained": Run(["sustained"], Settings(num=scale.sustained), 1),
        "growth": Run(["growth"], Settings(num=scale.growth), 1),
        "incompressible": Run(["incompressible"], Settings(num=scale.incompressible), 1),
        "footprint": Run(["footprint"], large, 1),
        "absent": Run(["absent"], plain, 1),
        "memory": Run(["memory"], large, 1),
        "import": Run(["import"], plain, 1),
    }


@guarded
def suite(
    directory: Annotated[str, typer.Argument(metavar="DIRECTORY", help="Where the JSON goes.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="All runs if none is named.")
    ] = None,
    num: Annotated[int, typer.Option(metavar="N", min=1)] = 200_000,
    large: Annotated[int, typer.Option(metavar="N", min=1)] = 2_000_000,
    sustained: Annotated[int, typer.Option(metavar="N", min=1)] = 3_000_000,
    growth: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Entries of the largest store; 10000000 takes long."),
    ] = 1_000_000,
    incompressible: Annotated[int, typer.Option(metavar="N", min=1)] = 8_000_000,
    rounds: Annotated[int, typer.Option(metavar="N", min=1)] = 5,
    stores: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Make the stores in here.")
    ] = None,
) -> None:
    """Run what docs/performance.md tells of, and keep the JSON.  It takes more than an hour."""
    listed = COMPILED_RUNS if lsmkv.COMPILED else PURE_RUNS
    for name in names or []:
        if name not in listed:
            raise ValueError(f"no such run: {name} (there are {' '.join(listed)})")
    every = runs(Scale(num, large, sustained, growth, incompressible, rounds), lsmkv.COMPILED)
    folder = os.path.join(directory, "compiled" if lsmkv.COMPILED else "pure")
    os.makedirs(folder, exist_ok=True)
    chosen = [name for name in listed if not names or name in names]
    for number, name in enumerate(chosen, 1):
        say(f"{number} of {len(chosen)}: {name}")
        run = every[name]
        figures = measure(make_plan(run.names, run.against, run.settings, run.rounds, stores))
        with open_output(os.path.join(folder, f"{name}.json"), force=True) as file:
            file.write(json.dumps(figures, indent=1).encode() + b"\n")


if __name__ == "__main__":
    typer.run(suite)
