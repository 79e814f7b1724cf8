"""More mistakes for ``plant.py``: of memtables, of the entries of a block, and of deletion runs.

See ``mistakes.py`` for what they are.
"""

from __future__ import annotations

from mistake import Mistake

MISTAKES: tuple[Mistake, ...] = (
    # The keys of a memtable in order
    Mistake(
        "of a batch, the first key alone is noted for the list",
        "memtable",
        "SortedDict.note",
        "[key for key, _ in operations]",
        "[operations[0][0]]",
        "A scan misses keys that were deleted and put again.",
    ),
    Mistake(
        "a key of an interrupted write enters the list",
        "memtable",
        "SortedDict.catch_up",
        "if key in content:",
        "if key:",
        "After Ctrl-C in a write, scans raise KeyError.",
    ),
    Mistake(
        "an order that Ctrl-C has broken stays as it is",
        "memtable",
        "SortedDict.catch_up",
        "if self._changing:",
        "if self._changing and not newest:",
        "After Ctrl-C in a scan, later scans miss keys or find them twice.",
    ),
    Mistake(
        "the removal of a key is not marked as begun",
        "memtable",
        "SortedDict.remove",
        "self._changing = True",
        "pass",
        "With a user's order, Ctrl-C in a write leaves a key that is in the order alone.",
    ),
    Mistake(
        "the key at an excluded upper bound is read",
        "memtable",
        "SortedDict.beyond",
        "(not after, until)",
        "(not after, True)",
        "A transaction conflicts with a write to the key after its range.",
    ),
    Mistake(
        "both spellings of a key stay",
        "memtable",
        "MemTable._keep_older",
        "self._sorted.remove(found)",
        "pass",
        "With a user's order, a scan shows a key twice.",
    ),
    Mistake(
        "a version at the sequence of a scan is hidden",
        "memtable",
        "MemTableScan.read",
        "sequence_in(tagged) > bound",
        "sequence_in(tagged) >= bound",
        "An iterator misses the last write before it was made.",
    ),
    Mistake(
        "a run of a memtable goes on after a value",
        "memtable",
        "MemTableScan.read",
        "in_a_row = 0",
        "pass",
        "A scan returns keys out of order, or deleted ones.",
    ),
    # The entries of a block
    Mistake(
        "a run of a block goes on after a value",
        "block",
        "BlockIterator.next_entries",
        "in_a_row = 0",
        "pass",
        "A scan returns keys out of order, or deleted ones.",
    ),
    Mistake(
        "a prefix outlives the key that it is of",
        "block",
        "BlockIterator.next_entries",
        'prefix = b""\n                cut = 0',
        "cut = 0",
        "After two versions of a key, a scan returns a wrong key.",
    ),
    Mistake(
        "the tag of an entry is lost where the next one shares a part of it",
        "block",
        "BlockIterator.next_entries",
        "if tag >= 0:\n                    self._tag",
        "if tag > end:\n                    self._tag",
        "A scan returns an older version, or a sound table counts as damaged.",
    ),
    Mistake(
        "a key that is shorter than its tag is read",
        "block",
        "BlockIterator._key_with_shared_tag",
        "if size < 0:",
        "if size < -TAG_SIZE:",
        "A damaged block yields keys that were never written.",
    ),
    Mistake(
        "an entry may run into the restart points",
        "block",
        "Block.header",
        "> self.end:",
        "> len(data):",
        "A damaged block yields values that were never written.",
    ),
    # Runs of deletions
    Mistake(
        "a run begins again with the deletions before it",
        "iterators",
        "add_deletion",
        "keys, SHORTEST_RUN, ",
        "keys, 0, ",
        "A scan meets deleted keys twice and out of order.",
    ),
    Mistake(
        "deletions are skipped while another source may have older versions",
        "iterators",
        "MergingIterator._unneeded_of",
        "(at > 1 and queue[1].left == 0)",
        "(at > 1 and not queue)",
        "A scan returns keys that were deleted.",
    ),
    Mistake(
        "deletions are skipped backward too",
        "iterators",
        "MergingIterator._unneeded_of",
        "self._back or (",
        "False or (",
        "A reverse scan returns keys that were deleted.",
    ),
)
