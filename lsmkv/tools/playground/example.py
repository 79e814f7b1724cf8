"""A small store for visitors who have no folder to drop: names in tables, and some in the log."""

from __future__ import annotations

import base64
from typing import Any

import lsmkv
from lsmkv.tools.playground.story import records

Plain = dict[str, Any]
"""A JSON object."""

_IN_TABLES, _IN_LOG = 2400, 100
_PATH = "example"


def example(_: Plain) -> Plain:
    """The files of the store: ``name`` and ``base64`` of each."""
    env = lsmkv.MemoryEnv()
    with lsmkv.DB(
        _PATH,
        create_if_missing=True,
        env=env,
        write_buffer_size=32 << 10,
        max_file_size=32 << 10,
        background="inline",
    ) as db:
        for key, value in records()[:_IN_TABLES]:
            db.put(key, value)
        db.flush()
        for key, value in records()[_IN_TABLES : _IN_TABLES + _IN_LOG]:
            db.put(key, value)
    directory = env.open_directory(_PATH)
    return {
        "files": [
            {
                "name": name,
                "base64": base64.b64encode(directory.read_file(name, 1 << 24)).decode("ascii"),
            }
            for name in sorted(directory.names())
        ]
    }
