"""The ``lsmkv`` command: its subcommands, put together."""

from __future__ import annotations

import inspect
import re
from typing import Annotated

import typer

from lsmkv.tools import commands, compare, exchange, maintenance, recovery
from lsmkv.tools.bench.command import bench
from lsmkv.tools.dump.command import dump
from lsmkv.tools.text import version_line

app = typer.Typer(
    help="A key-value store in LevelDB's files: look into one, change one, or see how filters cut"
    " its disk reads.",
    epilog="Data goes to stdout, messages to stderr. Exit status: 0, 1 if a key is not there or"
    " stores differ, 2 on an error; of verify, 3 for damage.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(version_line())
        raise typer.Exit


def _in_paragraphs(docstring: str | None) -> str:
    """A docstring whose paragraphs are one line each: the help is wrapped to the terminal."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(docstring or ""))


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


for command in (
    commands.put,
    commands.get,
    commands.delete,
    commands.scan,
    commands.load,
    commands.stats,
    dump,
    commands.demo,
    recovery.verify,
    recovery.repair,
    maintenance.checkpoint,
    maintenance.compact,
    maintenance.destroy,
    maintenance.approximate_sizes,
    compare.diff,
    exchange.export,
    bench,
):
    app.command(help=_in_paragraphs(command.__doc__))(command)
app.command("import", help=_in_paragraphs(exchange.import_.__doc__))(exchange.import_)
