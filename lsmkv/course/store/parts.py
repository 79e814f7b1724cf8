"""The parts of a student's store: which functions, which checks, and which seam of the engine.

Adding a part is an entry of :data:`PARTS`, with a function that installs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from lsmkv.course.store import (
    block,
    bloom,
    compaction,
    filter_block,
    formulas,
    get,
    keys,
    log,
    manifest,
    memory,
    recovery,
    table,
)
from lsmkv.course.store.seams import Using


class Part(NamedTuple):
    """A part of the engine that a student has written."""

    lab: int
    name: str
    what: str
    """The function of the part in the store."""
    functions: tuple[str, ...]
    """The functions of the lab's file that make up the part."""
    checks: tuple[str, ...]
    """The checks that must pass before the part is used."""
    install: Callable[[Using], None]

    @property
    def mark(self) -> str:
        """The name of a student's part in answers of the store."""
        return f"yours, lab {self.lab}"


PARTS = (
    Part(
        *(1, "varints", "lengths and numbers in every file"),
        ("encode_varint", "decode_varint"),
        ("writing varints", "reading varints", "invalid varints"),
        keys.varints,
    ),
    Part(
        *(1, "internal keys", "a key, its sequence and its kind"),
        ("pack_key", "unpack_key"),
        ("writing internal keys", "reading internal keys"),
        keys.internal_keys,
    ),
    Part(
        *(1, "order", "the order of versions"),
        ("compare_keys",),
        ("the order of internal keys",),
        keys.order,
    ),
    Part(
        *(2, "checksums", "the checksum of each record"),
        ("masked_checksum",),
        ("the checksum",),
        log.checksums,
    ),
    Part(
        *(2, "records", "records of the log and of the MANIFEST"),
        ("frame",),
        ("the bytes of records",),
        log.records,
    ),
    Part(
        *(2, "log reader", "reading a log and a MANIFEST"),
        ("read_log",),
        ("reading a log", "torn logs", "damaged logs"),
        log.reading,
    ),
    Part(
        *(3, "block builder", "every block of a table"),
        ("shared_prefix", "build_block"),
        ("the bytes of a block",),
        block.building,
    ),
    Part(
        *(3, "block reader", "the entries of a block"),
        ("read_block",),
        ("reading a block",),
        block.reading,
    ),
    Part(
        *(4, "filters", "the filters of each table"),
        ("create_filter",),
        ("the size of a filter", "the bytes of a filter"),
        bloom.making,
    ),
    Part(
        *(4, "asking filters", "whether a block may hold a key"),
        ("key_may_match",),
        ("no false negatives", "asking a filter"),
        bloom.asking,
    ),
    Part(
        *(5, "filter blocks", "the filter block of each table"),
        ("build_filter_block",),
        ("the keys of each filter", "the bytes of a filter block"),
        filter_block.building,
    ),
    Part(
        *(5, "finding filters", "from a block to its filter"),
        ("key_may_match",),
        ("finding a filter", "asking for a key", "no false negatives", "damaged filter blocks"),
        filter_block.asking,
    ),
    Part(
        *(6, "sealed blocks", "type and checksum of each block"),
        ("seal_block", "unseal_block"),
        ("sealing a block", "opening a block"),
        table.sealing,
    ),
    Part(
        *(6, "handles", "where blocks lie"),
        ("block_handle",),
        ("block handles",),
        table.handles,
    ),
    Part(
        *(6, "index keys", "the keys of the index"),
        ("separator", "successor"),
        ("keys between blocks", "the last index key"),
        table.index_keys,
    ),
    Part(
        *(6, "footer", "the end of each table"),
        ("footer",),
        ("the footer",),
        table.footers,
    ),
    Part(
        *(6, "tables", "the data blocks and the index of each table"),
        ("build_table",),
        ("the bytes of a table",),
        table.tables,
    ),
    Part(
        *(7, "memtable", "every write, until it is flushed"),
        ("insert", "look_up"),
        ("the order of entries", "a sorted memtable", "as of a sequence"),
        memory.memtable,
    ),
    Part(
        *(7, "merge", "the merge of a compaction, without lab 11"),
        ("merge",),
        ("merging runs", "merging as it goes"),
        memory.merging,
    ),
    Part(
        *(7, "scans", "what a scan sees"),
        ("merge", "visible", "visible_backwards"),
        (
            *("merging runs", "merging as it goes"),
            *("what a reader sees", "what a reader sees backwards"),
        ),
        memory.scans,
    ),
    Part(
        *(8, "Get", "the tables and blocks that a Get reads"),
        ("get",),
        (
            *("the table of a level", "the tables to ask", "the block of a table"),
            *("the answer of a Get", "filters first"),
        ),
        get.gets,
    ),
    Part(
        *(9, "edits", "the edits of the MANIFEST"),
        ("encode_edit", "decode_edit"),
        ("the bytes of an edit", "reading an edit", "records that are no edits"),
        manifest.edits,
    ),
    Part(
        *(9, "levels", "the levels after an edit"),
        ("apply_edit",),
        ("applying edits",),
        manifest.applying,
    ),
    Part(
        *(9, "MANIFEST", "the state when the store is opened"),
        ("replay_edits",),
        ("replaying a MANIFEST",),
        manifest.replaying,
    ),
    Part(
        *(9, "CURRENT", "which MANIFEST counts"),
        ("set_current",),
        ("CURRENT",),
        manifest.current,
    ),
    Part(
        *(9, "flush", "the commit of a flush"),
        ("flush",),
        ("a flush and power cuts",),
        manifest.flushing,
    ),
    Part(
        *(10, "logs", "the logs that count"),
        ("logs_to_replay",),
        ("the logs that count",),
        recovery.choosing,
    ),
    Part(
        *(10, "torn tails", "torn, or damaged"),
        ("is_torn_tail",),
        ("torn tails",),
        recovery.tails,
    ),
    Part(
        *(10, "recovery", "the writes of the logs"),
        ("replay",),
        ("replaying logs",),
        recovery.replaying,
    ),
    Part(
        *(10, "obsolete files", "what is removed"),
        ("obsolete_files",),
        ("obsolete files",),
        recovery.removing,
    ),
    Part(
        *(10, "commit", "a new MANIFEST in place of the old one"),
        ("commit",),
        ("a commit and power cuts",),
        recovery.committing,
    ),
    Part(
        *(11, "scores", "when a level is compacted"),
        ("level_scores",),
        ("the scores of levels",),
        compaction.scoring,
    ),
    Part(
        *(11, "choice", "which tables are compacted"),
        ("overlapping", "pick"),
        ("tables that overlap", "choosing tables"),
        compaction.choosing,
    ),
    Part(
        *(11, "deletions", "which deletions may go"),
        ("held_deeper",),
        ("what lies deeper",),
        compaction.deeper,
    ),
    Part(
        *(11, "compaction", "which versions remain"),
        ("compact",),
        ("versions that go", "deletions that go"),
        compaction.merging,
    ),
    Part(
        *(11, "outputs", "where one table ends"),
        ("split",),
        ("splitting outputs",),
        compaction.splitting,
    ),
    Part(
        *(4, "false positives", "the rate that the report predicts"),
        ("predicted_rate",),
        ("the rate of errors",),
        formulas.keep,
    ),
    Part(
        *(11, "write amplification", "bytes written for each byte put"),
        ("write_amplification",),
        ("write amplification",),
        formulas.keep,
    ),
    Part(
        *(12, "blocks read", "the reads that the report predicts"),
        ("predict",),
        ("the prediction",),
        formulas.keep,
    ),
)
"""In the order of the labs; formulas, which only the report uses, are last."""


def part_named(name: str) -> Part:
    """The part of this name.

    >>> part_named("filters").lab
    4
    """
    return next(part for part in PARTS if part.name == name)


def in_use(passed: Mapping[int, Iterable[str]]) -> list[Part]:
    """The parts whose checks have all passed; ``passed`` has their names by lab."""
    return [part for part in PARTS if set(part.checks) <= set(passed.get(part.lab, ()))]
