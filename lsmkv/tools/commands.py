"""The commands of ``lsmkv``: arguments in, work elsewhere, exit status out."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

import lsmkv
from lsmkv.tools.arguments import (
    Create,
    Directory,
    Hex,
    Json,
    Key,
    open_input,
    open_to_read,
    open_to_write,
)
from lsmkv.tools.console import (
    ERROR,
    MISS,
    guarded,
    say,
    stdout_is_terminal,
    task,
    write,
    write_line,
)
from lsmkv.tools.demo.keys import DataSet, lines_as_keys, unicode_names
from lsmkv.tools.demo.measure import BITS_PER_KEY, TEXTBOOK_RATE
from lsmkv.tools.demo.report import Report
from lsmkv.tools.demo.run import Plan, run_demo
from lsmkv.tools.formats import json_field, json_line
from lsmkv.tools.load import LineFormat, Loaded, load_lines
from lsmkv.tools.text import count, from_argument, from_hex, printable, shown, size

DEFAULT_LAYOUTS = ("off", "block", "table")


class Layout(StrEnum):
    """The demo's filter layouts by name."""

    OFF = "off"
    BLOCK = "block"
    TABLE = "table"
    BOTH = "both"


@guarded
def put(
    directory: Directory,
    key: Key,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="The value; - reads it from stdin, as it is.")
    ],
    create: Create = False,
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Set KEY to VALUE, durably.

    JSON: "path", "key", "bytes" (of the value).
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
    directory: Directory,
    key: Key,
    raw: Annotated[
        bool, typer.Option("--raw", help="The value's bytes and nothing else, even to a terminal.")
    ] = False,
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    """Print the value of KEY and a newline; exit with 1 if there is none.

    The value's bytes go out as they are, but a terminal gets control characters escaped.

    JSON: "key", "value"; a value of null where there is none.
    """
    if raw and as_json:
        raise ValueError("give --raw or --json, not both")
    name = from_argument(key, is_hex)
    with open_to_read(directory) as db:
        value = db.get(name)
    if as_json:
        nothing = json_field("key", name, is_hex) | {"value": None}
        line = json.dumps(nothing).encode() + b"\n"
        write(line if value is None else json_line(name, value, is_hex))
        if value is None:
            raise typer.Exit(MISS)
        return
    if value is None:
        say(f"{shown(name, is_hex)}: no such key")
        raise typer.Exit(MISS)
    if raw:
        write(value)
    elif is_hex or stdout_is_terminal():
        write_line(shown(value, is_hex))
    else:
        write(value + b"\n")


@guarded
def delete(directory: Directory, key: Key, is_hex: Hex = False, as_json: Json = False) -> None:
    """Remove KEY, durably; no error if it is not there.

    JSON: "path", "key".
    """
    name = from_argument(key, is_hex)
    with open_to_write(directory) as db:
        db.delete(name, sync=True)
    if as_json:
        write_line(json.dumps({"path": directory} | json_field("key", name, is_hex)))


