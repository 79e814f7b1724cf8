"""``lsmkv demo``: the command."""

from __future__ import annotations

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

import lsmkv
from lsmkv.tools.arguments import open_input
from lsmkv.tools.console import ERROR, guarded, say, write_json
from lsmkv.tools.demo.measure import BITS_PER_KEY, TEXTBOOK_RATE
from lsmkv.tools.demo.page import DemoPage
from lsmkv.tools.demo.report import print_report, print_summary
from lsmkv.tools.demo.run import Plan, place, run_demo
from lsmkv.tools.drawing import stdout_console
from lsmkv.tools.options import choice, flag, option
from lsmkv.tools.output import open_output
from lsmkv.tools.sample_keys import DataSet, lines_as_keys, unicode_names
from lsmkv.tools.text import count, printable

DEFAULT_LAYOUTS = ("off", "block", "table", "table64", "fuse")


class Layout(StrEnum):
    """The kinds of filter by name."""

    OFF = "off"
    BLOCK = "block"
    TABLE = "table"
    BOTH = "both"
    BLOCK64 = "block64"
    TABLE64 = "table64"
    FUSE = "fuse"


@guarded
def demo(
    keys: str | None = option(None, "FILE", "Your own keys, one a line; - is stdin."),
    layout: list[Layout] | None = choice(
        None, "A kind of filter to measure; may be repeated.", show_default=False
    ),
    lookups: int = option(5000, "N", "Existing keys to look up, and absent ones.", min=1),
    more: int = option(0, "N", "N more keys: the names again, numbered.", min=0),
    directory: str | None = option(None, "DIR", "Keep the stores here.", "--dir"),
    report: str | None = option(None, "FILE", "Write the result as an HTML page here.", "--report"),
    details: bool = flag("Print all that was measured, and how.", "--details"),
    seed: int = option(1, "N", "Seed of the random choices."),
    as_json: bool = flag("The figures alone, as JSON.", "--json"),
) -> None:
    """Measure what filters save: the data blocks that a Get reads with and without them.

    The keys are the names of all Unicode characters, or your own. The filters are off, one for each
    2 KiB of file, one for each table, and for each table one of 64-bit hashes or a fuse filter,
    which LevelDB does not ask.
    """
    if keys is not None and more:
        raise ValueError("give --keys or --more, not both")
    if report == "-":
        raise ValueError("--report requires a file, since stdout carries the figures")
    layouts = DEFAULT_LAYOUTS if not layout else tuple(dict.fromkeys(one.value for one in layout))
    plan = Plan(_demo_keys(keys, more), layouts, lookups, seed, directory)
    with (
        open_output(report, force=False) if report else contextlib.nullcontext() as file,
        place(plan) as stores,
    ):
        page = DemoPage(plan, stores) if file is not None else None
        outcome = run_demo(plan, stores, page.as_loaded if page is not None else lambda _: None)
        if page is not None and file is not None:
            page.write(file, outcome)
        if as_json:
            write_json(_about(plan) | outcome.to_dict(), indent=2)
        else:
            (print_report if details else print_summary)(stdout_console(), plan, outcome)
    if report:
        say(f"The same as a page, with a store to look into: {Path(report).resolve().as_uri()}")
    if outcome.wrong:
        say(f"{count(outcome.wrong, 'wrong answer')}")
        raise typer.Exit(ERROR)


def _about(plan: Plan) -> dict[str, Any]:
    """A description of the measurement, for JSON."""
    return {
        "lsmkv": lsmkv.__version__,
        "compiled": lsmkv.COMPILED,
        "keys": len(plan.data.expected),
        "bytes": plan.data.size,
        "duplicates": plan.data.duplicates,
        "seed": plan.seed,
        "bits_per_key": BITS_PER_KEY,
        "textbook_rate": TEXTBOOK_RATE,
    }


def _demo_keys(file: str | None, more: int) -> DataSet:
    if file is None:
        return unicode_names(more)
    with open_input(file) as lines:
        return lines_as_keys(lines, "stdin" if file == "-" else printable(file))
