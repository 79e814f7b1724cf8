"""``lsmkv playground``: the command."""

from __future__ import annotations

import os

import lsmkv
from lsmkv.tools.console import guarded, needing
from lsmkv.tools.options import flag, option

DEFAULT_PORT = 8732
PLACES = tuple(
    os.path.join(base, "build", "playground")
    for base in (os.curdir, os.path.dirname(os.path.dirname(os.path.abspath(lsmkv.__file__))))
)
"""Directories searched for the playground: this one, and the checkout of this lsmkv."""


@guarded
def playground(
    directory: str | None = option(
        None, "DIR", "The playground to serve; the default is build/playground."
    ),
    port: int = option(DEFAULT_PORT, "N", "The port; 0 takes a free one.", min=0, max=65535),
    open_page: bool = flag("Open the page in the browser.", "--open/--no-browser"),
    as_json: bool = flag("Print the page's address as JSON on stdout.", "--json"),
) -> None:
    """Serve the playground to this machine, until Ctrl-C.

    The playground is a set of static pages in which the engine itself runs in the browser.
    'make playground' in a checkout of lsmkv builds it. Any other file server will do as well.

    JSON: "path", "url".
    """
    with needing("playground", "starlette", "uvicorn", extra="tools"):
        from lsmkv.tools.inspect.server import announced, run  # noqa: PLC0415 - takes 0.2 s
        from lsmkv.tools.playground.server import HOST, application, built  # noqa: PLC0415
    place = built(directory, PLACES)
    with announced(
        HOST, port, place, "is served at", as_json=as_json, open_page=open_page
    ) as listener:
        run(application(place), listener)
