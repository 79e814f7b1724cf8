"""Problems of an engine and a directory, and remarks on them.

A *problem* is that a store will not work; a *remark* is that one works, but slower or with less.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain

from lsmkv import Options
from lsmkv.tools.doctor.engine import Advice, Engine
from lsmkv.tools.doctor.place import Place, shortened
from lsmkv.tools.doctor.stored import MOST, Stored
from lsmkv.tools.doctor.trial import Trials
from lsmkv.tools.next_step import command_line
from lsmkv.tools.text import count, size

LEAST_ROOM = 64 << 20
"""Bytes: a log, the memtable's table, and what a compaction writes before it removes anything."""
_FEW_FILES = 64
"""A store has some ten files open besides its tables, and a program has its own."""


def problems(engine: Engine, place: Place) -> list[Advice]:
    """Return the reasons for which a store will not work."""
    return list(chain(_broken_codecs(engine), _unusable(place), _failed(place), _no_room(place)))


def remarks(engine: Engine, place: Place) -> list[Advice]:
    """Return remarks on what works, but slower or with less than it could."""
    return list(chain(_slow(engine), _lesser(place), _few_files(place), _not_tried(place)))


def problems_of_store(stored: Stored, path: str) -> list[Advice]:
    """Return the problems of the store in ``path``, or the reason for which they are unknown."""
    if stored.is_broken:
        others = len(stored.damage) - MOST
        more = (
            f"; and {others:,} more, which {_command('verify', path)} names" if others > 0 else ""
        )
        what = f"the store is broken: {'; '.join(stored.damage[:MOST])}{more}"
        return [Advice(what, f"Write nothing to it, and run: {_command('rescue', path)}")]
    if stored.reason:
        return [Advice(f"the store was not checked: {stored.reason}", stored.advice)]
    if stored.possible:
        what = f"writes may be lost: {'; '.join(stored.possible)}"
        return [Advice(what, f"To see what the other files have: {_command('rescue', path)}")]
    return []


def remarks_on_store(stored: Stored, path: str) -> list[Advice]:
    """Return remarks on oddities of the store in ``path``, and on stores below it."""
    found: list[Advice] = []
    if stored.remarks:
        more = f"; and {len(stored.remarks) - MOST:,} more" if len(stored.remarks) > MOST else ""
        found.append(
            Advice(
                f"{'; '.join(stored.remarks[:MOST])}{more}",
                f"Nothing, as a rule: {_command('verify', path)} lists all of it.",
            )
        )
    if stored.below:
        number = len(stored.below)
        found.append(
            Advice(
                f"no store is in this directory, but {count(number, 'store')}"
                f" {'is' if number == 1 else 'are'} below it",
                "; ".join(_command("doctor", shortened(below)) for below in stored.below[:MOST]),
            )
        )
    return found


def _command(verb: str, path: str) -> str:
    return command_line("lsmkv", verb, path)


def _broken_codecs(engine: Engine) -> Iterator[Advice]:
    broken = [name for name, works in engine.codecs.items() if not works]
    if broken:
        yield Advice(
            f"{' and '.join(broken)} cannot compress: blocks are neither written nor read",
            "Install cramjam again: pip install --force-reinstall cramjam",
        )


def _unusable(place: Place) -> Iterator[Advice]:
    if place.missing:
        yield Advice(
            f"the directory {place.path} cannot be listed: {place.missing}",
            "Name a directory that is there, and that you may list.",
        )
    elif place.not_tried and not place.holds_store:
        yield Advice(
            f"no file can be made in {place.path}: {place.not_tried}",
            "A store there opens with read_only=True alone. To write, name a directory that you may"
            " write to.",
        )


def _failed(place: Place) -> Iterator[Advice]:
    trials = place.trials
    if trials is None:
        return
    elsewhere = "Put the store on another file system, best a local disk."
    for name, failure, do in (
        ("a file cannot be written, synced and read", trials.files, elsewhere),
        ("a file cannot be renamed over another", trials.renames, elsewhere),
        ("names of files cannot be made durable", trials.directory_sync, elsewhere),
        (
            "no lock can be taken, so that no store opens for writing",
            trials.lock,
            f"{elsewhere} On NFS, the server's lock service has to run.",
        ),
    ):
        if failure:
            yield Advice(f"{name}: {failure}", do)


def _no_room(place: Place) -> Iterator[Advice]:
    free = place.free_bytes
    if free is not None and free < LEAST_ROOM and not place.not_tried:
        yield Advice(
            f"{size(free)} are free",
            f"Make room for {size(LEAST_ROOM)} at least: a compaction writes new tables before it"
            " removes old ones.",
        )
    limit = place.open_file_limit
    if limit is not None and limit < _FEW_FILES:
        yield Advice(
            f"a process may open {count(limit, 'file')} at once",
            "Raise the limit, for example with 'ulimit -n 1024'.",
        )


_PURE_FILTERS = (
    "Without that, filter_policy=lsmkv.Bloom64Policy() takes a third off Gets of absent keys;"
    " LevelDB reads such tables unfiltered."
)


def _slow(engine: Engine) -> Iterator[Advice]:
    if engine.pure is not None:
        yield Advice(
            f"the engine is not compiled: {engine.pure.what}", f"{engine.pure.do} {_PURE_FILTERS}"
        )
        if engine.crc32c == "lsmkv":
            yield Advice(
                "checksums are computed by Python code, which is slow",
                "pip install --force-reinstall crcmod-plus (lsmkv depends on it), or crc32c.",
            )


def _lesser(place: Place) -> Iterator[Advice]:
    trials = place.trials
    if trials is None:
        return
    on_linux = sys.platform == "linux"  # other systems have neither
    if on_linux and not trials.mapped_log:
        yield Advice(
            "the log is written to, not mapped: a put costs a system call more",
            "Nothing, or a directory on ext4, tmpfs, or XFS without reflinks.",
        )
    if trials.links:
        yield Advice(
            f"there are no hard links: {trials.links}",
            "Nothing: a checkpoint copies tables, which takes time and room.",
        )
    if on_linux and not trials.lock and not trials.is_ofd:
        yield Advice(
            "the lock is one of POSIX, which a fork or another descriptor may drop",
            "Open the store in one place of one process alone.",
        )


def _few_files(place: Place) -> Iterator[Advice]:
    limit, most = place.open_file_limit, Options().max_open_files
    if limit is not None and _FEW_FILES <= limit < most:
        yield Advice(
            f"a process may open {count(limit, 'file')} at once, and a large store opens up to"
            f" {most:,}",
            f"Raise the limit ('ulimit -n {2 * most}'), or open with max_open_files={limit // 2}.",
        )


def _not_tried(place: Place) -> Iterator[Advice]:
    if place.holds_store and place.trials is None and not place.missing:
        why = f": {place.not_tried}" if place.not_tried else ", on another file system"
        yield Advice(
            "nothing was tried: the directory holds a store, which is left alone, and the one above"
            f" cannot stand in for it{why}",
            "Name an empty directory on the same file system.",
        )


def works(trials: Trials) -> dict[str, bool]:
    """The results of the trials in a directory, by their names in ``--json``."""
    return {
        "files": not trials.files,
        "renames": not trials.renames,
        "directory_sync": not trials.directory_sync,
        "hard_links": not trials.links,
        "lock": not trials.lock,
        "ofd_lock": trials.is_ofd,
        "mapped_log": trials.mapped_log,
    }
