"""The levels of a store as plain data: tables by level, size and key range, and any damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import lsmkv
from lsmkv.engine.db.tree.version import max_bytes_for_level
from lsmkv.engine.errors import CorruptionError, DirectoryReplacedError, Error
from lsmkv.engine.options import L0_COMPACTION_TRIGGER
from lsmkv.files import LEVELS, TableFile
from lsmkv.files.repair import FileSurvey, TableSurvey
from lsmkv.tools.inspect.background import HAS_THREADS
from lsmkv.tools.inspect.damage import describe, surveyed_effect
from lsmkv.tools.inspect.edits import NO_FLUSHED_TABLES
from lsmkv.tools.inspect.filters import filter_summary
from lsmkv.tools.inspect.memtables import memtable_facts
from lsmkv.tools.inspect.plain import Plain, grouped, shown_bytes, shown_file
from lsmkv.tools.inspect.saving import words_for_store
from lsmkv.tools.inspect.source import Check, SortKey, Source

MOST_PROBLEMS = 200
"""The most problems of one file in an answer."""

Listed = tuple[int, Plain, bytes, bytes]
"""A table: its level, what is shown of it, its smallest and its largest user key."""


def levels(source: Source) -> Plain:
    """Every table, level by level in the order of the level, and the findings of a survey.

    For a store that cannot be opened, this call begins a survey; until that is done there are no
    tables.  Where there are no threads it begins none, since the answer would wait for the end: the
    page has another worker for it.  Raises :class:`~lsmkv.errors.DirectoryReplacedError`.  O(tables
    log tables).
    """
    error = ""
    listed: list[Listed] = []
    facts: Plain = {}
    try:
        db = source.db()
        listed = listed_tables(db, source.shown_key)
        newest = (
            max((shown["number"], shown["name"]) for _, shown, *_ in listed) if listed else None
        )
        facts = {
            "comparator": db.options.comparator.name,
            "memtable": memtable_facts(source),
            "why": NO_FLUSHED_TABLES if listed and listed[0][0] > 0 else "",
        } | ({"filters": []} if newest is None else _filters(source, newest[1], listed))
    except DirectoryReplacedError:
        raise
    except Error as failure:
        error = describe(source, failure) if isinstance(failure, CorruptionError) else str(failure)
        if HAS_THREADS and source.check.survey is None and not source.check.error:
            source.start_check()
        listed = _surveyed(source)
        facts = {"comparator": source.comparator}
    check = source.check
    _add_problems(listed, check)
    return (
        {"path": source.path, "readable": not error, "error": error, "facts": facts}
        | in_levels(listed, source.order())
        | {"check": check_result(source)}
    )


def _filters(source: Source, name: str, listed: list[Listed]) -> Plain:
    """The filters of the newest table, or what filters would save if it has none."""
    facts = filter_summary(source, name)
    saving = facts.pop("saving", None)
    if saving is None:
        return facts
    flushed = sum(1 for level, *_ in listed if level == 0)
    deeper = len({level for level, *_ in listed if level > 0})
    total = sum(shown["size"] for _, shown, *_ in listed)
    return facts | {"saving": words_for_store(flushed + deeper, total, saving)}


def in_levels(listed: list[Listed], order: SortKey) -> Plain:
    """Tables for drawing: by level, each with its position on a common axis of keys.

    ``from`` and ``to`` are that place, between 0 and 1: the share of all bytes before its first key
    and up to its last one, where a table's bytes lie evenly between the keys that others begin or
    end with.
    """
    places = _places(listed, order)
    deepest = max((level for level, *_ in listed), default=0)
    by_level: list[list[Plain]] = [[] for _ in range(max(LEVELS, deepest + 1))]
    for level, shown, smallest, largest in listed:
        shown["from"] = round(places[smallest], 6)
        shown["to"] = round(places[largest], 6)
        by_level[level].append(shown)
    described = [_level(level, tables) for level, tables in enumerate(by_level)]
    return {
        "levels": described,
        "tables": len(listed),
        "bytes": sum(level["bytes"] for level in described),
    }


def _places(listed: list[Listed], order: SortKey) -> dict[bytes, float]:
    """The place of each table's first and last key on the axis of keys.  O(tables log tables)."""
    edges = sorted({key for _, _, *both in listed for key in both}, key=order)
    rank = {edge: at for at, edge in enumerate(edges)}
    changes = [0.0] * (len(edges) + 1)  # of the weight from one edge to the next
    for _, shown, smallest, largest in listed:
        begin, end = rank[smallest], rank[largest]
        share = shown["size"] / max(1, end - begin)
        changes[begin] += share
        changes[end] -= share
    places: dict[bytes, float] = {}
    weight = before = 0.0
    for edge, change in zip(edges, changes, strict=False):
        places[edge] = before
        weight += change
        before += max(weight, 1.0)  # no two keys at one place
    last = max(places.values(), default=0.0) or 1.0
    return {edge: place / last for edge, place in places.items()}


