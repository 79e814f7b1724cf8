"""The ``lsmkv`` command: its subcommands, in the groups that the help shows.

A command's modules are imported when it is called, or when the help lists it: ``lsmkv get`` waits
for nothing that only the inspector needs.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lsmkv.tools.arguments import with_comparator

GROUPS: dict[str, dict[str, str]] = {
    "Data": {
        "put": "tools.commands:put",
        "get": "tools.commands:get",
        "delete": "tools.commands:delete",
        "scan": "tools.scanning:scan",
        "keys": "tools.scanning:keys",
        "count": "tools.scanning:count",
        "load": "tools.load:load",
        "export": "tools.exchange:export",
        "import": "tools.exchange:import_",
    },
    "Serve": {
        "serve": "tools.serve:serve",
    },
    "Look": {
        "stats": "tools.statistics:stats",
        "explain": "tools.explaining:explain",
        "inspect": "tools.inspect.command:inspect",
        "report": "tools.report.command:report",
        "approximate-sizes": "tools.maintenance:approximate_sizes",
        "top": "tools.top.command:top",
        "trace": "tools.trace.command:trace",
        "dump": "tools.dump.command:dump",
        "diff": "tools.compare:diff",
    },
    "Care": {
        "doctor": "tools.doctor.command:doctor",
        "verify": "tools.recovery:verify",
        "rescue": "tools.rescue.command:rescue",
        "repair": "tools.recovery:repair",
        "checkpoint": "tools.maintenance:checkpoint",
        "compact": "tools.maintenance:compact",
        "destroy": "tools.maintenance:destroy",
        "owner status": "tools.owner:status",
        "owner handover": "tools.owner:handover",
    },
    "Scale": {
        "bulk build": "tools.bulk.build:build",
        "bulk list": "tools.bulk.versions:list_",
        "bulk prune": "tools.bulk.versions:prune",
        "bulk diff": "tools.bulk.versions:diff",
    },
    "Measure": {
        "demo": "tools.demo.command:demo",
        "filter-lab": "tools.lab.command:filter_lab",
        "bench": "tools.bench.command:bench",
    },
    "Learn": {
        "playground": "tools.playground.command:playground",
        "course new": "course.command:new",
        "course show": "course.command:show",
        "course predict": "course.predict.command:predict",
        "course check": "course.command:check",
        "course status": "course.command:status",
        "course run": "course.store.command:run",
        "course see": "course.see:see",
        "course plot": "course.command:plot",
        "course fault": "course.faults.command:fault",
        "course grade": "course.teaching.grade:grade",
        "course report": "course.teaching.report:report",
        "course exam": "course.predict.command:exam",
        "course oral": "course.teaching.oral:oral",
        "course kit": "course.teaching.kit:kit",
    },
}
"""The module below ``lsmkv``, and the function, of each command, by name and in groups.

A name of two words is a command below that of its first word.
"""

ORDERED = frozenset(
    (
        *("put", "get", "delete", "scan", "keys", "count", "load", "export", "import"),
        *("stats", "explain", "approximate-sizes", "diff"),
        *("doctor", "verify", "rescue", "repair", "checkpoint", "compact"),
    )
)
"""The commands with the option ``--comparator``."""

_PANELS = {name: group for group, members in GROUPS.items() for name in members}


class _Group(TyperGroup):
    """A group of :data:`GROUPS`: a command is imported when it is looked up.

    ``commands`` is in the order of the help, and holds None for those not yet imported.
    """

    def __init__(self, *, commands: Any, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._outer = f"{attributes['name']} " if attributes["name"] else ""
        own = (name for name in _PANELS if name.startswith(self._outer))
        names = dict.fromkeys(name.removeprefix(self._outer).split()[0] for name in own)
        self.commands: dict[str, Any] = {name: commands.get(name) for name in names}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _command(self._outer, cmd_name)
        return self.commands.get(cmd_name)


def _command(outer: str, name: str) -> Any:
    group = _PANELS[outer + name]
    module, _, function = GROUPS[group][outer + name].partition(":")
    call = getattr(import_module(f"lsmkv.{module}"), function)
    if outer + name in ORDERED:
        call = with_comparator(call)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, help=_in_paragraphs(call.__doc__), rich_help_panel=group)(call)
    return typer.main.get_command(alone)


def _in_paragraphs(docstring: str | None) -> str:
    """A docstring with each paragraph on one line, which the help wraps to the terminal."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(docstring or ""))


app = typer.Typer(
    cls=_Group,
    help="A key-value store in LevelDB's format: read and write it, inspect its files, repair it,"
    " or measure how filters reduce its disk reads.",
    epilog="Data goes to stdout, messages to stderr. Exit status: 0; 1 if a key is not there or"
    " stores differ; 2 on an error; 128 + N after signal N. 'verify' and"
    " 'doctor' exit with 3 for damage, 'doctor' with 1 for a problem.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bulk = typer.Typer(
    cls=_Group,
    help="Shard sets: built in parallel and read in place, in object storage or in a directory.",
    no_args_is_help=True,
)
app.add_typer(bulk, name="bulk", rich_help_panel="Scale")
owner = typer.Typer(
    cls=_Group,
    help="The process that owns a store which processes share.",
    no_args_is_help=True,
)
app.add_typer(owner, name="owner", rich_help_panel="Care")
course = typer.Typer(
    cls=_Group,
    help="A course in storage engines: labs whose parts, written by you, run in the real engine.",
    no_args_is_help=True,
)
app.add_typer(course, name="course", rich_help_panel="Learn")


def _print_version(asked: bool) -> None:
    if asked:
        from lsmkv.tools.doctor.engine import version_text  # noqa: PLC0415 - looks at packages

        print(version_text())
        raise typer.Exit


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
