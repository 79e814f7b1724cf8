"""``lsmkv bulk list``, ``prune`` and ``diff``: the versions of a shard set."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from typing import Annotated

import typer

import lsmkv.shards.building
from lsmkv.engine.util.pair_diff import Difference
from lsmkv.shards import VersionDocument
from lsmkv.shards.building import PairChange
from lsmkv.shards.building.manage import versions_to_compare
from lsmkv.tools.arguments import Hex
from lsmkv.tools.console import MISS, guarded, say, stdout_is_terminal, write_json, write_line
from lsmkv.tools.differences import Form, print_differences, say_counts
from lsmkv.tools.drawing import progress
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.shard_sets import store_options
from lsmkv.tools.text import count, printable, size

Url = Annotated[str, argument("URL", "The shard set: a directory, s3://..., ...")]
AsJson = Annotated[bool, typer.Option("--json", help="The figures as JSON.")]

_HEADINGS = ("version", "published (UTC)", "shards", "pairs", "size", "build")
_LEFT = (1, 5)
"""The columns that are flush left."""


@guarded
def list_(url: Url, as_json: AsJson = False) -> None:
    """List the versions of a shard set, from the oldest; the last one is in force.

    JSON: an array of {"version", "created", "build", "shards", "pairs", "bytes", "filter_policy",
    "prefix_extractor"}.
    """
    found = lsmkv.bulk.versions(url, options=store_options(url))
    if as_json:
        write_json([_fields(version) for version in found], indent=2)
        return
    if not found:
        say(f"{url}: no version was published here")
        return
    width = shutil.get_terminal_size().columns if stdout_is_terminal() else None
    for line in table([_HEADINGS, *map(_row, found)], width):
        write_line(line)


@guarded
def prune(
    url: Url,
    keep: int = option(2, "N", "The number of newest versions to keep.", min=1),
    grace: float = option(24.0, "HOURS", "Keep what is younger than this.", min=0),
    dry_run: bool = flag("Only print what would be removed.", "--dry-run"),
    as_json: AsJson = False,
) -> None:
    """Remove old versions of a shard set, and the files that no other version needs.

    It also removes the files of killed builds. HOURS must be longer than a build takes, and than
    a reader keeps an old version open.

    JSON: "url", "dry_run", "versions" (removed) and "kept_versions", "objects" (names of the files
    removed) and "kept_objects" (a number), "bytes" (removed).
    """
    pruned = lsmkv.bulk.prune(
        url, keep=keep, grace=grace * 3600, dry_run=dry_run, options=store_options(url)
    )
    if as_json:
        write_json({"url": url, "dry_run": dry_run} | pruned._asdict())
        return
    kept = f"kept {_numbers(pruned.kept_versions)}, {count(pruned.kept_objects, 'object')}"
    gone = f"{_numbers(pruned.versions)}, {count(len(pruned.objects), 'object')}"
    write_line(f"{'would remove' if dry_run else 'removed'} {gone}, {size(pruned.bytes)}")
    write_line(kept)


@guarded
def diff(
    url: Url,
    a: Annotated[int | None, argument("[A]", "A version; the one before B.", min=1)] = None,
    b: Annotated[int | None, argument("[B]", "Another version; the newest one.", min=1)] = None,
    keys_only: bool = flag("Without the values.", "--keys-only"),
    limit: int | None = option(None, "N", "Stop after N differences.", min=1),
    quiet: bool = flag("Print nothing: the exit status is the answer.", "--quiet", "-q"),
    stats: bool = flag("Print on stderr how many keys differ.", "--stats"),
    is_hex: Hex = False,
    as_json: bool = flag("An object for each difference, and a summary.", "--json"),
) -> None:
    """Print how two versions differ; exit with 0 if they do not, with 1 if they do.

    Lines are those of 'diff', where A is the older version: '- KEY VALUE' was removed, '+ KEY
    VALUE' added, '! KEY OLD NEW' changed. Shards that both versions have are not read.

    JSON: the lines of 'diff'; then {"summary": {"url", "a", "b", "only_a", "only_b", "changed",
    "complete"}}.
    """
    options = store_options(url)
    older, newer = versions_to_compare(url, a, b, options=options)
    with (
        progress("Comparing", "key") as bar,
        closing(lsmkv.bulk.diff(url, older, newer, options=options, advance=bar.advance)) as found,
    ):
        form = Form(keys_only, is_hex, as_json, quiet)
        counts, complete = print_differences(map(_difference, found), form, 1 if quiet else limit)
    if as_json and not quiet:
        about = {"url": url, "a": older, "b": newer}
        write_json({"summary": about | counts | {"complete": complete}})
    if stats:
        say_counts(counts, complete)
    sys.stdout.flush()
    if any(counts.values()):
        raise typer.Exit(MISS)


def table(rows: list[tuple[str, ...]], width: int | None) -> list[str]:
    """Rows as lines whose columns stand below each other; closer, and then cut, if too wide.

    >>> print("\\n".join(table([_HEADINGS, ("1", "2026-11-26 11:20", "4", "200", "9 B", "b")], 80)))
    version  published (UTC)   shards  pairs  size  build
          1  2026-11-26 11:20       4    200   9 B  b
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    fits = width is None or sum(widths) + 2 * (len(widths) - 1) <= width
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.ljust(wide) if at in _LEFT else cell.rjust(wide)
            for at, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        line = ("  " if fits else " ").join(cells).rstrip()
        lines.append(line if width is None else line[:width])
    return lines


def _row(version: VersionDocument) -> tuple[str, ...]:
    return (
        str(version.number),
        version.created[:16].replace("T", " "),
        f"{len(version.shards):,}",
        f"{version.pairs:,}",
        size(version.bytes),
        printable(version.build),
    )


def _fields(version: VersionDocument) -> dict[str, object]:
    return {
        "version": version.number,
        "created": version.created,
        "build": version.build,
        "shards": len(version.shards),
        "pairs": version.pairs,
        "bytes": version.bytes,
        "filter_policy": version.filter_policy,
        "prefix_extractor": version.prefix_extractor,
    }


def _numbers(numbers: tuple[int, ...]) -> str:
    """Name versions in a message.

    >>> _numbers(()), _numbers((4,)), _numbers((1, 2, 3, 7))
    ('no version', 'version 4', 'versions 1 to 3, 7')
    """
    if not numbers:
        return "no version"
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    listed = ", ".join(" to ".join(map(str, span)) for span in spans)
    return f"version{'' if len(numbers) == 1 else 's'} {listed}"


def _difference(change: PairChange) -> Difference:
    return Difference(change.key, change.old, change.new)
