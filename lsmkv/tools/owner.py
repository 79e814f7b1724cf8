"""The commands for the owner of a store that processes share: owner status, owner handover."""

from __future__ import annotations

from typing import Annotated

import typer

from lsmkv.shared.visiting import OwnerStatus, hand_over, owner_status
from lsmkv.tools.arguments import Directory
from lsmkv.tools.console import MISS, guarded, say, write_json, write_line
from lsmkv.tools.text import count, printable

AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]


@guarded
def status(directory: Directory, as_json: AsJson = False) -> None:
    """Print which process owns a store that processes share, and its release; exit with 1 if none.

    The store is not opened: nothing is locked and nothing written.

    JSON: "path", "pid" (null if there is none), "release" and "members" (null for a release that
    cannot be asked), "only_owns" (whether the process does nothing else).
    """
    found = owner_status(directory)
    _show(directory, found, as_json, "" if found is None else _line(found))


@guarded
def handover(directory: Directory, as_json: AsJson = False) -> None:
    """Make the process that owns a shared store hand it over; exit with 1 if there is none.

    It first finishes pending work. A process that does nothing but own the store (owner="process")
    then ends; another one stays a member. The next process that needs an owner is one, or starts
    one, with its own release and options. Calls wait for it: none fails, except transactions that
    began before. A process that holds a lease with a name, or follows the writes with batches(),
    does not hand over.

    JSON: as of 'owner status', of the owner before.
    """
    found = hand_over(directory)
    pid = 0 if found is None else found.pid
    _show(directory, found, as_json, f"process {pid} has handed the store over")


def _show(directory: str, found: OwnerStatus | None, as_json: bool, text: str) -> None:
    """Print the owner, as JSON or as ``text``; exit with 1 if there is none."""
    if as_json:
        write_json({"path": directory} | _fields(found))
    elif found is not None:
        write_line(f"{printable(directory)}: {text}")
    if found is None:
        _say_nobody(directory)
        raise typer.Exit(MISS)


def _fields(found: OwnerStatus | None) -> dict[str, object]:
    nobody = OwnerStatus(0, None, None, None)._asdict() | {"pid": None}
    return nobody if found is None else found._asdict()


def _line(found: OwnerStatus) -> str:
    if found.members is None:
        return f"owned by process {found.pid}, which runs an older release or does not answer"
    kind = ", which does nothing else" if found.only_owns else ""
    members = count(len(found.members), "member")
    return f"owned by process {found.pid}{kind}; lsmkv {found.release}; {members}"


def _say_nobody(directory: str) -> None:
    say(f"{directory}: no process owns the store")
