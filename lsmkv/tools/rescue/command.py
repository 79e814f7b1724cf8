"""``lsmkv rescue``: the command."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from lsmkv import OptionArguments
from lsmkv.engine.errors import Error, is_full_disk
from lsmkv.files.repair import rescue_db
from lsmkv.tools.arguments import order_options
from lsmkv.tools.console import ERROR, guarded, in_words, say, write_json
from lsmkv.tools.drawing import Progress, progress
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.rescue.finding import Found, Searched, search, unpack
from lsmkv.tools.rescue.owners import UNKNOWN, owner_by_keys, owner_of
from lsmkv.tools.rescue.report import Outcome, Printer, free_name


class WayName(StrEnum):
    """The ways that make a store: see :data:`lsmkv.repair.WAYS`."""

    BY_LEVEL = "by-level"
    KEEP_STALE = "keep-stale"
    BY_SEQUENCE = "by-sequence"


@guarded
def rescue(
    path: Annotated[
        str, argument("PATH", "A store, any folder above it, a zip, or a .mcworld file.")
    ],
    into: str | None = option(
        None, "NEW", "The new directory; beside PATH if it is not given.", "--into"
    ),
    way: WayName | None = option(
        None, "WAY", "Not the recommended way, but this one of those above.", "--way"
    ),
    as_json: bool = flag("The findings as JSON.", "--json"),
) -> None:
    """Find the stores in PATH, make a sound one of each that is damaged, and say what to do next.

    PATH is only read. What is found there is copied, and every way to make a sound store is tried
    on the copy. The best one goes into the new directory NEW, under its path below PATH. The output
    names the owner of each store, what each way keeps, which is best and why, and how to put the
    result back. It also warns of what not to do before that.

    The ways: by-level keeps what is proved to be the newest; keep-stale also keeps entries that
    what is lost may have replaced; by-sequence merges all tables and logs that are there, so old
    values and deleted keys may be back.

    Exit status: 0 each store is sound, or a sound one was made of it; 2 an error, or there is no
    store, or one of them is open in a program, is another engine's, or has nothing to be kept.

    JSON: "path", "into" (null if nothing was made), "stores": each "path", "in_zip", "owner",
    "program", "comparator", "sound", "ways" (each "name", "problem", "entries", "set_aside",
    "lost_bytes"; "more", "fewer" and "other" keys than by-level), "recommended", "made_by", "made",
    "put_back" (commands), "problem", "remarks"; "unread".
    """
    with progress("Looking for stores", "folder") as bar:
        searched = search(path, bar.advance)
    for name in searched.unread:
        say(f"not searched: {name}")
    if not searched.found:
        raise FileNotFoundError(f"{path}: no store is there, nor in a folder or zip below it")
    target = _target(searched, into)
    options = order_options()
    with _workplace(target) as work, progress("Rescuing", "") as shown:
        results = os.path.join(work, "results")
        outcomes = [_rescued(found, work, results, way, options, shown) for found in searched.found]
        if os.path.isdir(results):
            os.rename(results, target)
    for outcome in outcomes:
        if outcome.made is not None:
            outcome.made = target + outcome.made.removeprefix(results)
    _print(searched, target, outcomes, as_json)
    if any(outcome.problem for outcome in outcomes):
        raise typer.Exit(ERROR)


def _rescued(
    found: Found,
    work: str,
    results: str,
    way: str | None,
    options: OptionArguments,
    shown: Progress,
) -> Outcome:
    """Rescue one store into its place below ``results``."""
    outcome = Outcome(found, owner_of(found))
    if found.engine is not None:
        outcome.problem = f"its files are not LevelDB's, use the tools of {found.engine}"
        return outcome
    if found.is_shard_set:
        outcome.problem = "'lsmkv verify' checks it, and 'lsmkv repair --into' repairs it"
        return outcome
    source = found.path
    try:
        if found.archive is not None:
            source = os.path.join(work, "unpacked", *found.place.split("/"))
            outcome.remarks = unpack(
                found, source, lambda done, total: shown.report(done, total, "unpacking")
            )
        made = os.path.join(work, "made")
        outcome.rescue = rescue_db(source, made, way=way, progress=shown.report, **options)
        sound = source if outcome.rescue.made is None else made
        if outcome.owner == UNKNOWN and outcome.rescue.comparator:
            outcome.owner = owner_by_keys(sound) or UNKNOWN
        if outcome.rescue.made is not None:
            outcome.made = os.path.join(results, *filter(None, found.place.split("/")))
            os.makedirs(os.path.dirname(outcome.made), exist_ok=True)
            os.rename(made, outcome.made)
    except (Error, OSError) as error:
        if isinstance(error, OSError) and is_full_disk(error):
            raise OSError(
                error.errno, "the disk is full: --into NEW takes another one", work
            ) from None
        outcome.problem = in_words(error)
    if outcome.rescue is not None and not outcome.rescue.sound and outcome.made is None:
        outcome.problem = outcome.problem or "no way makes a sound store of it"
    return outcome


def _target(searched: Searched, into: str | None) -> str:
    """The new directory's absolute path, which does not exist, and is not in what was searched."""
    if into is not None:
        target = os.path.abspath(into)
        if os.path.lexists(target):
            raise FileExistsError(f"{into}: it exists already: give the name of a new directory")
    else:
        parent, name = os.path.split(searched.path)
        if not os.path.isdir(searched.path):
            name = os.path.splitext(name)[0]
        parent = parent if os.access(parent, os.W_OK) else os.getcwd()
        target = free_name(os.path.join(parent, f"{name}.rescued"))
    parent = os.path.realpath(os.path.dirname(target))
    os.stat(parent)  # so that an error names it
    inside = os.path.realpath(searched.path)
    if parent == inside or parent.startswith(os.path.join(inside, "")):
        raise ValueError(f"{target} is in the folder to be rescued: give --into NEW, elsewhere")
    return target


@contextlib.contextmanager
def _workplace(target: str) -> Iterator[str]:
    """A directory beside the new one for copies, which is removed in the end."""
    work = free_name(f"{target}.working")
    os.mkdir(work)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _print(searched: Searched, target: str, outcomes: list[Outcome], as_json: bool) -> None:
    made = any(outcome.made is not None for outcome in outcomes)
    if as_json:
        data = {
            "path": searched.path,
            "into": target if made else None,
            "stores": [outcome.to_dict() for outcome in outcomes],
            "unread": searched.unread,
        }
        write_json(data, indent=2)
        return
    printer = Printer()
    for outcome in outcomes:
        printer.write(outcome)
    printer.write_next(outcomes)
