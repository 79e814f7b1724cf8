"""The commands that go through a range of keys: scan, keys and count."""

from __future__ import annotations

import itertools
import json
from typing import Annotated

import typer

import lsmkv
from lsmkv.engine.util.json_fields import json_field
from lsmkv.files.exchange import json_line
from lsmkv.shards import Shards
from lsmkv.tools.arguments import (
    Bounds,
    Hex,
    HexKeys,
    Json,
    Prefix,
    Start,
    Stop,
    Stored,
    key_bounds,
    open_stored,
)
from lsmkv.tools.as_program import As, Family, refuse_hex, texts_of
from lsmkv.tools.console import guarded, stdout_is_terminal, write, write_line
from lsmkv.tools.drawing import progress
from lsmkv.tools.options import flag
from lsmkv.tools.text import shown

Reverse = Annotated[bool, typer.Option("--reverse", help="Last key first.")]
Limit = Annotated[int | None, typer.Option(metavar="N", min=0, help="At most N of them.")]

_REPORT_EVERY = 10_000


@guarded
def scan(
    directory: Stored,
    start: Start = None,
    stop: Stop = None,
    prefix: Prefix = None,
    reverse: Reverse = False,
    limit: Limit = None,
    keys_only: bool = flag("Without the values.", "--keys-only"),
    is_hex: Hex = False,
    as_json: Json = False,
    family: As = None,
) -> None:
    r"""Print records in the order of their keys: KEY, a tab, VALUE.

    What is not printable UTF-8 is escaped (\xNN, \t, \n, \r, \\), and so are spaces at the ends of
    a key or value (\x20): each record is one line, which 'load --escaped' reads.

    On a terminal, the stores of Chromium, Minecraft and Bitcoin are recognized, and shown by names
    and text, which stderr says. Elsewhere --as does that, and --as raw never does.

    JSON: an object a line, "key" and "value"; with --as, "as", "key_text" and "value_text".
    """
    refuse_hex(family, is_hex)
    bounds = key_bounds(start, stop, prefix, is_hex)
    if keys_only:
        _print_keys(directory, bounds, reverse, limit, is_hex, as_json, family)
        return
    with (
        open_stored(directory) as db,
        db.iterator(**bounds._asdict(), reverse=reverse, fill_cache=False) as records,
    ):
        texts = texts_of(db, directory, family, _is_for_a_person(is_hex, as_json))
        for key, value in itertools.islice(records, limit):
            if texts is not None and as_json:
                write(texts.json_line(key, value))
            elif texts is not None:
                write_line(f"{texts.key(key)}\t{texts.value(key, value)}")
            elif as_json:
                write(json_line(key, value, is_hex))
            else:
                write_line(f"{shown(key, is_hex)}\t{shown(value, is_hex)}")


@guarded
def keys(
    directory: Stored,
    start: Start = None,
    stop: Stop = None,
    prefix: Prefix = None,
    reverse: Reverse = False,
    limit: Limit = None,
    is_hex: HexKeys = False,
    as_json: Json = False,
    family: As = None,
) -> None:
    r"""Print keys in their order, a line each, as 'scan --keys-only' does.

    JSON: an object a line, "key"; with --as, "as" and "key_text".
    """
    refuse_hex(family, is_hex)
    bounds = key_bounds(start, stop, prefix, is_hex)
    _print_keys(directory, bounds, reverse, limit, is_hex, as_json, family)


@guarded
def count(
    directory: Stored,
    start: Start = None,
    stop: Stop = None,
    prefix: Prefix = None,
    is_hex: HexKeys = False,
    as_json: bool = flag("The figure as JSON.", "--json"),
) -> None:
    """Print the number of keys, or of those in a range.

    All keys of the range are read, since a store does not keep their number. A shard set does: only
    a range of it is read.

    JSON: "path", "keys".
    """
    bounds = key_bounds(start, stop, prefix, is_hex)
    with open_stored(directory) as db:
        if isinstance(db, Shards) and bounds == Bounds(None, None, None):
            found = db.document.pairs
        else:
            found = _count(db, bounds)
    write_line(json.dumps({"path": directory, "keys": found}) if as_json else str(found))


def _count(db: lsmkv.DB | Shards, bounds: Bounds) -> int:
    found = 0
    with (
        progress("Counting", "key") as bar,
        db.iterator(**bounds._asdict(), include_value=False, fill_cache=False) as records,
    ):
        while step := sum(1 for _ in itertools.islice(records, _REPORT_EVERY)):
            found += step
            bar.advance(step)
    return found


def _print_keys(
    directory: str,
    bounds: Bounds,
    reverse: bool,
    limit: int | None,
    is_hex: bool,
    as_json: bool,
    family: Family | None,
) -> None:
    with (
        open_stored(directory) as db,
        db.iterator(
            **bounds._asdict(), reverse=reverse, include_value=False, fill_cache=False
        ) as found,
    ):
        texts = texts_of(db, directory, family, _is_for_a_person(is_hex, as_json))
        for key in itertools.islice(found, limit):
            if texts is not None:
                if as_json:
                    write(texts.json_line(key))
                else:
                    write_line(texts.key(key))
                continue
            text = json.dumps(json_field("key", key, is_hex)) if as_json else shown(key, is_hex)
            write_line(text)


def _is_for_a_person(is_hex: bool, as_json: bool) -> bool:
    return stdout_is_terminal() and not is_hex and not as_json
