"""``lsmkv top``: the command."""

from __future__ import annotations

import typer

from lsmkv import LocalEnv
from lsmkv.engine.db.opening.directory import open_database_directory
from lsmkv.shared.owner import read_owner
from lsmkv.tools.arguments import Directory
from lsmkv.tools.console import (
    MISS,
    guarded,
    stdin_is_terminal,
    stdout_is_terminal,
    write_json,
)
from lsmkv.tools.options import flag
from lsmkv.tools.top.plain import owner_as_dict
from lsmkv.tools.top.watch import Watch


@guarded
def top(
    directory: Directory,
    as_json: bool = flag("What is published now, as JSON; no screen.", "--json"),
) -> None:
    """Watch a live store: throughput, latencies, hit rates, filters, compactions and stalls.

    Its owner publishes them if it opened the store with DB(..., publish_stats=True). Without a live
    owner that publishes, the screen says so and waits for one. Keys: q quits, p pauses, d changes
    dark and light, ? explains the figures. Nothing is written, and no lock is taken.

    JSON: "path", "pid" (null if no process has the store open, 0 if the process is unknown),
    "publishes", and "published": counters as 'stats --json' has them, and latencies in nanoseconds.
    The exit status is 1 if nothing is published.
    """
    with open_database_directory(LocalEnv(), directory, False) as opened:
        if as_json:
            owner = read_owner(opened)
            write_json({"path": directory} | owner_as_dict(owner))
            if not owner.publishes:
                raise typer.Exit(MISS)
            return
        if not (stdout_is_terminal() and stdin_is_terminal()):
            raise ValueError("top needs a terminal; with --json it prints what is published now")
        try:
            from lsmkv.tools.top.app import TopApp  # noqa: PLC0415 - a second, for one command
        except ImportError as error:
            raise ValueError(
                f"top needs the extra 'tools', which includes textual: {error}"
            ) from None
        app = TopApp(Watch(opened))
        app.run()
        if app.return_code:
            raise typer.Exit(app.return_code)
