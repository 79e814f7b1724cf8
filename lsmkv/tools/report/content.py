"""The content of a report: the views' data, in windows, so that the file stays small.

All tables up to some thousands; the anatomy of the largest and the damaged ones, with the bytes of
a few of their blocks and a filter of each; Gets of keys that are there and of keys near them that
are not; a replay of some Gets under other filters; the last edits of the MANIFEST; and a recorded
run of the scratch store.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
from collections.abc import Callable, Iterator

import lsmkv
from lsmkv.engine.errors import CorruptionError, Error
from lsmkv.tools.inspect.anatomy import can_be_opened
from lsmkv.tools.inspect.api import Api
from lsmkv.tools.inspect.history import WINDOW
from lsmkv.tools.inspect.plain import SHOWN, NotThereError, Plain
from lsmkv.tools.inspect.replays import Question
from lsmkv.tools.report.page import Answer
from lsmkv.tools.text import shown

MOST_BYTES = 2_400_000
"""Bytes of JSON in a report; its scripts and styles add 0.4 MB."""
MOST_TABLES = 3000
_ANATOMIES = 10
_BLOCKS = 1  # data blocks of each of these, besides the index and so on
_WINDOWS = 5
_GETS = 12
_SEED = 1
_REPLAYED = 1000  # Gets
_REPLAYED_BYTES = 32 << 20  # of a store whose Gets are replayed
_STRIDE = 40  # a Get asks for one of the first keys of a table


class Content:
    """Gathers the answers; what no longer fits is left out, least important last."""

    def __init__(self, api: Api, keys: list[bytes]) -> None:
        """``keys`` are Gets to include before those that the report chooses."""
        self._api = api
        self._keys = keys
        self._size = 0
        self.answers: list[Answer] = []

    def gather(self, report: Callable[[str], None]) -> list[Answer]:
        """The answers.  ``report`` is called with what is read next.

        A store that cannot be opened, or one of whose tables cannot, is surveyed, which costs
        O(size of the store).
        """
        report("levels")
        levels = self._levels()
        report("the MANIFEST")
        self._history()
        report("Gets")
        self._gets(levels)
        report("a replay")
        self._replay()
        report("tables")
        self._tables(levels)
        report("the write path")
        self._scratch()
        return self.answers

    def _add(self, view: str, query: dict[str, str], answer: Plain | None = None) -> Plain | None:
        """Add an answer if it fits and if there is one; None if not."""
        if answer is None:
            try:
                answer = self._api.answer(view, query)
            except (NotThereError, Error, OSError):
                return None  # gone, or too damaged: the levels report it
        size = len(json.dumps(answer)) + 100
        if self.answers and self._size + size > MOST_BYTES:
            return None
        self._size += size
        self.answers.append(Answer(view, query, answer))
        return answer

    def _levels(self) -> Plain:
        levels = self._api.answer("levels", {})
        if not levels["readable"] or self._lacks_a_table(levels):
            self._api.source.finish_check()
            levels = self._api.answer("levels", {})
        left = MOST_TABLES
        for level in levels["levels"]:
            tables = level["tables"]
            level["left_out"] = max(0, len(tables) - left)
            level["tables"] = tables[:left]
            left -= len(level["tables"])
        self._add("levels", {}, levels)
        self._add("memtable", {})
        return levels

    def _lacks_a_table(self, levels: Plain) -> bool:
        """True if a table cannot be opened; this starts a survey.  Reads two blocks of each."""
        source = self._api.source
        for level in levels["levels"]:
            for table in level["tables"]:
                if not can_be_opened(source, table["name"]):
                    source.start_check()
                    return True
        return False

    def _history(self) -> None:
        try:
            history = self._api.history()
        except NotThereError:
            return
        while not history.summary()["complete"]:
            history.wait(None, 1.0)
        summary = history.summary()
        starts = list(range(0, summary["edits"], WINDOW))[-_WINDOWS:]
        held: list[int] = []
        for start in reversed(starts):
            if self._add("history/window", {"from": str(start)}) is None:
                break
            held.append(start)
        summary["first"] = min(held, default=0)
        self._add("history", {}, summary)

    def _gets(self, levels: Plain) -> None:
        for key in [*self._keys, *self._sampled(levels)]:
            if len(key) <= SHOWN:
                self._add("get", {"key": shown(key, False)})

    def _sampled(self, levels: Plain) -> list[bytes]:
        """Keys of the store, and a near miss of each: the key with another end."""
        if not levels["readable"]:
            return []
        db = self._api.source.db()
        rng = random.Random(_SEED)
        edges = [table.smallest for table in db.tables()]
        starts = rng.sample(edges, min(_GETS, len(edges)))
        found: list[bytes] = []
        for start in starts:
            steps = rng.randrange(_STRIDE)
            with contextlib.suppress(CorruptionError):  # the levels report it
                found += _neighbors(db, start, steps)
        return found

    def _tables(self, levels: Plain) -> None:
        tables = [table for level in levels["levels"] for table in level["tables"]]
        tables.sort(key=lambda table: (-table.get("problems", 0), -table["size"]))
        one_of_each = [level["tables"][0] for level in levels["levels"] if level["tables"]]
        chosen = {table["name"]: None for table in one_of_each + tables[:_ANATOMIES]}
        for name in chosen:
            table = self._add("table", {"name": name})
            if table is not None:
                self._add("filter", {"name": name, "n": "0"})
                for offset in _chosen_parts(table):
                    self._add("block", {"name": name, "offset": str(offset)})

    def _replay(self) -> None:
        """The lab's replay, or why there is none."""
        replays = self._api.replays
        replays.start(Question(gets=_REPLAYED), _REPLAYED_BYTES)
        replays.finish()
        self._add("replay", {})

    def _scratch(self) -> None:
        """A run that shows each part of the write path."""
        scratch = self._api.scratch()
        for key, value in ((b"ant", b"six legs"), (b"bee", b"wings"), (b"ant", b"still six legs")):
            scratch.put(key, value)
        scratch.delete(b"bee")
        for _ in range(12):
            scratch.fill(8)
        scratch.compact()
        self._add("scratch", {})


def _neighbors(db: lsmkv.DB, start: bytes, steps: int) -> list[bytes]:
    """The key ``steps`` after ``start``, and a near miss of it; [] if there is none."""
    with db.iterator(start=start, include_value=False, fill_cache=False) as keys:
        for key in itertools.islice(keys, steps, steps + 1):
            miss = key[:-1] + bytes(byte ^ 1 for byte in key[-1:])
            return [key, key + b"~" if miss in db else miss]
    return []


def _chosen_parts(table: Plain) -> Iterator[int]:
    """Yield the offsets of the parts to include: some of each kind, and damaged ones."""
    seen: dict[str, int] = {}
    for part in table["parts"]:
        kind = part["kind"]
        seen[kind] = seen.get(kind, 0) + 1
        if kind != "unknown" and (seen[kind] <= _BLOCKS or "problem" in part):
            yield part["offset"]