def listed_tables(db: lsmkv.DB, show: Callable[[bytes], Plain] = shown_bytes) -> list[Listed]:
    """The tables of an open store, for :func:`in_levels`; ``show`` is for their keys."""
    listed: list[Listed] = []
    for table in db.tables():
        shown: Plain = {"name": table.name, "number": table.number, "size": table.size}
        shown["smallest"] = show(table.smallest)
        shown["largest"] = show(table.largest)
        listed.append((table.level, shown, table.smallest, table.largest))
    return listed


def listed_files(files: Iterable[tuple[int, TableFile]], source: Source) -> list[Listed]:
    """Tables of the MANIFEST, for :func:`in_levels`."""
    name_of = source.table_namer()
    show = source.shown_key
    return [
        (level, shown_file(file, name_of(file.number), show), *_range(file))
        for level, file in files
    ]


def check_result(source: Source) -> Plain:
    """The progress of the survey and its findings; ``older`` if the store has since changed."""
    check = source.check
    survey = check.survey
    found = [] if survey is None else [file for file in survey.files if file.severity > 0]
    return {
        "state": "running" if check.running else "none" if survey is None else "done",
        "done": check.done,
        "total": check.total,
        "error": check.error,
        "time": check.time,
        "older": survey is not None and check.change != source.change,
        "damaged": 0 if survey is None else sum(1 for file in found if file.severity > 1),
        "files": [_findings(file) for file in found],
    }


def _level(level: int, tables: list[Plain]) -> Plain:
    size = sum(table["size"] for table in tables)
    if level == 0:
        limit = f"{L0_COMPACTION_TRIGGER} tables"
        score = len(tables) / L0_COMPACTION_TRIGGER
    elif level < LEVELS - 1:
        limit = f"{max_bytes_for_level(level)} bytes"
        score = size / max_bytes_for_level(level)
    else:
        limit, score = "none", 0.0
    facts: dict[str, Any] = {"level": level, "files": len(tables), "bytes": size}
    return facts | {"limit": limit, "score": round(score, 3), "tables": tables}


def _surveyed(source: Source) -> list[Listed]:
    survey = source.check.survey
    if survey is None or survey.manifest is None:
        return []
    stated = [(level, one) for level, files in enumerate(survey.manifest.levels()) for one in files]
    order = source.order()
    newest_first = sorted((one for one in stated if one[0] == 0), key=lambda one: -one[1].number)
    deeper = [one for one in stated if one[0] > 0]
    deeper.sort(key=lambda one: order(one[1].smallest.user_key))
    return listed_files(newest_first + deeper, source)


def _range(file: TableFile) -> tuple[bytes, bytes]:
    return file.smallest.user_key, file.largest.user_key


def _add_problems(listed: list[Listed], check: Check) -> None:
    if check.survey is None:
        return
    known = {table.number: table for table in check.survey.tables}
    for _, shown, *_ in listed:
        table = known.get(shown["number"])
        if table is not None and table.problems:
            shown["problems"] = len(table.problems)


def _effects(file: FileSurvey) -> list[str]:
    """Return the effects of a table's problems on reads, without repetitions."""
    if not isinstance(file, TableSurvey):
        return []
    found = [surveyed_effect(one.reason, one.offset, file.size) for one in file.problems]
    return list(dict.fromkeys(found))


def _findings(file: FileSurvey) -> Plain:
    return {
        "name": file.name,
        "size": file.size,
        "damaged": file.severity > 1,
        "problems": [
            {"offset": problem.offset, "bytes": problem.size, "reason": grouped(problem.reason)}
            for problem in file.problems[:MOST_PROBLEMS]
        ],
        "effects": _effects(file),
        "more": max(0, len(file.problems) - MOST_PROBLEMS),
        "remarks": [grouped(remark) for remark in file.remarks[:MOST_PROBLEMS]],
    }
