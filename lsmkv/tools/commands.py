"""The commands for single keys: put, get and delete."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from lsmkv.engine.util.json_fields import json_field
from lsmkv.files.exchange import json_line
from lsmkv.tools.arguments import (
    Bounds,
    Create,
    Directory,
    Hex,
    Json,
    Key,
    Prefix,
    Start,
    Stop,
    Stored,
    key_bounds,
    open_stored,
    open_to_read,
    open_to_write,
)
from lsmkv.tools.console import (
    MISS,
    confirmed,
    guarded,
    say,
    stdout_is_terminal,
    write,
    write_json,
    write_line,
)
from lsmkv.tools.options import argument, flag
from lsmkv.tools.text import count, from_argument, from_hex, shown


@guarded
def put(
    directory: Directory,
    key: Key,
    value: Annotated[str, argument("VALUE", "The value; - reads it from stdin, unchanged.")],
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
        write_json(fields)


@guarded
def get(
    directory: Stored,
    key: Key,
    raw: bool = flag("The value's bytes and nothing else, even to a terminal.", "--raw"),
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
def delete(
    directory: Directory,
    key: Annotated[str | None, argument("KEY", "The key, as text in UTF-8.")] = None,
    start: Start = None,
    stop: Stop = None,
    prefix: Prefix = None,
    yes: bool = flag("Do not ask.", "--yes"),
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Delete KEY, durably; it is no error if it is not there. Or all keys of a range.

    Before it deletes a range, the command counts its keys, and asks; without a terminal, it needs
    --yes. The exit status is 1 if the answer is no.

    JSON: "path", "key"; of a range "path", "keys" (their number).
    """
    bounds = key_bounds(start, stop, prefix, is_hex)
    if (key is None) == (bounds == Bounds(None, None, None)):
        raise ValueError("give a KEY, or --start, --stop or --prefix")
    if key is None:
        _delete_range(directory, bounds, yes, as_json)
        return
    name = from_argument(key, is_hex)
    with open_to_write(directory) as db:
        db.delete(name, sync=True)
    if as_json:
        write_json({"path": directory} | json_field("key", name, is_hex))


def _delete_range(directory: str, bounds: Bounds, yes: bool, as_json: bool) -> None:
    with (
        open_to_read(directory) as db,
        db.iterator(**bounds._asdict(), include_value=False, fill_cache=False) as keys,
    ):
        found = sum(1 for _ in keys)
    what = count(found, "key")
    if not yes and not confirmed(f"Delete {what} of {directory}?", f"this deletes {what}"):
        say("nothing was deleted")
        raise typer.Exit(MISS)
    with open_to_write(directory) as db:
        db.delete_range(bounds.start, bounds.stop, prefix=bounds.prefix)
        db.sync()
    if as_json:
        write_json({"path": directory, "keys": found})
    else:
        write_line(f"deleted {what}")
