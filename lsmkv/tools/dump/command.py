"""``lsmkv dump``: the command."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Annotated

import typer

from lsmkv.tools.arguments import Hex, store_only
from lsmkv.tools.console import ERROR, guarded, say, write_line
from lsmkv.tools.dump.jsonlines import JsonForm
from lsmkv.tools.dump.records import Fault, FaultKind
from lsmkv.tools.dump.sources import CURRENT, Wanted, dump_path
from lsmkv.tools.dump.text import TextForm
from lsmkv.tools.next_step import step_to_rescue
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.text import count

_NOUNS: dict[FaultKind, str] = {
    "damage": "damaged place",
    "torn": "torn write",
    "codec": "unknown-codec block",
    "unreadable": "unreadable file",
}


@guarded
def dump(
    path: Annotated[
        str, argument("FILE|DIR", "A file of a store, or its directory.", callback=store_only)
    ],
    annotate: bool = flag("Every byte of the file, with its meaning.", "--annotate"),
    as_json: bool = flag("JSON lines: an object for each record.", "--json"),
    is_hex: Hex = False,
    keys_only: bool = flag("Without the values.", "--keys-only"),
    limit: int | None = option(
        None, "N", "At most N batches, edits, entries or annotated pieces of each file.", min=0
    ),
) -> None:
    r"""Print the content of a log, a MANIFEST, a table or CURRENT, or of all files of a store.

    Keys and values are escaped as 'scan' escapes them (\xNN, \t, \n, \r, \\), also in JSON, or are
    in hexadecimal. Damage is marked where it is, reading continues after it, and the exit status is
    2. Without its footer or index, the data blocks of a table are searched for. Nothing is written,
    and no lock is taken.
    """
    if annotate and keys_only:
        raise ValueError("give --annotate or --keys-only, not both")
    form: JsonForm | TextForm = JsonForm(is_hex, keys_only)
    if not as_json:
        form = TextForm(is_hex, keys_only, headings=os.path.isdir(path))
    faults: Counter[FaultKind] = Counter()
    for record in dump_path(path, Wanted(annotate, is_hex, limit)):
        if isinstance(record, Fault):
            faults[record.kind] += 1
        for line in form.lines(record):
            write_line(line)
    if faults:
        sys.stdout.flush()
        found = [count(number, _NOUNS[kind]) for kind, number in faults.items()]
        known = os.path.isdir(path) or os.path.exists(os.path.join(os.path.dirname(path), CURRENT))
        step = step_to_rescue(path) if known and faults["damage"] else ""
        say(f"{path}: {', '.join(found)}{step}")
        raise typer.Exit(ERROR)
