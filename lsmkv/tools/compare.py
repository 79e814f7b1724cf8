"""``lsmkv diff``: the command, and the check whether two files have the same bytes."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

import lsmkv
from lsmkv import TableInfo
from lsmkv.engine.errors import StaleViewError
from lsmkv.tools.arguments import Hex, open_to_read, store_only
from lsmkv.tools.console import MISS, guarded, say, write_json
from lsmkv.tools.diff import Plan, State, differences, make_plan
from lsmkv.tools.differences import SIGNS, Form, print_differences, say_counts
from lsmkv.tools.drawing import progress
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.text import count, size

_CHUNK = 256 * 1024
_ATTEMPTS = 10


@guarded
def diff(
    a: Annotated[str, argument("A", "A store's directory.", callback=store_only)],
    b: Annotated[str, argument("B", "Another store's directory.", callback=store_only)],
    keys_only: bool = flag("Without the values.", "--keys-only"),
    limit: int | None = option(None, "N", "Stop after N differences.", min=1),
    quiet: bool = flag("Print nothing: the exit status is the answer.", "--quiet", "-q"),
    stats: bool = flag("Print on stderr what was found and what was read.", "--stats"),
    is_hex: Hex = False,
    as_json: bool = flag("An object for each difference, and a summary.", "--json"),
) -> None:
    """Print how the contents of two stores differ; exit with 0 if they do not, with 1 if they do.

    '- KEY VALUE' is only in A, '+ KEY VALUE' only in B, and '! KEY OLD NEW' differs. Fields are
    separated by tabs, and keys and values are escaped as 'scan' prints them. Tables that are
    identical in both stores are read only where other tables or the log overlap them.

    JSON: a line each, {"change", "key", "a", "b"}, with field names as 'export' has them, where
    "change" is "only_a", "only_b" or "changed"; then {"summary": {...}}, which counts the
    differences (all of them only if "complete"), the tables and bytes of both stores, those that
    are identical, those that were skipped, and what was read.
    """
    form = Form(keys_only, is_hex, as_json, quiet)
    with open_to_read(a) as ours, open_to_read(b) as theirs:
        for attempt in range(_ATTEMPTS):
            try:
                summary = _compare(ours, theirs, form, 1 if quiet else limit)
                break
            except _MovedOn as error:
                if attempt == _ATTEMPTS - 1:
                    raise error.error from None
                ours.refresh()
                theirs.refresh()
    if as_json and not quiet:
        write_json({"summary": {"a": a, "b": b} | summary})
    if stats:
        _say_summary(summary)
    sys.stdout.flush()
    if any(summary[change] for change in SIGNS):
        raise typer.Exit(MISS)


class _MovedOn(Exception):
    """A writer has removed a table that was needed before anything was printed."""

    def __init__(self, error: StaleViewError) -> None:
        super().__init__()
        self.error = error


def _compare(a: lsmkv.DB, b: lsmkv.DB, form: Form, most: int | None) -> dict[str, Any]:
    """Print how the stores differ in the states that they have now; the summary."""
    with contextlib.ExitStack() as stack:
        try:
            ours, theirs = stack.enter_context(State(a)), stack.enter_context(State(b))
            with progress("Comparing tables", "byte") as bar:
                files = _Files(a.path, b.path, bar.advance)
                plan = make_plan(ours, theirs, files.same)
            bar = stack.enter_context(progress("Comparing", "key"))
            rest = stack.enter_context(
                contextlib.closing(differences(ours, theirs, plan, bar.advance))
            )
            first = list(itertools.islice(rest, 1))
        except StaleViewError as error:
            raise _MovedOn(error) from None
        found, complete = print_differences(itertools.chain(first, rest), form, most)
    return _summary(plan, found, complete, files.bytes_compared, [a, b])


class _Files:
    """Checks whether two tables are the same file or have the same bytes."""

    def __init__(self, a: str, b: str, advance: Callable[[int], None]) -> None:
        self._a = a
        self._b = b
        self._advance = advance
        self.bytes_compared = 0
        """Bytes read from each of the two stores, for tables that are not the same file."""

    def same(self, a: TableInfo, b: TableInfo) -> bool:
        """True if the files are the same; False also if a writer has just removed one of them."""
        try:
            return self._same(os.path.join(self._a, a.name), os.path.join(self._b, b.name))
        except FileNotFoundError:
            return False

    def _same(self, a: str, b: str) -> bool:
        ours, theirs = os.stat(a), os.stat(b)
        if not stat.S_ISREG(ours.st_mode) or not stat.S_ISREG(theirs.st_mode):
            return False
        if (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino):
            return True
        if ours.st_size != theirs.st_size:
            return False
        with open(a, "rb") as left, open(b, "rb") as right:
            while True:
                chunk = left.read(_CHUNK)
                if chunk != right.read(_CHUNK):
                    return False
                if not chunk:
                    return True
                self.bytes_compared += len(chunk)
                self._advance(len(chunk))


def _summary(
    plan: Plan, found: dict[str, int], complete: bool, compared: int, stores: list[lsmkv.DB]
) -> dict[str, Any]:
    figures = [db.stats() for db in stores]
    return {
        **found,
        "complete": complete,
        **plan.extent.to_dict(),
        "bytes_compared": compared,
        "blocks_read": sum(one.blocks_read for one in figures),
        "bytes_read": sum(one.bytes_read for one in figures),
        "identity_check_reads": sum(one.identity_check_reads for one in figures),
        "identity_check_bytes_read": sum(one.identity_check_bytes_read for one in figures),
    }


def _say_summary(summary: dict[str, Any]) -> None:
    say_counts(summary, summary["complete"])
    say(
        f"{count(summary['tables_identical'], 'table')} in both;"
        f" {size(summary['bytes_skipped'])} of {size(summary['bytes'])} skipped,"
        f" {count(summary['blocks_read'], 'data block')} read ({size(summary['bytes_read'])}),"
        f" {count(summary['identity_check_reads'], 'identity check read')}"
        f" ({size(summary['identity_check_bytes_read'])})"
    )
