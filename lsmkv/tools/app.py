"""The ``lsmkv`` command: its subcommands, in the groups that the help shows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated

import typer

from lsmkv.tools import commands, compare, exchange, maintenance, recovery, scanning
from lsmkv.tools.bench.command import bench
from lsmkv.tools.bulk import versions
from lsmkv.tools.bulk.build import build
from lsmkv.tools.course.command import check, grade, new, plot, show
from lsmkv.tools.demo.command import demo
from lsmkv.tools.doctor.command import doctor
from lsmkv.tools.doctor.engine import version_text
from lsmkv.tools.dump.command import dump
from lsmkv.tools.explaining import explain
from lsmkv.tools.inspect.command import inspect as inspect_store
from lsmkv.tools.lab.command import filter_lab
from lsmkv.tools.report.command import report
from lsmkv.tools.serve import serve
from lsmkv.tools.statistics import stats
from lsmkv.tools.top.command import top
from lsmkv.tools.trace.command import trace

app = typer.Typer(
    help="A key-value store in LevelDB's files: read and write one, look into its files, mend it,"
    " or measure how filters cut its disk reads.",
    epilog="Data goes to stdout, messages to stderr. Exit status: 0; 1 if a key is not there or"
    " stores differ; 2 on an error; 128 + N after signal N. 'verify' exits with 3 for damage,"
    " 'doctor' with 1 for a problem.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

GROUPS: dict[str, dict[str, Callable[..., None]]] = {
    "Data": {
        "put": commands.put,
        "get": commands.get,
        "delete": commands.delete,
        "scan": scanning.scan,
        "keys": scanning.keys,
        "count": scanning.count,
        "load": commands.load,
        "export": exchange.export,
        "import": exchange.import_,
    },
    "Serve": {
        "serve": serve,
    },
    "Look": {
        "stats": stats,
        "explain": explain,
        "inspect": inspect_store,
        "report": report,
        "approximate-sizes": maintenance.approximate_sizes,
        "top": top,
        "trace": trace,
        "dump": dump,
        "diff": compare.diff,
    },
    "Care": {
        "doctor": doctor,
        "verify": recovery.verify,
        "repair": recovery.repair,
        "checkpoint": maintenance.checkpoint,
        "compact": maintenance.compact,
        "destroy": maintenance.destroy,
    },
    "Scale": {
        "bulk build": build,
        "bulk list": versions.list_,
        "bulk prune": versions.prune,
        "bulk diff": versions.diff,
    },
    "Measure": {
        "demo": demo,
        "filter-lab": filter_lab,
        "bench": bench,
    },
    "Learn": {
        "course new": new,
        "course show": show,
        "course check": check,
        "course plot": plot,
        "course grade": grade,
    },
}
"""The commands by name, in groups; one of two words is below the command of the first one."""

bulk = typer.Typer(
    help="Shard sets, which are built in parallel and read where they lie: in object storage, or in"
    " a directory.",
    no_args_is_help=True,
)
app.add_typer(bulk, name="bulk", rich_help_panel="Scale")
course = typer.Typer(
    help="A course in storage engines: labs whose parts, written by you, run in the real engine.",
    no_args_is_help=True,
)
app.add_typer(course, name="course", rich_help_panel="Learn")
APPS = {"": app, "bulk": bulk, "course": course}


def _print_version(asked: bool) -> None:
    if asked:
        print(version_text())
        raise typer.Exit


def _in_paragraphs(docstring: str | None) -> str:
    """A docstring with each paragraph on one line, which the help wraps to the terminal."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(docstring or ""))


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Print the version and what it runs on.",
        ),
    ] = False,
) -> None:
    pass


for group, members in GROUPS.items():
    for name, command in members.items():
        outer, _, own = name.rpartition(" ")
        register = APPS[outer].command
        register(own, help=_in_paragraphs(command.__doc__), rich_help_panel=group)(command)
