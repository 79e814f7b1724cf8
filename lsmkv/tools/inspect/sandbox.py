"""A store in memory for experiments: what a put does to the log, the memtable and the tables.

It is separate from the inspected store.  Its sizes are small, so that a few puts fill a memtable,
and a few memtables start a compaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import lsmkv
from lsmkv.engine.options import L0_COMPACTION_TRIGGER
from lsmkv.files import Operation, key_order, parse_name
from lsmkv.tools.dump.annotated_logs import annotate_log
from lsmkv.tools.dump.logs import read_log
from lsmkv.tools.dump.records import Piece
from lsmkv.tools.inspect.anatomy import shown_piece
from lsmkv.tools.inspect.background import HAS_THREADS
from lsmkv.tools.inspect.edits import why_deeper
from lsmkv.tools.inspect.levels import in_levels, listed_tables
from lsmkv.tools.inspect.plain import Plain, shown_bytes
from lsmkv.tools.text import clipped, count

WRITE_BUFFER = 4096
"""Bytes of a memtable, as LevelDB counts them."""
LONGEST = 1024
"""The longest key or value, in bytes."""
MOST_AT_ONCE = 500
"""Keys that one call of :meth:`Scratch.fill` puts."""
_MOST_MOMENTS = 200
_MOST_SHOWN = 120
_WIDTH = 80  # characters of a key in a sentence
_SETTLING = 2.0  # seconds
_PATH = "scratch"


class Scratch:
    """The store, and its state after each operation; for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._env = lsmkv.MemoryEnv()
        self._db = lsmkv.DB(
            _PATH,
            create_if_missing=True,
            env=self._env,
            write_buffer_size=WRITE_BUFFER,
            max_file_size=WRITE_BUFFER,
            block_size=512,
            compression=None,
            background="thread" if HAS_THREADS else "inline",
        )
        self._directory = self._env.open_directory(_PATH)
        self._log = ("", 0)  # the newest log, and its end
        self._moments: list[Plain] = []
        self._note("a new store: nothing is written yet")

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._db.close()

    def moments(self) -> Plain:
        """The states of the store after each operation, the newest last."""
        with self._lock:
            return {"write_buffer": WRITE_BUFFER, "moments": list(self._moments)}

    def put(self, key: bytes, value: bytes) -> None:
        """Put a key.  ``ValueError`` if it or the value is longer than :data:`LONGEST`."""
        _check_length(key, value)
        with self._lock:
            self._db.put(key, value)
            self._note(f"put {clipped(key, _WIDTH)}, {count(len(value), 'byte')}")

    def delete(self, key: bytes) -> None:
        """Delete a key: a deletion is written like a put."""
        _check_length(key, b"")
        with self._lock:
            self._db.delete(key)
            self._note(f"delete {clipped(key, _WIDTH)}")

    def fill(self, keys: int) -> None:
        """Put some keys, at most :data:`MOST_AT_ONCE`, whose numbers are not in order."""
        with self._lock:
            done = 0
            for done in range(1, min(max(keys, 1), MOST_AT_ONCE) + 1):
                number = (len(self._moments) * 7919 + done * 611953) % 1000
                self._db.put(b"key%03d" % number, b"value of %d " % number * 4)
            self._note(f"put {count(done, 'key')}")

    def flush(self) -> None:
        """Turn the memtable into a table."""
        with self._lock:
            self._db.flush()
            self._note("flush: the memtable becomes a table")

    def compact(self) -> None:
        """Merge all tables."""
        with self._lock:
            self._db.compact_range()
            self._note("compaction of the whole store")

    def reset(self) -> None:
        """Start again with an empty store."""
        with self._lock:
            self._db.close()
            self._begin()

    def _note(self, words: str) -> None:
        """Add the store's present state to the moments."""
        self._settle()
        log = self._newest_log()
        with self._directory.open(log) as file:
            begin = self._log[1] if self._log[0] == log else 0
            end = file.size
            pieces = [
                shown_piece(piece)
                for piece in annotate_log(file, False)
                if isinstance(piece, Piece) and piece.offset >= begin
            ]
            written = [one for one in read_log(file) if isinstance(one, Operation)]
        self._log = (log, end)
        state = in_levels(listed_tables(self._db), key_order(self._db.options.comparator))
        bytes_written = self._written()
        written.sort(key=lambda one: (one.key, -one.sequence))
        self._moments.append(
            {
                "words": words,
                "log": {"name": log, "size": end, "new": pieces[-_MOST_SHOWN:]},
                "memtable": {
                    "bytes": self._db.stats().memtable_bytes,
                    "entries": len(written),
                    "shown": [_operation(one) for one in written[:_MOST_SHOWN]],
                },
                "files": [
                    {"name": name, "size": self._directory.size(name)}
                    for name in sorted(self._directory.names())
                ],
                "written": bytes_written,
                "why": self._why(state, bytes_written),
            }
            | state
        )
        del self._moments[:-_MOST_MOMENTS]

    def _why(self, state: Plain, written: Plain) -> str:
        """Explain why a flushed table is on a level other than 0; empty if there is none."""
        if not self._moments or written["compacted"] > self._moments[-1]["written"]["compacted"]:
            return ""
        known = {table["number"] for table in _tables(self._moments[-1])}
        deepest = max(
            (table["level"] for table in _tables(state) if table["number"] not in known), default=0
        )
        return why_deeper(deepest) if deepest else ""

    def _settle(self) -> None:
        """Wait until no memtable is being flushed and no compaction is due; two seconds at most."""
        give_up = time.monotonic() + _SETTLING
        while time.monotonic() < give_up:
            files = [level.files for level in self._db.stats().levels]
            if len(self._logs()) == 1 and files[0] < L0_COMPACTION_TRIGGER:
                return
            time.sleep(0.01)

    def _logs(self) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for name in self._directory.names():
            parsed = parse_name(name)
            if parsed is not None and parsed.kind == "log":
                found.append((parsed.number, name))
        return found

    def _newest_log(self) -> str:
        return max(self._logs())[1]

    def _written(self) -> Plain:
        """Bytes that the user gave, and bytes that were written for them."""
        stats = self._db.stats()
        return {
            "user": stats.user_bytes,
            "log": stats.log_bytes,
            "flushed": stats.flush_bytes,
            "compacted": stats.compaction_bytes_written,
        }


def _tables(state: Plain) -> Iterator[Plain]:
    """The tables of all levels, each with its level."""
    for level in state["levels"]:
        for table in level["tables"]:
            yield table | {"level": level["level"]}


def _check_length(key: bytes, value: bytes) -> None:
    if max(len(key), len(value)) > LONGEST:
        raise ValueError(f"a key or a value may have at most {count(LONGEST, 'byte')}")


def _operation(one: Operation) -> Plain:
    value = None if one.value is None else shown_bytes(one.value)
    return {"key": shown_bytes(one.key), "sequence": one.sequence, "value": value}
