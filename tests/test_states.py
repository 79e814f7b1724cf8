"""The language of testdata/*.txt (tests/helpers/states.py): read, compared, rewritten."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import states
import trees
from states import Drawing, States, StatesError

import lsmkv

TEXT = """
# A comment of the file.

== Fruit
basket: apple banana
  cherry
tray: fig
# A comment between.
count basket    => 3
list
| apple
| banana
| cherry
tray: date
count basket => 0
drop => Error: dropped

== Nothing
count tray => 0
"""


def answer(drawing: Drawing, words: list[str]) -> str:
    there = dict(drawing)
    match words:
        case ["count", label]:
            return str(len(there.get(label, "").split()))
        case ["list"]:
            return "\n".join(there["basket"].split())
        case ["drop"]:
            raise lsmkv.Error("dropped")
        case ["draw", text]:
            return trees.words_text(trees.numbers(trees.files_of(text)))
    raise NotImplementedError


def read(tmp_path: Path, text: str) -> States:
    path = tmp_path / "fruit.txt"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return States(path)


def test_each_command_is_a_case_of_the_drawing_above_it(tmp_path: Path) -> None:
    fruit = read(tmp_path, TEXT)
    for case in fruit.cases:
        case.check(answer, draws="basket|tray")
    assert [str(case) for case in fruit.cases] == [
        "9: Fruit: count basket",
        "10: Fruit: list",
        "15: Fruit: count basket",
        "16: Fruit: drop",
        "19: Nothing: count tray",
    ]
    assert fruit.cases[0].drawing == [("basket", "apple banana cherry"), ("tray", "fig")]


def test_a_wrong_answer_shows_file_line_drawing_and_difference(tmp_path: Path) -> None:
    fruit = read(tmp_path, TEXT.replace("| banana\n", "| berry\n"))
    with pytest.raises(pytest.fail.Exception) as caught:
        fruit.cases[1].check(answer, draws="basket|tray")
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{fruit.path}:10: Fruit"
    assert lines[1:5] == ["basket: apple banana", "  cherry", "tray: fig", "list"]
    assert lines[-5:-1] == [" apple", "-berry", "+banana", " cherry"]


def test_answers_are_rewritten_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "rewriting", True)
    wrong = TEXT.replace("    => 3", "    => 7").replace("| banana\n| cherry\n", "")
    fruit = read(tmp_path, wrong.replace("count tray => 0", "count tray"))
    for case in reversed(fruit.cases):
        case.check(answer, draws="basket|tray")
    assert fruit.path.read_text(encoding="utf-8") == TEXT


def test_a_long_answer_stands_below_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "rewriting", True)
    fruit = read(tmp_path, "== Long\nask => no\n")
    fruit.cases[0].check(lambda drawing, words: "a" * 99, draws="basket")
    assert fruit.path.read_text(encoding="utf-8") == f"== Long\nask\n| {'a' * 99}\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("count basket => 3", 1, "a title comes first"),
        ("== Fruit\n  apple\n", 2, "continues no line"),
        ("== Fruit\nbasket: apple\nlist\n  banana\n", 4, "continues no line"),
        ("== Fruit\n| apple\n", 2, "below no command"),
        ("== Fruit\nlist => apple\n| apple\n", 3, "below no command"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(StatesError, match=rf"fruit\.txt:{line}: .*{message}"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("eat => yes", "not a command of these states"),
        ("draw 4:[a..b] => 4", "not tables: 4:[a..b]"),
    ],
)
def test_a_command_that_cannot_be_read_is_named(tmp_path: Path, command: str, message: str) -> None:
    (case,) = read(tmp_path, f"== Fruit\n{command}\n").cases
    with pytest.raises(StatesError) as caught:
        case.check(answer, draws="basket|tray")
    assert str(caught.value) == f"{case.states.path}:2: {message}: {command!r}"


def test_a_drawing_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (case,) = read(tmp_path, "== Fruit\nbaskett: apple\nlist\n").cases
    with pytest.raises(StatesError, match=r"fruit\.txt:3: nothing is drawn by 'baskett'"):
        case.check(answer, draws="basket|tray")


def test_a_file_without_commands_is_no_test(tmp_path: Path) -> None:
    with pytest.raises(StatesError, match="has no command"):
        read(tmp_path, "== Fruit\nbasket: apple\n")


@pytest.mark.parametrize("key", [b"", b"apple", b"a\0b", b"#:[]=\\\" '\xff"])
def test_keys_are_written_as_they_are_read(key: bytes) -> None:
    assert trees.key_of(trees.key_text(key)) == key


@pytest.mark.parametrize("text", ["a#5:put=red", "a#5:put=", '""#1:del', "\\x00#9:del"])
def test_entries_are_written_as_they_are_read(text: str) -> None:
    ((entry,),) = trees.entries_of(f"[{text}]")
    assert trees.table_text([entry]) == f"[{text}]"


@pytest.mark.parametrize("text", ["0", "7", "2MiB", "2MiB-1", "2MiB+1", "1MiB"])
def test_sizes_are_written_as_they_are_read(text: str) -> None:
    assert trees.size_text(trees.size_of(text)) == text


@pytest.mark.parametrize(
    ("read_text", "text"),
    [
        (trees.key_of, "a:b"),
        (trees.internal_key_of, "a#x"),
        (trees.entry_of, "a#5"),
        (trees.entries_of, "a#5:del"),
        (trees.size_of, "2GiB"),
        (trees.level_of, "L7"),
    ],
)
def test_what_is_drawn_wrong_is_refused(read_text: object, text: str) -> None:
    assert callable(read_text)
    with pytest.raises(StatesError, match="not "):
        read_text(text)
