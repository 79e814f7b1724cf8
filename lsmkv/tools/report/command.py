"""``lsmkv report``: the command."""

from __future__ import annotations

import contextlib
import os
from typing import Annotated

from lsmkv.tools.arguments import Directory
from lsmkv.tools.console import guarded, say, write_json
from lsmkv.tools.drawing import progress
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.options import flag, option, required
from lsmkv.tools.output import Output, open_output
from lsmkv.tools.report.content import Content
from lsmkv.tools.report.page import Answer, html_page
from lsmkv.tools.text import from_argument, printable, size


@guarded
def report(
    directory: Directory,
    output: Annotated[str, required("FILE", "The file; - is stdout.", "--output", "-o")],
    key: list[str] | None = option(None, "KEY", "A key whose Get is shown; may be repeated."),
    is_hex: bool = flag("The keys are in hexadecimal.", "--hex"),
    force: bool = flag("Replace FILE if it exists.", "--force"),
    as_json: bool = flag("The figures as JSON; requires --output.", "--json"),
) -> None:
    """Write what 'inspect' shows of DIR into one HTML file, to keep or to send.

    The file needs no server and no network. It shows the levels, the anatomy of some tables, some
    Gets step by step, the filter lab with a replay of some Gets, the latest edits of the MANIFEST
    and the write path, in at most about 3 MB. Look at it before you send it: it contains keys and
    values.

    FILE appears whole or not at all. Nothing is written to the store, and no lock is taken.

    --json: "path", "file", "bytes".
    """
    if as_json and output == "-":
        raise ValueError("--json requires --output FILE, since stdout carries the page")
    keys = [from_argument(one, is_hex) for one in key or []]
    with open_output(output, force) as file:
        written = write_report(directory, file, keys)
    if as_json:
        write_json({"path": directory, "file": output, "bytes": written})
    elif output != "-":
        say(f"{output}: {size(written)}")


def write_report(directory: str, file: Output, keys: list[bytes]) -> int:
    """Write the report of a store, with the Gets of these keys; the bytes written."""
    name = printable(os.path.basename(os.path.normpath(directory)))
    return write_page(file, f"{name} · lsmkv report", gather(directory, keys))


def gather(directory: str, keys: list[bytes]) -> list[Answer]:
    """Collect the views of a store for a report, with the Gets of these keys."""
    with (
        contextlib.closing(Api(directory)) as api,
        progress("Reading", "") as bar,
    ):
        return Content(api, keys).gather(lambda what: bar.report(0, 0, what))


def write_page(file: Output, title: str, answers: list[Answer]) -> int:
    """Write a report that has these answers; the bytes written."""
    page = html_page(title, answers).encode()
    file.write(page)
    return len(page)
