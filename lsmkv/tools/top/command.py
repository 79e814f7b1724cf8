"""``lsmkv top``: the command."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from lsmkv.db.observe.histogram import Histogram
from lsmkv.db.observe.published import Owner, read_owner
from lsmkv.db.opening.directory import open_database_directory
from lsmkv.env.local import LocalEnv
from lsmkv.tools.arguments import Directory
from lsmkv.tools.console import MISS, guarded, stdin_is_terminal, stdout_is_terminal, write_line
from lsmkv.tools.top.watch import Watch

_PERCENTILES = (50, 90, 99, 99.9)


@guarded
def top(
    directory: Directory,
    as_json: Annotated[
        bool, typer.Option("--json", help="What is published now, as JSON; no screen.")
    ] = False,
) -> None:
    """Watch a live store: throughput, latencies, hit rates, filters, compactions and stalls.

    Its owner publishes them if it opened the store with DB(..., publish_stats=True). Without a live
    owner that publishes, the screen says so and waits for one. Keys: q quits, p pauses, d changes
    dark and light, ? explains the figures. Nothing is written, and no lock is taken.

    JSON: "path", "pid" (null if nobody has the store open, 0 if it is unknown who), "publishes",
    and "published": counters as 'stats --json' has them, and latencies in nanoseconds. The exit
    status is 1 if nothing is published.
    """
    with open_database_directory(LocalEnv(), directory, False) as opened:
        if as_json:
            owner = read_owner(opened)
            write_line(json.dumps({"path": directory} | _plain(owner)))
            if not owner.publishes:
                raise typer.Exit(MISS)
            return
        if not (stdout_is_terminal() and stdin_is_terminal()):
            raise ValueError("top needs a terminal; with --json it prints what is published now")
        try:
            from lsmkv.tools.top.app import TopApp  # noqa: PLC0415 - a second, for one command
        except ImportError as error:
            raise ValueError(
                f"top needs the extra 'tools', which brings textual: {error}"
            ) from None
        app = TopApp(Watch(opened))
        app.run()
        if app.return_code:
            raise typer.Exit(app.return_code)


def _plain(owner: Owner) -> dict[str, Any]:
    """What is known of a store's owner, as plain data."""
    published = owner.published
    plain: dict[str, Any] = {"pid": owner.pid, "publishes": owner.publishes, "published": None}
    if published is not None and owner.publishes:
        compaction = published.compaction
        plain["published"] = published._asdict() | {
            "stats": published.stats.to_dict(),
            "compaction": None if compaction is None else compaction._asdict(),
            "latencies": {name: _latencies(found) for name, found in published.latencies.items()},
        }
    return plain


def _latencies(histogram: Histogram) -> dict[str, Any]:
    plain: dict[str, Any] = {"count": histogram.count, "mean": round(histogram.mean)}
    plain |= {f"p{percent:g}": histogram.percentile(percent) for percent in _PERCENTILES}
    plain["max"] = histogram.percentile(100)
    return plain
