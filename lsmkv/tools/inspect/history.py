"""The life of a tree: an index of its MANIFEST, which is a log of version edits.

One pass in a thread notes where each edit is and what it wrote, and keeps the state after every 200
edits, or more where there are many tables: what is kept stays in proportion to the file.  So any
window of 200 edits, and the state at any step, costs the reading of some hundred edits, however
long the MANIFEST is.  The edits themselves stay in the file, which is kept open: a writer may
remove it.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator

from lsmkv.files import Damage, Edit, TableFile, VersionBuilder
from lsmkv.tools.inspect.background import Work
from lsmkv.tools.inspect.edits import change_of, why, words_for
from lsmkv.tools.inspect.levels import in_levels, listed_files
from lsmkv.tools.inspect.plain import NotThereError, Plain, grouped, shown_file
from lsmkv.tools.inspect.source import Source

WINDOW = 200
"""Edits of one window."""
_CURVE_POINTS = 800
_TABLES_PER_CHANGE = 5  # of a state that is kept, for each change that it spares a replay
_BREATH = 0.0005  # seconds between windows, in which questions are answered

Files = tuple[tuple[int, TableFile], ...]
"""The tables of a state, each with its level."""


class History:
    """The index of one MANIFEST, for any number of threads.  :meth:`close` ends the pass."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name = source.manifest_name()
        self._files = [source.open_manifest(self.name)]
        self._offsets = array("q")
        self._flushed = array("q")  # bytes up to and including each edit
        self._compacted = array("q")
        self._tables = array("q")
        self._kept: list[Files] = []  # states
        self._kept_at = array("q")  # the edit before which each of them was
        self._changes = 0  # tables added and removed since the last of them
        self._levels = VersionBuilder()  # after the last edit that is known
        self._end = 0  # where that edit's record ends
        self._damage: list[Plain] = []
        self._complete = False
        self._closing = False
        self._progress = threading.Condition()
        self._begin()

    def close(self) -> None:
        """Stop the pass, and close the file."""
        self._closing = True
        self._work.join()
        for file in self._files:
            file.close()

    def grow(self) -> None:
        """Read on, in a thread, if the pass is over and a writer has added edits since."""
        if not self._complete or self._source.directory.size(self.name) == self._files[-1].size:
            return
        self._files.append(self._source.open_manifest(self.name))
        while len(self._files) > 2:  # a question may be reading the one before
            self._files.pop(0).close()
        self._damage = [one for one in self._damage if one["offset"] < self._end]
        self._complete = False
        self._begin()

    def _begin(self) -> None:
        self._work = Work(self._index, "lsmkv-history")

    def wait(self, edits: int | None = None, seconds: float = 1.0) -> int:
        """Wait until that many edits are known, or all.  Returns how many are known."""
        with self._progress:
            self._progress.wait_for(
                lambda: self._complete or (edits is not None and self._known >= edits), seconds
            )
            return self._known

    @property
    def _known(self) -> int:
        return len(self._tables)

    def summary(self) -> Plain:
        """Return the number of edits, and the total written at some hundreds of them.

        While the pass runs ``complete`` is false, and ``edits`` grows.
        """
        known = self._known
        every = max(1, -(-known // _CURVE_POINTS))
        steps = list(range(0, known, every))
        if known and steps[-1] != known - 1:
            steps.append(known - 1)
        return {
            "manifest": self.name,
            "size": self._files[-1].size,
            "edits": known,
            "complete": self._complete,
            "window": WINDOW,
            "damage": self._damage[:WINDOW],
            "curve": {
                "steps": steps,
                "flushed": [self._flushed[step] for step in steps],
                "compacted": [self._compacted[step] for step in steps],
                "tables": [self._tables[step] for step in steps],
            },
        }

    def window(self, first: int) -> Plain:
        """At most 200 edits from ``first`` on, and the tables before them.

        Raises ``NotThereError`` if the edit does not exist, or is not known yet.
        """
        state, edits = self._replay(first, WINDOW)
        before = state.files
        name_of = self._source.table_namer()
        steps = []
        for number, edit in enumerate(edits, first):
            steps.append(self._step(number, edit, state, name_of))
            state.apply(edit)
        return {
            "first": first,
            "edits": steps,
            "before": [
                {"level": at} | shown_file(file, name_of(file.number), self._source.shown_key)
                for at, file in before
            ],
        }

    def state(self, step: int) -> Plain:
        """The levels after an edit.  Raises ``NotThereError`` as :meth:`window` does."""
        state, edits = self._replay(step, 1)
        shown = self._step(step, edits[0], state, self._source.table_namer())
        state.apply(edits[0])
        listed = listed_files(state.files, self._source)
        return {"step": step, "edit": shown} | in_levels(listed, self._source.order())

    def _step(
        self, number: int, edit: Edit, before: VersionBuilder, name_of: Callable[[int], str]
    ) -> Plain:
        change = change_of(edit, number == 0)
        flushed, compacted = self._flushed[number], self._compacted[number]
        return {
            "step": number,
            "offset": self._offsets[number],
            "kind": change.kind,
            "words": words_for(edit, change),
            "why": why(edit, change),
            "log_number": edit.log_number,
            "last_sequence": edit.last_sequence,
            "written": change.flushed + change.compacted,
            "flushed_so_far": flushed,
            "compacted_so_far": compacted,
            "write_amplification": round((flushed + compacted) / flushed, 3) if flushed else None,
            "removed": [
                {"level": level, "number": file}
                for level, file in edit.deleted_files
                if (level, file) in before
            ],
            "added": [
                {"level": level} | shown_file(file, name_of(file.number), self._source.shown_key)
                for level, file in edit.new_files
            ],
        }

    def _replay(self, first: int, count: int) -> tuple[VersionBuilder, list[Edit]]:
        """The tables before an edit, and ``count`` edits from it on."""
        known = self._known
        if not 0 <= first < known:
            more = "" if self._complete else " yet"
            raise NotThereError(f"there is no edit {first:,}{more}: {known:,} are known")
        nearest = bisect_right(self._kept_at, first) - 1
        begin = self._kept_at[nearest]
        state = VersionBuilder(self._kept[nearest])
        edits: list[Edit] = []
        for at, edit in enumerate(self._edits_from(begin), begin):
            if at < first:
                state.apply(edit)
            else:
                edits.append(edit)
            if at + 1 >= min(first + count, known):
                break
        return state, edits

    def _edits_from(self, number: int) -> Iterator[Edit]:
        """The sound edits from one on, read from the file."""
        for part in self._files[-1].walk_edits(self._offsets[number]):
            if isinstance(part, Edit):
                yield part

    # The pass

    def _index(self) -> None:
        try:
            self._run()
        except OSError as error:
            self._damage.append({"offset": 0, "reason": str(error)})
        finally:
            with self._progress:
                self._complete = True
                self._progress.notify_all()

    def _run(self) -> None:
        flushed = self._flushed[-1] if self._flushed else 0
        compacted = self._compacted[-1] if self._compacted else 0
        levels = self._levels
        for edit in self._files[-1].walk_edits(self._end):
            if isinstance(edit, Damage):
                self._damage.append({"offset": edit.offset, "reason": grouped(edit.reason)})
                continue
            if self._closing:
                return
            if self._known % WINDOW == 0:
                self._keep_state()
                with self._progress:
                    self._progress.notify_all()
                time.sleep(_BREATH)
            self._changes += len(edit.new_files) + len(edit.deleted_files)
            change = change_of(edit, self._known == 0)
            levels.apply(edit)
            flushed += change.flushed
            compacted += change.compacted
            self._end = edit.end
            self._offsets.append(edit.offset)
            self._flushed.append(flushed)
            self._compacted.append(compacted)
            self._tables.append(len(levels))  # last: this makes the edit known

    def _keep_state(self) -> None:
        """Keep the state, unless it would take more memory than the changes since the last kept
        state."""
        if not self._kept or self._changes >= len(self._levels) // _TABLES_PER_CHANGE:
            self._kept.append(self._levels.files)
            self._kept_at.append(self._known)
            self._changes = 0
