"""Lab 2, by the engine's own modules."""

from __future__ import annotations

from lsmkv.engine.env.memory import MemoryEnv
from lsmkv.engine.format.log import LogReader, frame
from lsmkv.engine.util.checksum import typed_crc32c as masked_checksum

__all__ = ["frame", "masked_checksum", "read_log"]


def read_log(data: bytes) -> list[bytes]:
    directory = MemoryEnv().open_directory("log", create=True)
    with directory.create("log") as file:
        file.append(data)
    records: list[bytes] = []
    with directory.open("log") as log:
        for record in LogReader(log, reserved=True):
            if record.damage is not None:
                break
            records.append(record.payload)
    return records
