"""What a student has written down is judged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from own_data import call_that_shows

from lsmkv.course.faults.finding import finding_in, parts_of
from lsmkv.course.labs.registry import find
from lsmkv.course.seeds import seed_of

BLOOM, SEED = find("bloom"), seed_of("ann")
SHOWS = call_that_shows("bloom", "ann")


def test_a_finding(tmp_path: Path) -> None:
    assert finding_in(str(tmp_path), BLOOM, SEED) is None
    (tmp_path / "fault4.txt").write_text(f"{SHOWS}\n# It is\n# wrong.\n")
    found = finding_in(str(tmp_path), BLOOM, SEED)
    assert found is not None
    assert (found.call, found.sentence, found.is_found) == (SHOWS, "It is wrong.", True)
    assert found.size == found.least > 0
    assert found.message.startswith("This shows the fault: the broken code answers ")
    assert f"Its size is {found.size}; the smallest that the course knows has {found.least}." in (
        found.message
    )


def test_what_shows_nothing(tmp_path: Path) -> None:
    for text, words in (("bloom_hash(b'')", "both answer"), ("?", "it must be one call")):
        (tmp_path / "fault4.txt").write_text(text)
        found = finding_in(str(tmp_path), BLOOM, SEED)
        assert found is not None
        assert not found.is_found
        assert words in found.message


def test_a_call_may_take_several_lines() -> None:
    assert parts_of("# a\nf(\n 1)\n\n  # b") == ("f(\n 1)", "a b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs and links")
def test_no_fifo_is_waited_for_and_no_link_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(SHOWS)
    (tmp_path / "fault4.txt").symlink_to(tmp_path / "other")
    assert finding_in(str(tmp_path), BLOOM, SEED) is None
    (tmp_path / "fault4.txt").unlink()
    os.mkfifo(tmp_path / "fault4.txt")
    assert finding_in(str(tmp_path), BLOOM, SEED) is None
