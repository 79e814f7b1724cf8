"""The ``lsmkv`` command: its subcommands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import lsmkv
from lsmkv.tools import commands

app = typer.Typer(
    help="A key-value store in LevelDB's files: look into one, change one, or see how filters cut"
    " its disk reads.",
    epilog="Data goes to stdout, messages to stderr. Exit status: 0, 1 if a key is not there,"
    " 2 on an error.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"lsmkv {lsmkv.__version__} ({'compiled' if lsmkv.COMPILED else 'pure Python'})")
        raise typer.Exit


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
    commands.demo,
):
    app.command()(command)
