"""``lsmkv playground``: the command."""

from __future__ import annotations

import os
from typing import Annotated

import typer

import lsmkv
from lsmkv.tools.console import guarded

DEFAULT_PORT = 8732
PLACES = tuple(
    os.path.join(base, "build", "playground")
    for base in (os.curdir, os.path.dirname(os.path.dirname(os.path.abspath(lsmkv.__file__))))
)
"""Where the playground is looked for: below this directory, and in the checkout of this lsmkv."""
_EXTRA = ("starlette", "uvicorn")


@guarded
def playground(
    directory: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="The playground to serve; the default is build/playground."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    open_page: Annotated[
        bool, typer.Option("--open/--no-browser", help="Open the page in the browser.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the page's address as JSON on stdout.")
    ] = False,
) -> None:
    """Serve the playground to this machine, until Ctrl-C.

    The playground is a set of static pages in which the engine itself runs in the browser.
    'make playground' in a checkout of lsmkv builds it. Any other file server will do as well.

    JSON: "path", "url".
    """
    try:
        from lsmkv.tools.inspect.server import announced, run  # noqa: PLC0415 - takes 0.2 s
        from lsmkv.tools.playground.server import HOST, application, built  # noqa: PLC0415
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ValueError(
            "playground needs starlette and uvicorn: pip install '.[tools]' in lsmkv's checkout"
        ) from None
    place = built(directory, PLACES)
    with announced(
        HOST, port, place, "is served at", as_json=as_json, open_page=open_page
    ) as listener:
        run(application(place), listener)
