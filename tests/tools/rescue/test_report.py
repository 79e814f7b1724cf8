"""The text of ``lsmkv rescue``: what it recommends, and the commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsmkv.repair import Rescue, Way
from lsmkv.tools.rescue.finding import Found
from lsmkv.tools.rescue.owners import Owner
from lsmkv.tools.rescue.report import Outcome, Printer, commands, free_name

BROKEN = Way("as-is", "000005.ldb: block checksum mismatch", 10)


def outcome(recommended: str | None, made: str | None, *ways: Way) -> Outcome:
    found = Found("s", ("/", "home", "s"), None, ("CURRENT",), (), None)
    rescue = Rescue("/home/s", "leveldb.BytewiseComparator", (BROKEN, *ways), recommended, made)
    owner = Owner("the game", "a world")
    return Outcome(found, owner, rescue, "" if made else "no way", "/new/s" if made else None)


def shown(one: Outcome, capfdbinary: pytest.CaptureFixture[bytes]) -> str:
    printer = Printer()
    printer.write(one)
    printer.write_next([one])
    import sys

    sys.stdout.flush()
    return capfdbinary.readouterr().out.decode()


def test_a_way_is_recommended_in_three_sentences(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    best = Way("by-level", "", 1000, 40, 4096)
    other = Way("keep-stale", "", 1040, 0, 4096, (), 40, 0, 3)
    text = shown(outcome("by-level", "by-level", best, other), capfdbinary)
    paragraph = " ".join(text.split())
    assert (
        "Take by-level: it keeps 1,000 entries, each the newest that the files show."
        " 40 entries that may be out of date are set aside; 4.0 KiB of tables cannot be read or are"
        " missing. With --way keep-stale there are 40 entries more, which may be out of date or"
        " deleted."
    ) in paragraph
    assert "> by-level      1,000         40  4.0 KiB\n" in text
    assert "  keep-stale    1,040          0  4.0 KiB  40 keys more, 3 keys with" in text
    assert "  as-is            10                      damaged: 000005.ldb: block" in text
    assert "mv /home/s /home/s.damaged\n     cp -R /new/s /home/s\n" in text
    assert "- Do not start the game: it may write to the damaged database." in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_is_not_lost_is_said_too(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = shown(outcome("by-level", "by-level", Way("by-level", "", 5)), capfdbinary)
    paragraph = " ".join(text.split())
    assert "Nothing is lost, and nothing is set aside. No other way keeps more." in paragraph


def test_remarks_of_a_way_are_said(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    way = Way("by-level", "", 5, 0, 0, ("the writes of 1 log are missing",))
    text = " ".join(shown(outcome("by-level", "by-level", way), capfdbinary).split())
    assert "The writes of 1 log are missing. No other way" in text


def test_another_way_than_the_recommended_is_named(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    ways = [Way("by-level", "", 5), Way("by-sequence", "", 6)]
    text = shown(outcome("by-level", "by-sequence", *ways), capfdbinary)
    assert "Made (by-sequence, as asked): /new/s" in text
    assert "How to put the result back" in text


def test_a_store_that_no_way_makes_sound(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = shown(outcome(None, None, Way("by-level", "wrong order")), capfdbinary)
    assert "No way makes a sound store of it. Keep the folder" in text
    assert "How to put the result back" not in text


def test_control_characters_do_not_reach_the_terminal(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    one = outcome("by-level", "by-level", Way("by-level", "", 5))
    one.found = one.found._replace(parts=("/", "\x1b[31mred"))
    one.made = "/new/\x1b[31mred"
    assert "\x1b" not in shown(one, capfdbinary)


def test_the_names_of_the_commands_are_free(tmp_path: Path) -> None:
    (tmp_path / "s.damaged").mkdir()
    one = outcome("by-level", "by-level", Way("by-level", "", 5))
    one.found = one.found._replace(parts=("/", *str(tmp_path / "s").split("/")[1:]))
    move, _ = commands([one])
    assert move[-1] == f"{tmp_path / 's.damaged-2'}"
    assert free_name(str(tmp_path / "new")) == str(tmp_path / "new")
    assert os.listdir(tmp_path) == ["s.damaged"]
