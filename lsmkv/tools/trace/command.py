"""``lsmkv trace``: the command."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from typing import Annotated

import lsmkv
from lsmkv.engine.errors import NotFoundError
from lsmkv.engine.util.json_fields import json_field
from lsmkv.files import make_name
from lsmkv.tools.arguments import HexKeys, Json, store_only
from lsmkv.tools.console import guarded, stdout_is_terminal, write_json, write_line
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.text import clipped, duration, size
from lsmkv.tools.trace.summary import Summary

_WIDTH = 120  # columns, where stdout is no terminal

_TRACE = make_name("trace")


@guarded
def trace(
    path: Annotated[
        str,
        argument(
            "FILE|DIR",
            f"The trace, or the store in whose directory it is ({_TRACE}).",
            callback=store_only,
        ),
    ],
    summary: bool = flag(
        "In sum: operations by kind, hit rates, latencies, frequent keys.", "--summary"
    ),
    limit: int | None = option(None, "N", "At most the first N operations.", min=0),
    keys: int = option(10, "N", "The number of frequent keys in the summary.", min=0),
    is_hex: HexKeys = False,
    as_json: Json = False,
) -> None:
    """Print the operations on a store, with their keys and times.

    DB(..., trace=PATH) records them, and may still be doing so. Of each operation: the second at
    which it began, how long it took, the size of the value found or written (- for none), and the
    key. Of a seek, the key is where it begins; of a batch, it is the first one.

    JSON: an object a line, "operation", "start_us", "duration_ns", "size" (null for none),
    "operations" (of a batch) and "key"; with --summary one object, with durations in nanoseconds.
    """
    reader = _open(path)
    operations = itertools.islice(reader, limit)
    width = shutil.get_terminal_size().columns if stdout_is_terminal() else _WIDTH
    if summary:
        whole = Summary(reader.started, reader.sample)
        for record in operations:
            whole.add(record)
        if as_json:
            write_json(whole.to_dict(keys, is_hex))
        else:
            for line in whole.lines(keys, is_hex, width):
                write_line(line)
        return
    if not as_json:
        write_line(f"{'second':>12}{'took':>8}  operation {'size':>7}  key")
    for record in operations:
        write_line(_json(record, is_hex) if as_json else _line(record, is_hex, width))


def _open(path: str) -> lsmkv.TraceReader:
    """The trace itself, or the one in a store's directory."""
    if not os.path.isdir(path):
        return lsmkv.read_trace(path)
    try:
        return lsmkv.read_trace(os.path.join(path, _TRACE))
    except NotFoundError as error:
        error.strerror = (
            f"no trace here; lsmkv.DB(..., trace={os.path.join(path, _TRACE)!r}) writes one"
        )
        error.filename = path
        raise


def _line(record: lsmkv.TraceRecord, is_hex: bool, width: int) -> str:
    """An operation in ``width`` columns."""
    began, took = f"{record.start / 1e6:.6f}", duration(record.duration)
    held = "-" if record.size is None else size(record.size)
    line = f"{began:>12}{took:>8}  {record.operation:<6}{held:>11}  "
    batch = f"  ({record.operations:,} operations)" if record.operations != 1 else ""
    if record.operation == "seek" and not record.key:
        return f"{line}(from an end of the store)"
    room = max(20, width - len(line) - len(batch))
    return f"{line}{clipped(record.key, room, is_hex)}{batch}"


def _json(record: lsmkv.TraceRecord, is_hex: bool) -> str:
    fields = {
        "operation": record.operation,
        "start_us": record.start,
        "duration_ns": record.duration,
        "size": record.size,
        "operations": record.operations,
    }
    return json.dumps(fields | json_field("key", record.key, is_hex))
