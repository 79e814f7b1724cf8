"""The commands for single keys, put, get and delete, and load."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated

import typer

from lsmkv.exchange import json_line
from lsmkv.tools.arguments import (
    Create,
    Directory,
    Hex,
    Json,
    Key,
    Stored,
    open_input,
    open_stored,
    open_to_write,
)
from lsmkv.tools.console import (
    MISS,
    guarded,
    progress,
    say,
    stdout_is_terminal,
    write,
    write_line,
)
from lsmkv.tools.load import LineFormat, Loaded, load_lines
from lsmkv.tools.text import count, from_argument, from_hex, shown
from lsmkv.util.json_fields import json_field


@guarded
def put(
    directory: Directory,
    key: Key,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="The value; - reads it from stdin, unchanged.")
    ],
    create: Create = False,
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Set KEY to VALUE, durably.

    JSON: "path", "key", "bytes" (the value's size).
    """
    name = from_argument(key, is_hex)
    if value != "-":
        content = from_argument(value, is_hex)
    else:
        content = sys.stdin.buffer.read()
        if is_hex:
            content = from_hex(content.decode("ascii", "backslashreplace"))
    with open_to_write(directory, create) as db:
        db.put(name, content, sync=True)
    if as_json:
        fields = {"path": directory} | json_field("key", name, is_hex) | {"bytes": len(content)}
        write_line(json.dumps(fields))


@guarded
def get(
    directory: Stored,
    key: Key,
    raw: Annotated[
        bool, typer.Option("--raw", help="The value's bytes and nothing else, even to a terminal.")
    ] = False,
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Print the value of KEY and a newline; exit with 1 if there is none.

    The value's bytes are printed unchanged; on a terminal, control characters are escaped.

    JSON: "key", "value", which is null if there is none.
    """
    if raw and as_json:
        raise ValueError("give --raw or --json, not both")
    name = from_argument(key, is_hex)
    with open_stored(directory) as db:
        value = db.get(name)
    if as_json:
        nothing = json_field("key", name, is_hex) | {"value": None}
        line = json.dumps(nothing).encode() + b"\n"
        write(line if value is None else json_line(name, value, is_hex))
        if value is None:
            raise typer.Exit(MISS)
        return
    if value is None:
        say(f"{shown(name, is_hex) or '(empty)'}: no such key")
        raise typer.Exit(MISS)
    if raw:
        write(value)
    elif is_hex or stdout_is_terminal():
        write_line(shown(value, is_hex))
    else:
        write(value + b"\n")


@guarded
def delete(directory: Directory, key: Key, is_hex: Hex = False, as_json: Json = False) -> None:
    """Delete KEY, durably; it is no error if it is not there.

    JSON: "path", "key".
    """
    name = from_argument(key, is_hex)
    with open_to_write(directory) as db:
        db.delete(name, sync=True)
    if as_json:
        write_line(json.dumps({"path": directory} | json_field("key", name, is_hex)))


@guarded
def load(
    directory: Directory,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file of lines; - is stdin.")],
    create: Create = False,
    escaped: Annotated[
        bool, typer.Option("--escaped", help="Lines are escaped as 'scan' prints them.")
    ] = False,
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Put every line of FILE: a key, a tab and a value; or a key alone, with an empty value.

    The end of a line, LF or CRLF, belongs to neither. Blank lines are left out.

    JSON: "path", "records", "blank_lines", "seconds".
    """
    if escaped and is_hex:
        raise ValueError("give --escaped or --hex, not both")
    line_format: LineFormat = "hex" if is_hex else "escaped" if escaped else "plain"
    loaded = Loaded()
    started = time.perf_counter()
    with open_input(file) as lines, open_to_write(directory, create) as db:
        try:
            with progress("Loading", "record") as bar:
                load_lines(db, lines, line_format, loaded, bar.advance)
            db.sync()
        finally:
            seconds = time.perf_counter() - started
            blank = count(loaded.blank_lines, "blank line")
            say(
                f"{count(loaded.records, 'record')} loaded in {seconds:.1f} s"
                + (f", {blank} left out" if loaded.blank_lines else "")
            )
    if as_json:
        figures = {"records": loaded.records, "blank_lines": loaded.blank_lines}
        write_line(json.dumps({"path": directory} | figures | {"seconds": round(seconds, 3)}))
