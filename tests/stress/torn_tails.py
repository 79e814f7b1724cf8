"""Last records that a killed process did not copy whole, made in a copy of its directory.

A process dies inside a copy into the log much too seldom: so the end of the last record is made
zeros, as in a mapped log, or cut off, as in one that is written.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from numbered import Operations

from lsmkv.engine.db.tree.manifest import read_manifest
from lsmkv.engine.env.base import Directory
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.format.batch import decode_batch, encode_batch
from lsmkv.engine.format.filenames import FileType, log_name, parse_filename, read_current
from lsmkv.engine.format.log import LogReader, LogWriter


class Torn(NamedTuple):
    """What was done to a directory."""

    log: str
    how: str
    """``zeros`` or ``cut``."""
    sequence: int
    """Of the record that is torn now: the next one that is to be written."""
    changes: dict[bytes, bytes | None]
    """What that record did."""
    is_first: bool
    """Whether its log has no record before it."""


def tear_last_record(path: str, rng: random.Random) -> Torn | None:
    """Tear the last record of the newest log that recovery will replay; None if it is empty."""
    with LocalEnv().open_directory(path) as directory:
        found = _last_record(directory)
        if found is None:
            return None
        name, start, end, payload = found
    sequence, operations = decode_batch(payload)
    how = rng.choice(["zeros", "cut"])
    with open(f"{path}/{name}", "r+b") as file:
        file.seek(start)
        length = len(file.read(end - start).rstrip(b"\0"))  # of what zeros do not stand for anyway
        at = start + rng.randrange(length)
        file.seek(at)
        if how == "zeros":
            file.write(bytes(end - at))
        else:
            file.truncate(at)
    return Torn(name, how, sequence, dict(operations), start == 0)


def append_as_leveldb(path: str, torn: Torn, operations: Operations) -> None:
    """Go on at the end of the file, as LevelDB does that reuses its logs: behind zeros, too."""
    with LocalEnv().open_directory(path) as directory, directory.append_to(torn.log) as file:
        LogWriter(file, file.size()).add_record(encode_batch(torn.sequence, operations))


def _last_record(directory: Directory) -> tuple[str, int, int, bytes] | None:
    """A log's name; where its last record starts and ends; and what that is."""
    needed = read_manifest(directory, read_current(directory)).log_number
    numbers = [
        parsed[0]
        for parsed in map(parse_filename, directory.names())
        if parsed is not None and parsed[1] is FileType.LOG and parsed[0] >= needed
    ]
    for number in sorted(numbers, reverse=True):
        last = None
        with directory.open(log_name(number)) as file:
            for record in LogReader(file, reserved=True):
                last = (log_name(number), record.offset, record.end, record.payload)
        if last is not None:
            return last
    return None
