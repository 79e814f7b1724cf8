"""The ``lsmkv`` command where its extra is not installed: ``--version`` and ``doctor``."""

from __future__ import annotations

import argparse
import shutil
import sys

from lsmkv.tools.console import ERROR, guarded, say, write_line
from lsmkv.tools.doctor import report
from lsmkv.tools.doctor.engine import version_text


def alone() -> None:
    """Run the command line, and exit: with the status of a command that ``app.py`` runs."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        print(version_text())
    elif arguments[:1] == ["doctor"]:
        _doctor(arguments[1:])
    else:
        say(
            "all commands but doctor need typer and rich: pip install '.[tools]' in lsmkv's"
            " checkout"
        )
        raise SystemExit(ERROR)


@guarded
def _doctor(arguments: list[str]) -> None:
    """``lsmkv doctor``, without colors: ``doctor/command.py`` has its other face."""
    parser = argparse.ArgumentParser("lsmkv doctor", description=report.MEANING)
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help=report.DIRECTORY)
    parser.add_argument("--json", action="store_true", help=report.JSON)
    given = parser.parse_args(arguments)
    found = report.examine(given.directory)
    if given.json:
        write_line(report.as_json(found))
    else:
        columns = shutil.get_terminal_size().columns
        for line in report.lines(found, columns, sys.stdout.encoding):
            write_line("".join(text for text, _ in line))
    if found.status:
        raise SystemExit(found.status)
