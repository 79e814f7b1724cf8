"""``lsmkv doctor``: what is installed, what works in a directory, and what to do about the rest.

``alone.py`` has its other face, for where the packages of this one are missing.
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from lsmkv.tools.console import MISS, guarded, write_line
from lsmkv.tools.doctor import report
from lsmkv.tools.drawing import stdout_console


@guarded
def doctor(
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help=report.DIRECTORY),
    ] = ".",
    as_json: Annotated[bool, typer.Option("--json", help=report.JSON)] = False,
) -> None:
    """Print what is installed, and whether a store works in DIR; exit with 1 if one does not.

    What a store needs of a file system is tried with scratch files in DIR, which are removed. A DIR
    that holds a store is neither opened nor changed: the directory above is tried in its place, if
    it is on the same file system.

    What is printed is made for reports of bugs: it names versions, the system, and DIR as it was
    given, with your home directory as ~.

    JSON: "lsmkv" (the version), "compiled", "pure_because" (null if compiled), "python", "system",
    "codecs", "crc32c" (the package that computes checksums), "dependencies", "extras" (versions by
    package, null for what is not there); "directory": "path", "file_system" (null if unknown),
    "holds_store", "tried_in" (null if nothing was tried), "works" (null, or "files", "renames",
    "directory_sync", "hard_links", "lock", "ofd_lock", "mapped_log"), "free_bytes",
    "open_file_limit"; "problems" and "remarks": lists of "what" is not well and what to "do".
    """
    found = report.examine(directory)
    if as_json:
        write_line(report.as_json(found))
    else:
        console = stdout_console()
        for line in report.lines(found, console.width, console.encoding):
            console.print(Text.assemble(*line), soft_wrap=True)
    if found.problems:
        raise typer.Exit(MISS)
