"""``lsmkv course see``: the steps of a student's part next to the engine's, and the first
difference."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from lsmkv.course.labs.registry import find
from lsmkv.course.running import PASSED
from lsmkv.course.step_views import Seen, look, sight_of
from lsmkv.course.steps import lab_file
from lsmkv.tools.console import MISS, guarded, write_line
from lsmkv.tools.text import printable

DEFAULT_PORT = 8733
_EXTRA = ("starlette", "uvicorn")
_WIDEST = 52
"""Characters of a step in its column."""


@guarded
def see(
    lab_name: Annotated[
        str, typer.Argument(metavar="LAB", help="The lab's number or short name: 4 or bloom.")
    ],
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The key whose steps are shown.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="The file; by default the lab's own, in this folder."),
    ] = None,
    as_page: Annotated[
        bool, typer.Option("--page", help="Show them as a page in the browser, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65535, help="The page's port; 0 takes a free one."),
    ] = DEFAULT_PORT,
    open_page: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the page in the browser.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the steps as JSON.")] = False,
) -> None:
    """Show the steps of your part next to the engine's, for one key: labs 3, 4 and 8.

    Lab 3: a block, part by part. Lab 4: a hash, the bytes of a filter, and questions to it. Lab 8:
    the filters that a Get asks and the blocks that it reads. The first step that differs is marked.
    The exit status is 1 if one does.

    With --page, the browser goes through them step by step, and through those of another key; the
    page follows the file when it is saved.

    JSON: "lab", "key", "outcome", "message", "differs" (the number of a step, or null), and
    "steps", each with "what", "kind", "yours" and "engine". With --page: "path", "url".
    """
    lab = find(lab_name)
    sight_of(lab)
    path = os.path.abspath(lab_file(lab, ".") if file is None else file)
    if as_page:
        try:
            from lsmkv.course.see_page import HOST, application  # noqa: PLC0415 - takes 0.2 s
            from lsmkv.tools.inspect.server import announced, run  # noqa: PLC0415
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in _EXTRA:
                raise
            raise ValueError(
                "--page needs starlette and uvicorn: pip install '.[tools]' in lsmkv's checkout"
            ) from None
        os.stat(path)  # report a wrong name at once
        words = "is shown next to the engine's at"
        with announced(HOST, port, path, words, as_json=as_json, open_page=open_page) as listener:
            run(application(lab, path, key), listener)
        return
    seen = look(lab, path, key)
    if as_json:
        write_line(json.dumps(seen.to_dict()))
    else:
        _print_beside(seen)
        if seen.outcome != PASSED:
            write_line(f"{seen.outcome}: {printable(seen.message)}")
    if seen.differs is not None or seen.outcome != PASSED:
        raise typer.Exit(MISS)


def _print_beside(seen: Seen) -> None:
    """Print two lists of steps, line by line."""
    steps = seen.to_dict()["steps"]
    wide = max(len(step["what"]) for step in steps)
    lengths = [len(step["yours"]) for step in steps if step["yours"] is not None]
    broad = min(_WIDEST, max([*lengths, len("yours")]))
    write_line(f"  {'':{wide}}  {'yours':{broad}}  the engine's")
    for at, step in enumerate(steps):
        mark = "->" if at == seen.differs else "  "
        mine, engine = step["yours"] or "-", step["engine"] or "-"
        write_line(printable(f"{mark}{step['what']:{wide}}  {mine:{broad}}  {engine}"))
