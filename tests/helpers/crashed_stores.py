"""Stores of known content as a kill leaves them, and damage to their files."""

from __future__ import annotations

from typing import Any

from numbered import PATH, State, Workload, batch_of

from lsmkv import DB, WriteBatch
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import LOST_RECORD, FileType, parse_filename
from lsmkv.engine.format.log import frame
from lsmkv.testing.faulty import FaultyEnv


def made(count: int = 40, **options: Any) -> tuple[FaultyEnv, Workload]:
    """A store that was killed: everything in one log, nothing in tables."""
    workload = Workload(steps=count * 2, seed=8)
    env = FaultyEnv()
    db = DB(PATH, create_if_missing=True, env=env, **options)
    for number, operations in enumerate([o for _, o in workload.steps if o][:count]):
        db.write(batch_of(operations))
        assert number < count
    del workload.states[count + 1 :]
    image = env.kill()
    db.close()
    return image, workload


def with_tables() -> tuple[FaultyEnv, State]:
    """A store with a table on each of three levels, and writes in its log."""
    env = FaultyEnv()
    with DB(PATH, create_if_missing=True, env=env) as db:
        for n in range(3):
            for key in range(20):
                db.put(b"%02d" % key, b"%d" % n)
            db.flush()
        db.put(b"in the log", b"1")
        return env.kill(), dict(db)


def directory_of(env: FaultyEnv) -> Directory:
    return env.open_directory(PATH)


def content(env: FaultyEnv, name: str) -> bytes:
    with directory_of(env) as directory, directory.open(name) as file:
        return file.read(0, file.size)


def replace(env: FaultyEnv, name: str, data: bytes) -> None:
    with directory_of(env) as directory:
        if directory.exists(name):
            directory.remove(name)
        with directory.create(name) as file:
            file.append(data)


def remove(env: FaultyEnv, name: str) -> None:
    with directory_of(env) as directory:
        directory.remove(name)


def names_of(env: FaultyEnv, kind: FileType) -> list[str]:
    with directory_of(env) as directory:
        parsed = {name: parse_filename(name) for name in directory.names()}
    return sorted(name for name, what in parsed.items() if what is not None and what[1] is kind)


def everything(env: FaultyEnv) -> dict[str, bytes]:
    """Every file but LOG, LOG.old and LOCK, which an attempt to open may touch."""
    with directory_of(env) as directory:
        names = [name for name in directory.names() if not name.startswith("LO")]
    return {name: content(env, name) for name in names if name != "lost"}


def lost(env: FaultyEnv) -> dict[str, bytes]:
    with directory_of(env) as directory:
        if not directory.exists("lost"):
            return {}
        with directory.subdirectory("lost") as aside:
            found = {}
            for name in aside.names():
                if name == LOST_RECORD:
                    continue
                with aside.open(name) as file:
                    found[name] = file.read(0, file.size)
            return found


def record_ends(data: bytes) -> list[int]:
    """The ends of all records of a log of small records."""
    ends = []
    at = 0
    while at < len(data):
        at += 7 + int.from_bytes(data[at + 4 : at + 6], "little")
        ends.append(at)
    return ends


def damage(data: bytes, at: int, mask: int = 0x10) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def logs_of(env: FaultyEnv, logs: list[bytes]) -> list[str]:
    """Add these logs behind the empty log of a new store."""
    (first,) = names_of(env, FileType.LOG)
    number = int(first.split(".")[0]) + 10
    names = []
    for data in logs:
        names.append(f"{number:06d}.log")
        replace(env, names[-1], data)
        number += 5
    return names


def fresh() -> FaultyEnv:
    env = FaultyEnv()
    DB(PATH, create_if_missing=True, env=env).close()
    return env.kill()


def record(sequence: int, *values: int) -> bytes:
    """A framed batch that puts each value under its own key."""
    batch = WriteBatch()
    for value in values:
        batch.put(b"%03d" % value, b"v%d" % value)
    return frame(batch.encode(sequence), 0)


TORN = record(4, 99)[:-3]
