"""Files in memory that are read block by block, and what their reads ask for."""

from __future__ import annotations

import random

from memory_objects import MemoryObjects

from lsmkv.shards.remote.fetch_ahead import FetchAhead
from lsmkv.shards.remote.remote_file import Held, RemoteFile
from lsmkv.shards.remote.remote_object import RemoteObject, Source

KIB = 1 << 10
MIB = 1 << 20
MOST = 64 * MIB
BLOCK = 4 * KIB
DATA = random.Random(5).randbytes(16 * MIB + 5 * KIB)


def open_file(objects: MemoryObjects, ahead: FetchAhead, *, data_end: int = 0) -> RemoteFile:
    """The object as a table, whose META holds what lies behind ``data_end``."""
    pieces = ((data_end, DATA[data_end:]),) if data_end else ((0, DATA[:1]),)
    remote = RemoteObject(Source(objects, None), "o", len(DATA), "o")
    return RemoteFile(Held(remote, pieces), ahead)


def read(file: RemoteFile, offset: int, length: int = BLOCK) -> None:
    assert file.read(offset, length) == DATA[offset : offset + length]


def scan(file: RemoteFile, start: int, stop: int, length: int = BLOCK) -> None:
    for offset in range(start, stop, length):
        read(file, offset, min(length, stop - offset))


def scan_back(file: RemoteFile, start: int, stop: int, length: int = BLOCK) -> None:
    while stop > start:
        read(file, max(start, stop - length), stop - max(start, stop - length))
        stop -= length


def lengths(objects: MemoryObjects) -> list[int]:
    return [length for _, _, length in objects.ranges]
