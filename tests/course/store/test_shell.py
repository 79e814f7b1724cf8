"""The shell of a student's store, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from course_stores import folder_of_references, plant, running

from lsmkv.course.store.shell import COMMANDS, Shell


def lines_of(folder: Path, commands: str, names: list[str] | None = None) -> list[str]:
    printed: list[str] = []
    with running(folder, names) as session:
        shell = Shell(session, printed.append)
        for line in commands.splitlines():
            shell.run(line)
    return printed


def test_put_get_scan_kill_and_reopen(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    commands = """put ant "six legs"
put bee 2
delete bee
get ant
get bee
kill
get ant
reopen
get ant
scan
scan b
back
flush
"""
    assert lines_of(folder, commands) == [
        *("six legs", "there is no such key"),
        "The process of your store was killed. 'reopen' recovers it.",
        "the store says: the store is not open: 'reopen' opens it",
        *("1 table on level 0", "six legs"),
        *("ant = six legs", "1 key", "0 keys", "ant = six legs", "1 key"),
        "1 table on level 0",
    ]


def test_inspect_and_parts_say_whose_parts_there_are(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    commands = "put ant 1\nflush\ninspect\nparts\n"
    table, *files = lines_of(folder, commands, ["records", "filters"])[1:]
    assert table.startswith("level 2  000006.ldb") or ".ldb" in table
    assert table.endswith("'ant' .. 'ant'")
    assert files[0] == "log       yours: records; the engine's: checksums, log reader, recovery"
    assert files[2] == "filters   yours: filters; the engine's: filter blocks"
    assert files[-1] == "lab  4  filters              the filters of each table: used 1 time"


def test_a_part_that_fails_is_reported_with_its_line(tmp_path: Path) -> None:
    folder = folder_of_references(tmp_path / "labs")
    line = plant(folder, 8, "def get(levels, key):\n    return levels[key]\n")
    assert lines_of(folder, "put ant 1\nflush\nget ant\nget ant\nparts\n", ["Get"])[1:] == [
        "1",
        "Your part 'Get' of lab 8 failed: get([[], [], [table 6], [], [], [], []], b'ant') raised"
        " TypeError: list indices must be integers or slices, not bytes",
        f"  lab8_reading.py, line {line}: return levels[key]",
        *("  The engine's own takes its place.", "1"),
        "lab  8  Get                  the tables and blocks that a Get reads: set aside: it failed",
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("grow ant", "there is no command grow: 'help' lists them"),
        ("put ant", "usage: put KEY VALUE"),
        ("put 'ant", "not a command: No closing quotation"),
    ],
)
def test_what_is_no_command(tmp_path: Path, line: str, words: str) -> None:
    assert lines_of(folder_of_references(tmp_path / "labs"), line, []) == [words]


def test_help_lists_every_command_and_quit_ends(tmp_path: Path) -> None:
    printed = lines_of(folder_of_references(tmp_path / "labs"), "help\n# a comment\n\n", [])
    assert [line.split()[0] for line in printed] == [*COMMANDS, "quit"]
