"""The commands for stores that may be damaged: verify and repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import typer

import lsmkv
from lsmkv.files.repair import (
    DAMAGED,
    REMARKABLE,
    SOUND,
    FileSurvey,
    Hole,
    LogSurvey,
    ManifestSurvey,
    Problem,
    Survey,
    TableSurvey,
    acknowledge_lost,
    survey_db,
)
from lsmkv.tools.arguments import Stored, is_shard_set, order_options, refuse_order
from lsmkv.tools.console import guarded, say, write_folded, write_json, write_line
from lsmkv.tools.drawing import progress
from lsmkv.tools.options import flag, option
from lsmkv.tools.shard_findings import WORDS, shards_data, write_shards
from lsmkv.tools.shard_repair import repair_shards
from lsmkv.tools.shard_sets import open_shards
from lsmkv.tools.text import as_argument, count, escape, printable, size

REMARKS = 1
DAMAGE = 3
"""Exit statuses of ``verify``, besides 0 and, for a store that could not be checked, 2."""

_STATUS = {SOUND: 0, REMARKABLE: REMARKS, DAMAGED: DAMAGE}


@guarded
def verify(
    directory: Stored,
    as_json: bool = flag("The findings as JSON.", "--json"),
    quiet: bool = flag("Only files with damage or remarks.", "--quiet", "-q"),
    acknowledge: bool = flag(
        "First acknowledge the logs in lost/: they no longer count as damage.", "--acknowledge"
    ),
) -> None:
    """Read every byte that DIR's data depends on, and print what is wrong and where.

    Every block of every table and every record of every log and MANIFEST is checked: checksums,
    order, and what the MANIFEST states. Nothing is written and no lock is taken. DIR may be open
    elsewhere: one version of it is verified. A log that an opening has set aside in lost/, because
    it is damaged, is named until it is acknowledged. Of a shard set, every object of the newest
    version is fetched, and compared with the size and SHA-256 that the version states.

    Exit status: 0 all is sound; 1 nothing is damaged, but there are remarks (a write cut short by a
    crash, zeros where writes may have been, files left over); 3 data is damaged or missing; 2 it
    could not be checked.

    JSON: "path", "verdict", "files": each "name", "bytes", "verdict", "level", "blocks",
    "entries", "problems" ("offset", "bytes", "missing" (bytes that the file lacks), "reason",
    "after", "to": the keys lost), "remarks". Of a shard set: "path", "version", "verdict",
    "shards": each "shard", "path", "first", "pairs", "verdict", "problems", "files".
    """
    if is_shard_set(directory):
        _verify_shards(directory, as_json, quiet)
    if acknowledge:
        for name in acknowledge_lost(directory):
            say(f"acknowledged: {printable(name)}")
    with progress("Verifying", "byte") as bar:
        found = survey_db(directory, progress=bar.report, **order_options())
    if as_json:
        write_json(_as_data(found), indent=2)
    else:
        _write_findings(found, quiet)
    raise typer.Exit(_STATUS[found.severity])


def _verify_shards(url: str, as_json: bool, quiet: bool) -> NoReturn:
    refuse_order()
    with open_shards(url) as shards, progress("Verifying", "byte") as bar:
        found = shards.verify(bar.report)
    if as_json:
        write_json(shards_data(url, found, _file_data), indent=2)
    else:
        write_shards(found, quiet, _write_file)
    raise typer.Exit(_STATUS[found.severity])


@guarded
def repair(
    directory: Stored,
    into: str | None = option(
        None, "NEW", "Make the sound store here; DIR is unchanged.", "--into"
    ),
    in_place: bool = flag("Repair DIR itself; replaced files go to its lost/.", "--in-place"),
    plan_only: bool = flag("Only print what would be kept and what is lost.", "--plan"),
    keep_stale: bool = flag(
        "Keep entries that what is lost may have overwritten or deleted.", "--keep-stale"
    ),
    merge_all: bool = flag(
        "Use every table and log there is, merged by sequence, as LevelDB's repair does.",
        "--merge-all",
    ),
    as_json: bool = flag("The plan as JSON.", "--json"),
) -> None:
    """Make a sound store of what can be read of DIR; print the plan first, or alone.

    Without --into and --in-place nothing is written. If the MANIFEST can be read, tables stay on
    their levels, and no obsolete table restores deleted keys. Entries that a lost block may
    have overwritten or deleted are set aside in lost/, since they may be out of date.

    Of a shard set, NEW is another set: its sound shards as they are, and those that are damaged
    with the pairs that can be read.

    JSON: "path", "needed", "manifest", "by_levels", "tables" ("file", "level", "action", "reason",
    "entries", "stale", "lost"), "logs", "problems", "lost_bytes", "missing_bytes" (those of them
    that no file has), "stale", "repaired" (where). Of a shard set: "path", "version", "needed",
    "shards": each "shard", "pairs" (in the version), "kept", "plan"; "repaired".
    """
    if into is not None and in_place:
        raise ValueError("give --into NEW or --in-place, not both")
    if is_shard_set(directory):
        refuse_order()
        if in_place or keep_stale or merge_all:
            raise ValueError("a version of a shard set never changes: give --into NEW alone")
        repair_shards(directory, None if plan_only else into, as_json)
        return
    if plan_only or (into is None and not in_place):
        with progress("Planning", "") as bar:
            plan = lsmkv.plan_repair(
                directory,
                keep_stale=keep_stale,
                merge_all=merge_all,
                progress=bar.report,
                **order_options(),
            )
        _write_plan(plan, None, as_json)
        if plan.needed and not as_json:
            _say_next(directory)
        return

    def show(plan: lsmkv.RepairPlan) -> bool:
        if not as_json:
            _write_plan(plan, None, False)
        return True

    with progress("Repairing", "") as bar:
        plan = lsmkv.repair_db(
            directory,
            into=into,
            keep_stale=keep_stale,
            merge_all=merge_all,
            confirm=show,
            progress=bar.report,
            **order_options(),
        )
    target = directory if into is None else into
    if as_json:
        _write_plan(plan, target, True)
    elif plan.needed or into is not None:
        write_line(f"repaired: {printable(target)}")
    else:
        write_line(f"left unchanged: {printable(target)}")


def _say_next(directory: str) -> None:
    """The commands that a plan leads to."""
    path = as_argument(directory)
    say("nothing was changed; one of these makes a sound store:")
    say(f"lsmkv repair {path} --into NEW    a new directory; this one stays as it is")
    say(f"lsmkv repair {path} --in-place    this one; replaced files go to its lost/")
    say(f"lsmkv rescue {path}               a copy, by the best of several ways")


def _write_plan(plan: lsmkv.RepairPlan, repaired: str | None, as_json: bool) -> None:
    if as_json:
        write_json(plan.to_dict() | {"repaired": repaired}, indent=2)
        return
    for line in _plan_text(plan):
        write_folded(printable(line), 4)


# Words


def _write_findings(found: Survey, quiet: bool) -> None:
    width = max(len(file.name) for file in found.files)
    for file in found.files:
        if quiet and file.severity == SOUND:
            continue
        _write_file(file, "", width)
    damaged = sum(file.severity == DAMAGED for file in found.files)
    if damaged:
        hint = "; --acknowledge leaves out those in lost/" if found.lost else ""
        write_line(f"{count(damaged, 'file')} damaged; see 'lsmkv repair --plan'{hint}")
    elif not quiet:
        write_line("no damage" if found.severity == REMARKABLE else "all is sound")


def _write_file(file: FileSurvey, indent: str, width: int = 0) -> None:
    """A line for the file, after ``indent``, and one for each finding."""
    start = f"{indent}{file.name:<{width}}  {WORDS[file.severity]:<7}  "
    write_folded(f"{start}{_in_words(file)}".rstrip(), len(start))
    for problem in file.problems:
        write_folded(f"{indent}    {_problem_text(problem)}", len(indent) + 6)
    for remark in file.remarks:
        write_folded(f"{indent}    {printable(remark)}", len(indent) + 6)


def _in_words(file: FileSurvey) -> str:
    if file.size < 0:
        return ""
    if isinstance(file, TableSurvey):
        level = f"level {file.level}, " if file.level >= 0 else ""
        blocks = count(file.blocks, "block")
        if file.holes:
            blocks = f"{file.blocks:,} of {count(file.blocks + len(file.holes), 'block')}"
        return f"{level}{blocks}, {count(file.entries, 'entry')}, {size(file.size)}"
    if isinstance(file, LogSurvey):
        batches = count(file.batches, "batch")
        return f"{count(file.operations, 'write')} in {batches}, {size(file.size)}"
    if isinstance(file, ManifestSurvey):
        return f"{count(file.records, 'record')}, {size(file.size)}"
    return ""


def _problem_text(problem: Problem) -> str:
    text = f"at {problem.offset}: {printable(problem.reason)}"
    if isinstance(problem, Hole):
        lower, upper = problem.user_range
        first = "the first key" if lower is None else f"'{escape(lower)}'"
        last = "the last key" if upper is None else f"'{escape(upper)}'"
        held = f"{size(problem.size)}"
        if problem.missing > 0:
            held += f" unreadable, {size(problem.missing)} missing"
        text += f"; {held}, keys from {first} to {last}"
    return text


def _plan_text(plan: lsmkv.RepairPlan) -> Iterator[str]:
    yield from str(plan).split("\n")
    used = [table for table in plan.tables if table.is_used]
    yield (
        f"kept: {count(plan.kept - plan.kept_writes, 'entry')} of {count(len(used), 'table')},"
        f" {count(plan.kept_writes, 'write')} of logs"
    )
    if plan.needed:
        lost = f"lost: {size(plan.lost_bytes)} of data blocks"
        if plan.missing_bytes > 0:
            lost += (
                f", {size(plan.missing_bytes)} of which is missing"
                " (counted with the index and filters of these tables)"
            )
        yield lost
    if plan.stale:
        most = plan.most_out_of_date
        some = "some of which may be" if most is None else f"of which at most {most:,} can be"
        yield f"set aside: {count(plan.stale, 'entry')} in lost/"
        other = f"the other way, --keep-stale: {count(plan.kept + plan.stale, 'entry')}"
        yield f"{other}, {some} out of date{' (recommended here)' if plan.better_kept else ''}"


def _as_data(found: Survey) -> dict[str, Any]:
    return {
        "path": found.path,
        "verdict": WORDS[found.severity].lower(),
        "files": [_file_data(file) for file in found.files],
    }


def _file_data(file: FileSurvey) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": file.name,
        "bytes": max(file.size, 0),
        "verdict": WORDS[file.severity].lower(),
    }
    if isinstance(file, TableSurvey):
        data |= {
            "level": file.level if file.level >= 0 else None,
            "blocks": file.blocks,
            "entries": file.entries,
        }
    elif isinstance(file, LogSurvey):
        data |= {"batches": file.batches, "entries": file.operations}
    elif isinstance(file, ManifestSurvey):
        data["records"] = file.records
    data["problems"] = [_problem_data(problem) for problem in file.problems]
    data["remarks"] = file.remarks
    return data


def _problem_data(problem: Problem) -> dict[str, Any]:
    data: dict[str, Any] = {
        "offset": problem.offset,
        "bytes": problem.size,
        "reason": problem.reason,
    }
    if isinstance(problem, Hole):
        lower, upper = problem.user_range
        data["missing"] = problem.missing
        data["after"] = None if lower is None else escape(lower)
        data["to"] = None if upper is None else escape(upper)
    return data