@guarded
def scan(
    directory: Directory,
    start: Annotated[
        str | None, typer.Option(metavar="KEY", help="From this key on, itself included.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option(metavar="KEY", help="Up to this key, itself left out.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only keys that begin with this.")
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Last key first.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="At most so many records.")
    ] = None,
    keys_only: Annotated[bool, typer.Option("--keys-only", help="Without the values.")] = False,
    is_hex: Hex = False,
    as_json: Json = False,
) -> None:
    r"""Print records in the order of their keys: KEY, a tab, VALUE.

    What is not printable UTF-8 is escaped (\xNN, \t, \n, \r, \\), so a record is one line, and
    'load --escaped' takes it back.

    JSON: an object a line, "key" and "value".
    """
    if prefix is not None and (start is not None or stop is not None):
        raise ValueError("give --prefix, or --start and --stop, not both")
    left = sys.maxsize if limit is None else limit
    with (
        open_to_read(directory) as db,
        db.iterator(
            start=_bound(start, is_hex),
            stop=_bound(stop, is_hex),
            prefix=_bound(prefix, is_hex),
            reverse=reverse,
            fill_cache=False,
        ) as records,
    ):
        while left > 0 and (record := next(records, None)) is not None:
            key, value = record
            if as_json and keys_only:
                write_line(json.dumps(json_field("key", key, is_hex)))
            elif as_json:
                write(json_line(key, value, is_hex))
            elif keys_only:
                write_line(shown(key, is_hex))
            else:
                write_line(f"{shown(key, is_hex)}\t{shown(value, is_hex)}")
            left -= 1


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

    The end of a line, LF or CRLF, is not part of it. Blank lines are left out.

    JSON: "path", "records", "blank_lines", "seconds".
    """
    if escaped and is_hex:
        raise ValueError("give --escaped or --hex, not both")
    line_format: LineFormat = "hex" if is_hex else "escaped" if escaped else "plain"
    loaded = Loaded()
    started = time.perf_counter()
    with open_input(file) as lines, open_to_write(directory, create) as db:
        try:
            with task("Loading", None, "records") as advance:
                load_lines(db, lines, line_format, loaded, advance)
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


@guarded
def stats(
    directory: Directory,
    as_json: Annotated[bool, typer.Option("--json", help="All counters, as JSON.")] = False,
) -> None:
    """Print how many tables each level holds, and how large they are."""
    with open_to_read(directory) as db:
        figures = db.stats()
    if as_json:
        write_line(json.dumps({"path": directory} | figures.to_dict(), indent=2))
        return
    write_line(f"{'level':>5}{'tables':>8}{'size':>12}")
    for level in figures.levels:
        if level.files:
            write_line(f"{level.level:>5}{level.files:>8,}{size(level.bytes):>12}")
    tables = sum(level.files for level in figures.levels)
    total = sum(level.bytes for level in figures.levels)
    write_line(f"{'all':>5}{tables:>8,}{size(total):>12}")


@guarded
def demo(
    keys: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Your own keys, one per line; - is stdin."),
    ] = None,
    layout: Annotated[
        list[Layout] | None,
        typer.Option(help="A filter layout to measure; may be repeated.", show_default=False),
    ] = None,
    lookups: Annotated[
        int, typer.Option(metavar="N", min=1, help="Keys to look up, of either kind.")
    ] = 5000,
    more: Annotated[
        int, typer.Option(metavar="N", min=0, help="So many keys more: the names, numbered.")
    ] = 0,
    directory: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Keep the stores here.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the random choices.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="The figures alone, as JSON.")] = False,
) -> None:
    """Measure what filters save: block reads per Get with filters off, per 2 KiB, per table.

    The keys are the names of all Unicode characters, or your own.
    """
    if keys is not None and more:
        raise ValueError("give --keys or --more, not both")
    layouts = DEFAULT_LAYOUTS if not layout else tuple(dict.fromkeys(one.value for one in layout))
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a name may be beyond the locale's encoding
    plan = Plan(_demo_keys(keys, more), layouts, lookups, seed, directory)
    outcome = run_demo(plan, Report(Console(highlight=False, quiet=as_json)))
    if as_json:
        about = {
            "lsmkv": lsmkv.__version__,
            "compiled": lsmkv.COMPILED,
            "keys": len(plan.data.expected),
            "bytes": plan.data.size,
            "duplicates": plan.data.duplicates,
            "seed": seed,
            "bits_per_key": BITS_PER_KEY,
            "textbook_rate": TEXTBOOK_RATE,
        }
        write_line(json.dumps(about | outcome.to_dict(), indent=2))
    if outcome.wrong:
        say(f"{count(outcome.wrong, 'wrong answer')}")
        raise typer.Exit(ERROR)


def _bound(text: str | None, is_hex: bool) -> bytes | None:
    return None if text is None else from_argument(text, is_hex)


def _demo_keys(file: str | None, more: int) -> DataSet:
    if file is None:
        return unicode_names(more)
    with open_input(file) as lines:
        return lines_as_keys(lines, "stdin" if file == "-" else printable(file))
