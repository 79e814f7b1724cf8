"""``lsmkv doctor``: what is installed, what works in a directory, and what to do about the rest.

``alone.py`` has its other face, for where the packages of this one are missing.
"""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from lsmkv.tools.arguments import order_options
from lsmkv.tools.console import guarded, write_line
from lsmkv.tools.doctor import report
from lsmkv.tools.drawing import progress, stdout_console
from lsmkv.tools.options import argument, flag


@guarded
def doctor(
    directory: Annotated[str, argument("DIR", report.DIRECTORY)] = ".",
    as_json: bool = flag(report.JSON, "--json"),
) -> None:
    """Print what is installed, whether a store works in DIR, and whether the one in it is sound.

    Exit status: 0; 1 for a problem; 3 if the store in DIR is broken: the last line is then the
    command that gets it back.

    What a store needs of a file system is tried with scratch files in DIR, which are removed. A DIR
    that holds a store is neither opened nor changed: the directory above is tried in its place, if
    it is on the same file system. Every file of the store is read, as 'verify' does it, even while
    another process writes.

    What is printed is made for reports of bugs: it names versions, the system, and DIR as it was
    given, with your home directory as ~.

    JSON: "lsmkv" (the version), "compiled", "pure_because" (null if compiled), "python", "system",
    "codecs", "crc32c" (the package that computes checksums), "dependencies", "extras" (versions by
    package, null for what is not there); "directory": "path", "file_system" (null if unknown),
    "holds_store", "store" (null if DIR has none: "verdict", "damage", "remarks", "reason"),
    "tried_in" (null if nothing was tried), "works" (null, or "files", "renames",
    "directory_sync", "hard_links", "lock", "ofd_lock", "mapped_log"), "access" (of LOCK and SHARED:
    "name", "mode", "links", and "who" can lock it), "free_bytes", "open_file_limit"; "problems" and
    "remarks": lists of "what" is not well and what to "do".
    """
    with progress("Surveying", "byte") as bar:
        found = report.examine(directory, bar.report, **order_options())
    if as_json:
        write_line(report.as_json(found))
    else:
        console = stdout_console()
        for line in report.lines(found, console.width, console.encoding):
            console.print(Text.assemble(*line), soft_wrap=True)
    raise typer.Exit(found.status)
