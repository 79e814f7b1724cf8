"""The student's store, open in its process: it installs the parts, and answers requests."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import lsmkv
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.store import formulas
from lsmkv.course.store.guard import Guard
from lsmkv.course.store.memory import scanned
from lsmkv.course.store.parts import Part, part_named
from lsmkv.course.store.seams import Using
from lsmkv.course.student import Labs

BITS = 10
"""Bits of a filter for each key."""
SETTINGS: dict[str, Any] = {
    "compression": None,
    "bloom_filter_bits": BITS,
    "seek_compaction": False,
    "write_buffer_size": 64 << 10,
}
"""Options of the student's store: the labs' formats, and memtables that are soon full."""

_MARKS = (
    ("filter per block", "asking filters"),
    ("index:", "index keys"),
    ("block at", "block reader"),
    ("memtable", "memtable"),
    ("level ", "Get"),
)
"""Words that begin a line of an explanation, and the part that the line is about."""


class Opened:
    """A store, and the parts in it."""

    def __init__(self, guard: Guard, folder: str) -> None:
        self._guard = guard
        self._folder = folder
        self._parts: list[Part] = []
        self._db: lsmkv.DB | None = None
        self._reported = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request, or the engine's error; and the failures of parts."""
        answer: dict[str, Any] = {"failures": []}
        try:
            answer["value"] = self._do(request)
        except (lsmkv.Error, OSError, ValueError) as error:
            answer["error"] = str(error)
        failures = self._guard.failures
        answer["failures"] = [one._asdict() for one in failures[self._reported :]]
        self._reported = len(failures)
        return answer

    def _do(self, request: dict[str, Any]) -> Any:
        if request["do"] == "open":
            return self._open(request["store"], request["parts"])
        assert self._db is not None
        do: Callable[[lsmkv.DB, dict[str, Any]], Any] = getattr(self, f"_{request['do']}")
        return do(self._db, request)

    def _open(self, store: str, names: list[str]) -> None:
        sys.meta_path.append(
            Labs(
                {
                    lab.file_name.removesuffix(".py"): os.path.join(self._folder, lab.file_name)
                    for lab in LABS
                    if os.path.exists(os.path.join(self._folder, lab.file_name))
                }
            )
        )
        chosen = [part_named(name) for name in names]
        functions = [(part, self._functions(part)) for part in chosen]  # before anything changes
        for part, found in functions:
            if found is not None:
                self._parts.append(part)
                part.install(Using(part.name, found, self._guard))
        self._db = lsmkv.DB(store, create_if_missing=True, **SETTINGS)

    def _functions(self, part: Part) -> dict[str, Callable[..., Any]] | None:
        """The student's functions; None if the file cannot be run, which is noted."""
        name = find(str(part.lab)).file_name.removesuffix(".py")
        found = self._guard.tried(part.name, importlib.import_module, (name,))
        if self._guard.failed(found):
            return None
        return {one: getattr(found, one) for one in part.functions}

    # Requests

    def _put(self, db: lsmkv.DB, request: dict[str, Any]) -> None:
        db.put(_bytes(request["key"]), _bytes(request["value"]))

    def _load(self, db: lsmkv.DB, request: dict[str, Any]) -> int:
        """Put pairs in one batch."""
        with db.write_batch() as batch:
            for key, value in request["pairs"]:
                batch.put(_bytes(key), _bytes(value))
        return len(request["pairs"])

    def _get(self, db: lsmkv.DB, request: dict[str, Any]) -> str | None:
        found = db.get(_bytes(request["key"]))
        return None if found is None else _text(found)

    def _get_all(self, db: lsmkv.DB, request: dict[str, Any]) -> list[str | None]:
        """The values of many keys."""
        return [self._get(db, {"key": key}) for key in request["keys"]]

    def _delete(self, db: lsmkv.DB, request: dict[str, Any]) -> None:
        db.delete(_bytes(request["key"]))

    def _scan(self, db: lsmkv.DB, request: dict[str, Any]) -> list[list[str]]:
        start, stop = _bytes(request["start"]), request["stop"]
        found: list[list[str]] = []
        end = None if stop is None else _bytes(stop)
        for key, value in scanned(db, start, end, request["reverse"]):
            if len(found) == request["most"]:
                break
            found.append([_text(key), _text(value)])
        return found

    def _flush(self, db: lsmkv.DB, request: dict[str, Any]) -> None:
        db.flush()

    def _compact(self, db: lsmkv.DB, request: dict[str, Any]) -> None:
        db.compact_range()

    def _stats(self, db: lsmkv.DB, request: dict[str, Any]) -> dict[str, int]:
        """Counters, as far as the report of the shell needs them."""
        stats = db.stats()
        names = ("gets", "blocks_read", "filters_asked", "filter_negatives")
        return {name: getattr(stats, name) for name in (*names, "filter_false_positives")}

    def _without(self, db: lsmkv.DB, request: dict[str, Any]) -> dict[str, Any]:
        """The tables that Gets of some keys ask, and the blocks that they read without filters."""
        steps = [db.explain(_bytes(key)) for key in request["keys"]]
        return {
            "tables": [sum(table.asked for table in one.tables) for one in steps],
            "without_filters": sum(one.blocks_without_filters for one in steps),
        }

    def _predict(self, db: lsmkv.DB, request: dict[str, Any]) -> dict[str, float]:
        """The blocks that Gets of absent keys read, by the formulas of the labs."""
        rate = formulas.false_positive_rate(BITS, int(BITS * 0.69))
        reads = sum(formulas.blocks_read(tables, rate) for tables in request["tables"])
        return {"rate": rate, "blocks": reads}

    def _amplification(self, db: lsmkv.DB, request: dict[str, Any]) -> float:
        """The bytes of tables that were written since the store was opened, for each byte put."""
        stats = db.stats()
        return formulas.write_amplification(
            stats.user_bytes, stats.flush_bytes, stats.compaction_bytes_written
        )

    def _explain(self, db: lsmkv.DB, request: dict[str, Any]) -> list[str]:
        """The steps of a Get; lines about a student's part are marked."""
        lines: list[str] = []
        for line in db.explain(_bytes(request["key"])).outline():
            lines.append("  " * line.depth + line.text + self._mark(line.text))
        return lines

    def _mark(self, text: str) -> str:
        for words, name in _MARKS:
            if text.startswith(words) and self._is_mine(name):
                return f"  [{part_named(name).mark}]"
        return ""

    def _is_mine(self, name: str) -> bool:
        return any(part.name == name for part in self._parts) and self._guard.is_in_use(name)

    def _calls(self, db: lsmkv.DB, request: dict[str, Any]) -> dict[str, int]:
        """The number of answers of each part that the store has used."""
        return {part.name: self._guard.calls[part.name] for part in self._parts}

    def _tables(self, db: lsmkv.DB, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The tables of each level."""
        assert db._store is not None
        version = db._store.versions.current
        return [
            {
                **{"level": level, "number": file.number, "size": file.size},
                **{"smallest": _text(file.smallest[:-8]), "largest": _text(file.largest[:-8])},
            }
            for level, files in enumerate(version.levels)
            for file in files
        ]

    def _close(self, db: lsmkv.DB, request: dict[str, Any]) -> None:
        db.close()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
