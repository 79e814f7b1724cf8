"""Output of ``lsmkv verify`` for a shard set: a line for each shard, and its files if needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsmkv.files.repair import DAMAGED, REMARKABLE, SOUND, FileSurvey
from lsmkv.shards import ShardSurvey, VersionSurvey
from lsmkv.tools.console import write_folded, write_line
from lsmkv.tools.text import count, escape, printable, size

WORDS = {SOUND: "ok", REMARKABLE: "remark", DAMAGED: "DAMAGED"}
"""The verdicts."""


def write_shards(
    found: VersionSurvey, quiet: bool, write_file: Callable[[FileSurvey, str], None]
) -> None:
    """Print the findings; ``write_file`` prints those of a file, after some spaces."""
    document = found.document
    if not quiet:
        shards = count(len(found.shards), "shard")
        summary = f"version {document.number}: {shards}, {count(document.pairs, 'pair')}"
        write_line(f"{summary}, {size(document.bytes)}")
    width = len(str(len(found.shards)))
    for shard in found.shards:
        if quiet and shard.severity == SOUND:
            continue
        start = f"shard {shard.number:>{width}}  {WORDS[shard.severity]:<7}  "
        write_folded(f"{start}{_in_words(shard)}", len(start))
        for problem in shard.problems:
            write_folded(f"    {printable(problem)}", 6)
        for file in shard.files:
            if file.severity != SOUND:
                write_file(file, "    ")
    damaged = sum(shard.severity == DAMAGED for shard in found.shards)
    if damaged:
        write_line(f"{count(damaged, 'shard')} damaged; see 'lsmkv repair'")
    elif not quiet:
        write_line("no damage" if found.severity == REMARKABLE else "all is sound")


def _in_words(shard: ShardSurvey) -> str:
    if shard.severity != SOUND:
        return printable(shard.entry.path)
    held = sum(max(file.size, 0) for file in shard.files)
    entries = sum(table.entries for table in shard.tables)
    tables = count(len(shard.tables), "table")
    return f"{tables}, {count(entries, 'pair')}, {size(held)}"


def shards_data(
    path: str, found: VersionSurvey, file_data: Callable[[FileSurvey], dict[str, Any]]
) -> dict[str, Any]:
    """The findings for JSON."""
    return {
        "path": path,
        "version": found.document.number,
        "verdict": WORDS[found.severity].lower(),
        "shards": [
            {
                "shard": shard.number,
                "path": shard.entry.path,
                "first": escape(shard.entry.first),
                "pairs": shard.entry.pairs,
                "verdict": WORDS[shard.severity].lower(),
                "problems": list(shard.problems),
                "files": [file_data(file) for file in shard.files],
            }
            for shard in found.shards
        ],
    }
