"""What a put, a Get, a flush, a compaction and an opening enter is on the tour, or in tour.txt.

A store is run, and every function of lsmkv that it enters is noted.  Each is in the lines that a
reader of the tour reads, or in ``tests/tour.txt`` under a sentence that says why not.  A function
that is new on the path fails the first test, and so does one that is listed and no longer entered::

    pytest tests/test_tour_trace.py             # prints what differs
    pytest tests/test_tour_trace.py --rewrite   # writes tests/tour.txt; then read the git diff

What is new stands under its module's sentence if that has just one; what has moved to another
module keeps its own.  Anything else stands under "Why not?", which the second test refuses: write
the sentence, or put the function into the tour's lines, or shorten the path.
"""

from __future__ import annotations

import sys

import pytest
import states
import toured
from toured import Traced

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the list is of Linux' files")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    found = toured.trace_store(tmp_path_factory.mktemp("traced") / "store")
    if found.unlike:
        pytest.skip("; ".join(found.unlike))
    return found


def test_every_function_entered_is_on_the_tour_or_listed(traced: Traced) -> None:
    text = toured.LISTED.read_text(encoding="utf-8")
    listed = toured.read_list(text)
    entered = toured.off_the_tour(traced)
    renewed = toured.written(
        toured.head_of(text), traced.figures(), toured.adapted(listed, entered)
    )
    if states.rewriting:
        toured.LISTED.write_text(renewed, encoding="utf-8")
        return
    differences = toured.differences(listed, entered)
    if renewed != text and not differences:
        differences = ["the figures, or the order of the list", *traced.figures()]
    if differences:
        pytest.fail("\n".join([*differences, "(--rewrite writes it)"]), pytrace=False)


def test_every_group_of_the_list_has_a_sentence() -> None:
    for module, functions in toured.read_list(toured.LISTED.read_text(encoding="utf-8")).items():
        assert functions, module
        for name, sentence in functions.items():
            assert sentence.endswith("."), f"{module}: {name} has no sentence: {sentence}"


def test_the_run_does_what_it_says(traced: Traced) -> None:
    db = "lsmkv/engine/db/"
    for operation, module, name in (
        ("put", "write/commit.py", "Commit.write"),
        ("put", "tree/memtable.py", "MemTable.add"),
        ("get", "read/reader.py", "look_up"),
        ("flush", "compact/flush.py", "write_memtable"),
        ("compaction", "compact/compaction.py", "CompactionJob.run"),
        ("opening", "opening/recovery.py", "Recovery.run"),
    ):
        assert any(row[:2] == (db + module, name) for row in traced.entered[operation]), operation


def test_what_is_new_or_gone_is_noticed() -> None:
    text = "# A head.\n\nput: 1 functions in 1 files\n\n"
    text += "lsmkv/a.py\n  One.\n  | f g\n\nlsmkv/b.py\n  Of b.\n  | C.m\n  Of b, too.\n  | h\n"
    listed = toured.read_list(text)
    assert listed == {
        "lsmkv/a.py": {"f": "One.", "g": "One."},
        "lsmkv/b.py": {"C.m": "Of b.", "h": "Of b, too."},
    }
    figures = ["put: 1 functions in 1 files"]
    assert toured.written(toured.head_of(text), figures, listed) == text
    entered = {"lsmkv/a.py": {"f", "k"}, "lsmkv/b.py": {"C.m", "h", "i"}, "lsmkv/c.py": {"g", "n"}}
    assert toured.differences(listed, entered) == [
        "new on the path: lsmkv/a.py: k",
        "no longer entered: lsmkv/a.py: g",
        "new on the path: lsmkv/b.py: i",
        "new on the path: lsmkv/c.py: g n",
    ]
    assert toured.adapted(listed, entered) == {
        "lsmkv/a.py": {"f": "One.", "k": "One."},
        "lsmkv/b.py": {"C.m": "Of b.", "h": "Of b, too.", "i": "Why not?"},
        "lsmkv/c.py": {"g": "One.", "n": "Why not?"},
    }
