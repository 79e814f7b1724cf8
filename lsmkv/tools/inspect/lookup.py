"""A Get as a list of steps, with the blocks read so far, with and without filters.

The steps are those of ``DB.explain``: memtables, then every table whose range covers the key, and
in a table the index, the filters and the data block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from lsmkv import Explanation
from lsmkv.engine.db.handles.steps import KeyVersion, TableStep
from lsmkv.tools.inspect.plain import NotThereError, Plain, shown_bytes
from lsmkv.tools.inspect.saving import entries_in, words_for_get
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import count, size

SAVED, READ, WASTED, PLAIN = "saved", "read", "wasted", "plain"
"""The cost of a step: a block not read, one read, a wasted read, or none of these."""


def lookup(source: Source, key: bytes) -> Plain:
    """The steps of a Get of ``key`` in the store as of its last write.

    ``saving`` says what filters would save if some of the tables have none; otherwise it is "".
    """
    explained = source.db().explain(key)
    return lookup_steps(explained, source.shown_key) | {"saving": _saving(source, explained)}


def _saving(source: Source, explained: Explanation) -> str:
    """Describe the savings of filters; empty if each table that was asked has one."""
    bare = [table for table in explained.tables if table.block is not None and not table.filters]
    bare = [table for table in bare if table.asked]
    if not bare:
        return ""
    entries = 0
    for table in bare:
        with contextlib.suppress(NotThereError), source.open_table(table.name) as file:
            entries += entries_in(file)
    wasted = sum(1 for table in bare if table.wasted)
    return words_for_get(explained.blocks_searched, wasted, len(bare), entries)


def lookup_steps(explained: Explanation, show: Callable[[bytes], Plain] = shown_bytes) -> Plain:
    """The steps of an explanation, its answer and its totals; ``show`` is for keys.

    Each step has ``with`` and ``without``: the data blocks that were searched up to and including
    it, with the store's filters and without any.
    """
    steps = _Steps()
    for name in explained.memtables:
        steps.add("memtable", name, _memtable_words(explained, name))
    for table in explained.tables:
        _table_steps(steps, table, show)
    steps.add("answer", answer_of(explained), _outlook(explained))
    return {
        "key": show(explained.key),
        "found": explained.found,
        "answer": answer_of(explained),
        "chosen": None if explained.chosen is None else _version(explained.chosen),
        "hidden": [_version(version) for version in explained.shadowed],
        "missed": [_version(version) for version in explained.missed],
        "row_cached": explained.at_hand,
        "tables": [_table(table, show) for table in explained.tables],
        "steps": steps.steps,
        "totals": {
            "searched": explained.blocks_searched,
            "read": explained.blocks_read,
            "bytes_read": explained.bytes_read,
            "without": explained.blocks_without_filters,
            "bytes_without": explained.bytes_without_filters,
        },
    }


class _Steps:
    """The steps so far, and the blocks that they searched."""

    def __init__(self) -> None:
        self.steps: list[Plain] = []
        self._searched = 0
        self._without = 0

    def add(
        self,
        kind: str,
        title: str,
        detail: str,
        *,
        table: TableStep | None = None,
        tone: str = PLAIN,
        searched: int = 0,
        without: int = 0,
        facts: Plain | None = None,
    ) -> None:
        """Append a step, and count its blocks."""
        self._searched += searched
        self._without += without
        step: Plain = {"kind": kind, "title": title, "detail": detail, "tone": tone}
        if table is not None:
            step |= {"table": table.name, "level": table.level}
        self.steps.append(step | (facts or {}) | {"with": self._searched, "without": self._without})


def _table_steps(steps: _Steps, table: TableStep, show: Callable[[bytes], Plain]) -> None:
    where = f"level {table.level}, {table.name}"
    if not table.asked:
        steps.add("table", where, "not asked: the answer is already known", table=table)
        return
    if table.index_key is None:
        steps.add("index", f"{where}: index", table.verdict, table=table)
        return
    index_key = show(table.index_key)
    detail = "names the data block up to the separator"
    steps.add("index", f"{where}: index", detail, table=table, facts={"index_key": index_key})
    for step in table.filters:
        verdict = "maybe: the block is searched" if step.may_match else "no: no block is searched"
        per = "2 KiB of the file" if step.layout == "block" else "the table"
        steps.add(
            "filter",
            f"{where}: filter for {per}",
            verdict,
            table=table,
            tone=PLAIN if step.may_match else SAVED,
            without=0 if step.may_match else 1,
            facts={
                "filter": {
                    "layout": step.layout,
                    "policy": step.policy,
                    "bytes": step.size,
                    "positions": list(step.positions),
                    "slots": list(step.slots),
                    "slot_values": list(step.slot_values),
                    "fingerprint": step.fingerprint,
                    "may_match": step.may_match,
                }
            },
        )
    if table.block is None:
        return
    block = table.block
    wasted = table.verdict != "found"
    how = f"{size(block.bytes_read)} from the file" if block.bytes_read else block.source()
    steps.add(
        "block",
        f"{where}: data block at {block.offset:,}",
        f"{how}: {table.verdict}",
        table=table,
        tone=WASTED if wasted else READ,
        searched=1,
        without=1,
        facts={"block": {"offset": block.offset, "size": block.size, "codec": block.compression}},
    )


def _memtable_words(explained: Explanation, name: str) -> str:
    chosen = explained.chosen
    if chosen is None or chosen.where != name:
        return "it does not have the key"
    what = "a deletion" if chosen.deleted else count(chosen.value_size, "byte")
    return f"it has the key: {what}, write {chosen.sequence:,}"


def answer_of(explained: Explanation) -> str:
    """Describe the answer of a Get."""
    if explained.chosen is None:
        return "not there"
    if explained.chosen.deleted:
        return f"deleted by write {explained.chosen.sequence:,}"
    return (
        f"found: {count(explained.chosen.value_size, 'byte')}, write {explained.chosen.sequence:,}"
    )


def _outlook(explained: Explanation) -> str:
    """Describe the blocks that the Get read, and those that it would read without filters."""
    read, without = explained.blocks_searched, explained.blocks_without_filters
    if read == without:
        if not read:
            return "no data block was searched, with or without filters"
        return f"{count(read, 'data block')} searched, as many as without filters"
    return f"{count(read, 'data block')} searched; without filters {without:,}"


def _table(table: TableStep, show: Callable[[bytes], Plain]) -> Plain:
    return {
        "level": table.level,
        "name": table.name,
        "size": table.size,
        "smallest": show(table.smallest),
        "largest": show(table.largest),
        "asked": table.asked,
        "verdict": table.verdict,
    }


def _version(version: KeyVersion) -> Plain:
    return {
        "where": version.where,
        "sequence": version.sequence,
        "deleted": version.deleted,
        "value_size": version.value_size,
    }
