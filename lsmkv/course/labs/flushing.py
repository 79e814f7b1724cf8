"""The checks of lab 9 that cut the power: within the change of CURRENT, and within a flush."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple

import lsmkv
from lsmkv.course.failure import CheckFailure, require, require_bytes
from lsmkv.course.given import BLOCK_SIZE, Directory
from lsmkv.course.labs.edits import (
    LAST_SEQUENCE,
    LOG_NUMBER,
    NEW_FILE,
    NEXT_FILE_NUMBER,
    PREV_LOG_NUMBER,
    encoded,
)
from lsmkv.course.labs.formats import (
    batch_of,
    frame,
    manifest_in_force,
    table_of,
    version_key,
    version_of_store,
    write,
)
from lsmkv.course.labs.log import meaning as meaning_of_frame
from lsmkv.course.labs.power_cuts import (
    CONTENT,
    NAME,
    PATH,
    Rule,
    Run,
    content_differs,
)
from lsmkv.files import Log, Operation, make_name, parse_name
from lsmkv.testing import RecordingEnv

CURRENT = make_name("current")

OLD, NEW = 4, 11
"""The numbers of the current MANIFEST, and of the one that CURRENT must name next."""


def naming(code: ModuleType) -> str:
    """Check that CURRENT names one MANIFEST or the other, whenever the power is cut."""
    env = lsmkv.MemoryEnv()
    names = {number: make_name("manifest", number).encode() + b"\n" for number in (OLD, NEW)}
    with env.open_directory(PATH, create=True) as directory:
        for number in names:
            write(directory, make_name("manifest", number), b"")
        write(directory, CURRENT, names[OLD])
    run = Run(env, lambda directory: code.set_current(directory, NEW))
    touched = [one for one in run.operations if one.name == CURRENT and one.verb != "rename"]
    if touched:
        raise CheckFailure(
            f"set_current must not {touched[0].words}: a power cut would leave CURRENT empty,"
            " incomplete, or gone.\nWrite a file with another name, and rename it to CURRENT."
        )
    with run.env.open_directory(PATH) as directory:
        kept = {CURRENT, *(make_name("manifest", number) for number in names)}
        left = sorted(set(directory.names()) - kept)
        got = directory.read_file(CURRENT, 1000)
    require(
        got != names[OLD],
        f"CURRENT still names the old MANIFEST when set_current returns.\n{run.listing()}",
    )
    require(
        got != names[NEW][:-1],
        "CURRENT lacks the newline after the name. LevelDB then refuses it, because a truncated"
        " file would look like a complete one.",
    )
    require_bytes(
        got, names[NEW], "CURRENT", lambda at: f"character {at} of the name", run.listing()
    )
    require(not left, f"set_current left the file {left}.")
    temporary = f"{NEW:06d}.dbtmp"
    made = next((one.name for one in run.operations if one.verb == "create"), "none")
    require(
        made == temporary,
        f"The temporary file must be {temporary}, but yours is {made}.\nWhen a store is opened, it"
        " removes files that a crash has left, but only those with names that it knows.",
    )
    rules = (
        Rule(
            temporary,
            CONTENT,
            ("rename", CURRENT),
            f"{temporary} is renamed before it is synced: CURRENT may then be empty after a power"
            " cut.",
        ),
        Rule(
            CURRENT,
            NAME,
            None,
            "The directory is not synced after the rename, so a power cut may undo the rename"
            " after the store has begun to rely on the new MANIFEST.",
        ),
    )

    def judge(env: lsmkv.Env) -> str:
        with env.open_directory(PATH) as directory:
            try:
                found = directory.read_file(CURRENT, 1000)
            except FileNotFoundError:
                return "there is no CURRENT."
        return "" if found in names.values() else f"CURRENT holds {found!r}."

    states = run.survives(judge, "set_current", rules, "CURRENT must be replaced atomically.")
    return f"{states} states that a power cut or a kill can leave"


class Work(NamedTuple):
    """A store whose memtable is full, and everything that its flush needs."""

    env: lsmkv.MemoryEnv
    manifest: str
    table_name: str
    table: bytes
    edit: bytes
    old_log: str
    content: Mapping[bytes, bytes]


@functools.cache
def work() -> Work:
    """A store with a table, a full log, and a new log that already receives the writes."""
    env = lsmkv.MemoryEnv()
    content: dict[bytes, bytes] = {}
    with lsmkv.DB(PATH, create_if_missing=True, env=env) as db:
        for number in range(60):
            if number == 20:
                db.flush()
            key = b"key%02d" % (number % 40)
            if number % 7 == 6:
                db.delete(key)
                content.pop(key, None)
            else:
                content[key] = b"value %d" % number
                db.put(key, content[key])
    with env.open_directory(PATH) as directory:
        name = manifest_in_force(directory)
        old_log = make_name("log", version_of_store(directory).log_number)
        entries, last = entries_of_log(directory, old_log)
        number = 1 + max(one.number for one in map(parse_name, directory.names()) if one)
        content[b"later"] = b"written to the new log"
        later = batch_of(last + 1, [(b"later", content[b"later"])])
        write(directory, make_name("log", number), frame(later, 0))
    table = table_of(entries)
    edit = encoded(
        [
            (LOG_NUMBER, number),
            (PREV_LOG_NUMBER, 0),
            (NEXT_FILE_NUMBER, number + 2),
            (LAST_SEQUENCE, last),
            (NEW_FILE, 0, number + 1, len(table), entries[0][0], entries[-1][0]),
        ]
    )
    return Work(env, name, make_name("table", number + 1), table, edit, old_log, content)


def entries_of_log(directory: Directory, name: str) -> tuple[list[tuple[bytes, bytes]], int]:
    """The newest version of each key in a log, by key, and the last sequence."""
    newest: dict[bytes, Operation] = {}
    with Log(directory.open(name)) as log:
        for record in log.records():
            newest |= {one.key: one for one in record.batch.operations()}
    entries = [
        (version_key(key, one.sequence, one.value), one.value or b"")
        for key, one in sorted(newest.items())
    ]
    return entries, max(one.sequence for one in newest.values())


def flush_with(code: ModuleType, directory: Directory) -> None:
    """Have the student flush the store in a directory."""
    job = work()
    with directory.append_to(job.manifest) as manifest:
        code.flush(directory, manifest, job.table_name, job.table, job.edit, job.old_log)


def flushing(code: ModuleType) -> str:
    """Check that a flushed store holds all that was acknowledged, whenever the power is cut."""
    job = work()
    run = Run(job.env, functools.partial(flush_with, code))
    require_flushed(run.env, job)
    rules = (
        Rule(
            job.table_name,
            CONTENT,
            ("append", job.manifest),
            f"The table is not synced before the MANIFEST names it. Sync {job.table_name}, then"
            " append the edit.",
        ),
        Rule(
            job.table_name,
            NAME,
            ("append", job.manifest),
            "The directory is not synced before the MANIFEST names the table: then the content is"
            " durable, but the name is not.",
        ),
        Rule(
            job.manifest,
            CONTENT,
            ("remove", job.old_log),
            f"{job.old_log} is removed before the edit that frees it is durable: append it, sync"
            " the MANIFEST, and only then remove the log.",
        ),
    )
    states = run.survives(
        lambda env: content_differs(env, PATH, job.content),
        "Your flush",
        rules,
        "What the store needs must be durable before the files that it replaces are removed.",
    )
    return f"{states} states that a power cut or a kill can leave"


def require_flushed(env: RecordingEnv, job: Work) -> None:
    """Fail unless table, MANIFEST and log are right after a flush."""
    with env.open_directory(PATH) as directory:
        names = directory.names()
        require(job.table_name in names, f"Your flush has not made the table {job.table_name}.")
        table = directory.read_file(job.table_name, 1 << 20)
        require_bytes(
            table,
            job.table,
            job.table_name,
            lambda at: "a byte of the table",
            "The table must have the bytes that flush gets.",
        )
        manifest = directory.read_file(job.manifest, 1 << 20)
    with job.env.open_directory(PATH) as before:
        begin = before.size(job.manifest)
    expected = frame(job.edit, begin % BLOCK_SIZE)
    require_bytes(
        manifest[begin:],
        expected,
        f"what your flush appended to {job.manifest}, from byte {begin} on",
        functools.partial(meaning_of_frame, expected, begin % BLOCK_SIZE),
        "The MANIFEST is a log: the edit becomes a record, by frame, at the offset in its block"
        " that manifest.size() returns.",
    )
    require(
        job.old_log not in names,
        f"Your flush has not removed {job.old_log}, whose writes the table holds now.",
    )
