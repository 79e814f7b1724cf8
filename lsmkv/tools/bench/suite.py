"""Every run that docs/performance.md tells of: ``python -m lsmkv.tools.bench.suite DIRECTORY``.

Each is one ``lsmkv bench`` command; its JSON goes into ``compiled/`` or ``pure/`` below the
directory, whichever this lsmkv is.  The page module makes the page of them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import Annotated, NamedTuple

import typer

import lsmkv
from lsmkv.tools.bench.settings import MIB
from lsmkv.tools.console import guarded, say
from lsmkv.tools.output import open_output


class Scale(NamedTuple):
    """How much is run."""

    num: int
    large: int
    sustained: int
    growth: int
    rounds: int


class Run(NamedTuple):
    """One command."""

    name: str
    arguments: list[str]


def runs(scale: Scale, compiled: bool) -> list[Run]:
    """What is run, in order.  In pure mode, what there are bars for."""
    plyvel = ["--against", "plyvel"]
    num = ["--num", str(scale.num), "--rounds", str(scale.rounds)]
    listed = [
        Run("entries", [*plyvel, *num]),
        Run("threads", ["fillsync", *plyvel, *num, "--threads", "8"]),
        Run("cached", ["readrandom", *plyvel, *num, "--cache-size", str(1024 * MIB)]),
    ]
    if not compiled:
        return listed
    few = ["--rounds", str(max(1, scale.rounds // 2))]
    rows = (
        "fillseq fillbatch fillrandom overwrite readrandom readmissing readhot readseq"
        " readreverse seek10 deleterandom compact open"
    )
    others = ["--against", "rocksdict,lmdb,sqlite3,dbm", "--num", str(scale.num), *few]
    large = ["--num", str(scale.large)]
    return [
        *listed,
        Run("large", [*rows.split(), *plyvel, *large, *few]),
        Run("peers", others),
        Run("sustained", ["sustained", *plyvel, "--num", str(scale.sustained)]),
        Run("growth", ["growth", *plyvel, "--num", str(scale.growth)]),
        Run("footprint", ["footprint", *plyvel, *large]),
        Run("absent", ["absent", *plyvel, "--num", str(scale.num)]),
        Run("memory", ["memory", *plyvel, "--num", str(scale.large)]),
        Run("import", ["import", *plyvel]),
    ]


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
        int, typer.Option(metavar="N", min=1, help="Of the largest of three stores.")
    ] = 1_000_000,
    rounds: Annotated[int, typer.Option(metavar="N", min=1)] = 5,
    stores: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Make the stores in here.")
    ] = None,
) -> None:
    """Run the commands that docs/performance.md tells of, and keep their JSON."""
    listed = runs(Scale(num, large, sustained, growth, rounds), lsmkv.COMPILED)
    for name in names or []:
        if name not in {run.name for run in listed}:
            raise ValueError(f"no such run: {name}")
    chosen = [run for run in listed if not names or run.name in names]
    folder = os.path.join(directory, "compiled" if lsmkv.COMPILED else "pure")
    os.makedirs(folder, exist_ok=True)
    place = [] if stores is None else ["--dir", stores]
    for number, run in enumerate(chosen, 1):
        say(f"{number} of {len(chosen)}: lsmkv bench {shlex.join(run.arguments)}")
        with open_output(os.path.join(folder, f"{run.name}.json"), force=True) as file:
            _bench([*run.arguments, *place], file.fileno())


def _bench(arguments: list[str], output: int) -> None:
    command = [sys.executable, "-m", "lsmkv", "bench", *arguments, "--json"]
    status = subprocess.run(command, stdout=output, check=False).returncode
    if status == 130:
        raise KeyboardInterrupt
    if status != 0:
        raise lsmkv.Error(f"lsmkv bench {shlex.join(arguments)} ended with status {status}")


if __name__ == "__main__":
    typer.run(suite)
