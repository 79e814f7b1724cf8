"""Opens hostile directories, in a process of its own: a path and steps in, one JSON line out.

Its memory is limited, and an audit hook notes every path that it opens, renames, removes or makes.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import warnings
from collections.abc import Callable
from typing import Any

import lsmkv
import lsmkv.engine.db.handles.explain  # imported late, and with it what is no file of a store
import lsmkv.indexeddb  # imported by a survey without a MANIFEST
from lsmkv.files.repair.survey import survey_db

MIB = 1 << 20
EVENTS = {
    "open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink",
    "os.truncate", "os.listdir", "os.scandir", "os.chmod", "shutil.rmtree",
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "max_block_bytes": MIB, "lru_cache_size": MIB, "background": "thread", "bloom_filter_bits": 10,
}  # fmt: skip

warnings.simplefilter("ignore", lsmkv.RecoveryWarning)  # to print one reads the source's line
touched: list[str] = []
watching = [False]


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook; descriptors are no paths."""
    if watching[0] and event in EVENTS:
        paths = arguments[:2] if event in ("os.rename", "os.link", "os.symlink") else arguments[:1]
        touched.extend(os.fsdecode(path) for path in paths if isinstance(path, (str, bytes)))


def read(path: str, **options: Any) -> None:
    """Every way of reading."""
    with lsmkv.DB(path, **SETTINGS, **options) as db:
        answers: list[Callable[[], object]] = [
            lambda: sum(1 for _ in db),
            lambda: sum(1 for _ in db.iterator(reverse=True)),
            lambda: [db.get(key) for key in (b"", b"k1", b"zz")],
            lambda: db.multi_get([b"k1", b"k2"]),
            lambda: db.explain(b"k1"),
            db.verify,
            lambda: db.approximate_size(b"", b"z"),
        ]
        refusal: lsmkv.Error | None = None
        for answer in answers:
            try:
                answer()
            except lsmkv.Error as error:
                refusal = error
        if refusal is not None:
            raise refusal


def write(path: str) -> None:
    """Reading, writing, and rewriting all that is there."""
    with lsmkv.DB(path, **SETTINGS) as db:
        db.put(b"k1", b"new")
        db.flush()
        db.compact_range()
    read(path)


STEPS: dict[str, Callable[[str], object]] = {
    "read_only": lambda path: read(path, read_only=True),
    "mapped": lambda path: read(path, read_only=True, map_tables=True),
    "survey": lambda path: survey_db(path, max_block_bytes=MIB),
    "open": read,
    "paranoid": lambda path: read(path, paranoid_checks=True),
    "write": write,
    "destroy": lsmkv.destroy_db,
}


def attempt(step: Callable[[str], object], path: str) -> str:
    """The name of the typed error that came of it, or what came that is none."""
    try:
        step(path)
    except lsmkv.Error as error:
        return type(error).__name__
    except BaseException as error:
        return f"NOT TYPED: {error!r}"
    return "ok"


def most_memory() -> int:
    """Bytes that this process has held at most.

    Not ``ru_maxrss``, in which the process that this one was forked from has its share.
    """
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def say(line: str) -> None:
    """Write one line to the parent process."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Until there are no more lines."""
    logging.getLogger("lsmkv").setLevel(logging.CRITICAL + 1)
    with lsmkv.DB(":memory:", background="thread") as db:  # what is imported late is imported now
        db.put(b"k", b"v")
        db.flush()
        db.compact_range()
        list(db)
    address_space = int(sys.argv[1]) * MIB
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    sys.addaudithook(note)
    before = most_memory()
    say("ready")
    for line in sys.stdin:
        path, *steps = line.rstrip("\n").split("\t")
        touched.clear()
        watching[0] = True
        outcomes = {name: attempt(STEPS[name], path) for name in steps}
        watching[0] = False
        peak = most_memory() - before
        say(json.dumps({"outcomes": outcomes, "touched": sorted(set(touched)), "peak": peak}))


if __name__ == "__main__":
    main()
