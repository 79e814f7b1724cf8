"""docs/course/teaching.md: its exam questions are decoded again; its checks and symbols exist."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from documents import section, table_rows

from lsmkv.course.grading import Grader
from lsmkv.course.labs.compaction import engine_scores, levels_of
from lsmkv.course.labs.log import log_of
from lsmkv.course.labs.registry import LABS, find
from lsmkv.course.running import Limits
from lsmkv.engine.filter.bloom import BloomFilterPolicy, leveldb_hash
from lsmkv.engine.format.keys import unpack
from lsmkv.engine.format.version_edit import VersionEdit
from lsmkv.engine.table.block import Block
from lsmkv.engine.util.coding import decode_varint32

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "course" / "teaching.md").read_text(encoding="utf-8")


def numbered(text: str) -> dict[str, str]:
    """The paragraphs that begin with a number in bold, by that number."""
    found = re.findall(r"(?ms)^\*\*(\d+\.\d)\*\* (.*?)\n$", text)
    return {number: " ".join(words.split()) for number, words in found}


ASKED, _, ANSWERED = section(PAGE, "Exam questions").partition("<summary>Answers</summary>\n")
ANSWERS = numbered(ANSWERED)
QUESTIONS = {
    number: (question, ANSWERS.get(number, "")) for number, question in numbered(ASKED).items()
}
"""Questions and answers, by number."""


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    return table_rows(section(PAGE, title))


def words_of_a_varint(data: bytes) -> Iterable[str]:
    value, end = decode_varint32(data, 0)
    assert end == len(data)
    return [f"{value}: "]


def words_of_an_internal_key(data: bytes) -> Iterable[str]:
    key, sequence, kind = unpack(data)
    return [f"`{key.decode()}`, sequence {sequence}", ("a deletion", "a value")[kind]]


def words_of_a_log(data: bytes) -> Iterable[str]:
    assert data == log_of([b"ant"])
    return ["Type 1, FULL", "a length of 3", "`ant`"]


def words_of_a_block(data: bytes) -> Iterable[str]:
    block = Block(data)
    shown = [
        f"`{key.decode()}` = `{value.decode()}`" if value else f"`{key.decode()}` with an empty"
        for key, value in zip(*block.entries(), strict=True)
    ]
    return [*shown, "restart points at {} and {}".format(*block.restart_points())]


def words_of_a_filter(data: bytes) -> Iterable[str]:
    assert data == BloomFilterPolicy(10).create_filter([b"course"])
    positions = BloomFilterPolicy(10).probed_positions(leveldb_hash(b"course"), data)
    *first, last = sorted(positions)
    return [f"k is {data[-1]}", f"the bits {', '.join(map(str, first))} and {last}"]


def words_of_a_filter_block(data: bytes) -> Iterable[str]:
    assert int.from_bytes(data[-5:-1], "little") == 0 == len(data) - 5
    return ["No filters", f"{data[-1]}, says", f"2^{data[-1]} = {1 << data[-1]} bytes"]


def words_of_a_handle(data: bytes) -> Iterable[str]:
    offset, at = decode_varint32(data, 0)
    size, end = decode_varint32(data, at)
    assert end == len(data)
    return [f"offset {offset}, with {size} bytes"]


def words_of_an_edit(data: bytes) -> Iterable[str]:
    edit = VersionEdit.decode(data)
    ((level, table),) = edit.deleted_files
    assert not edit.new_files
    return [
        f"Log number {edit.log_number}, next file number {edit.next_file_number}, last sequence"
        f" {edit.last_sequence}, and table {table} of level {level} is deleted"
    ]


def words_of_a_torn_log(data: bytes) -> Iterable[str]:
    assert data == log_of([b"one", b"three"])[:-2]
    return ["One record: `one`", "a length of 5, and only 3 bytes"]


DECODED: dict[str, Callable[[bytes], Iterable[str]]] = {
    "1.1": words_of_a_varint,
    "1.2": words_of_an_internal_key,
    "2.1": words_of_a_log,
    "3.1": words_of_a_block,
    "4.1": words_of_a_filter,
    "5.1": words_of_a_filter_block,
    "6.1": words_of_a_handle,
    "9.1": words_of_an_edit,
    "10.1": words_of_a_torn_log,
}


def bytes_in(question: str) -> bytes:
    (found,) = re.findall(r"`((?:[0-9a-f]{2} )+[0-9a-f]{2})`", question)
    return bytes.fromhex(found)


@pytest.mark.parametrize("number", DECODED)
def test_the_bytes_of_a_question_have_its_answer(number: str) -> None:
    question, answer = QUESTIONS[number]
    for words in DECODED[number](bytes_in(question)):
        assert words in answer


def test_every_question_with_bytes_is_decoded() -> None:
    with_bytes = {
        number
        for number, (question, _) in QUESTIONS.items()
        if re.search(r"`(?:[0-9a-f]{2} )+[0-9a-f]{2}`", question)
    }
    assert with_bytes == set(DECODED)


def test_the_scores_of_a_question_are_the_engines() -> None:
    three = [(9 - n, 1.0, "a", "b") for n in range(3)]
    levels = levels_of(l0=three, l1=[(1, 12, "a", "b")], l2=[(2, 90, "a", "b")])
    zero, one, two, *_ = engine_scores(levels)
    assert (
        f"Level 1, with a score of {one:g}. Level 0 has {zero:g}, level 2 has {two:g}."
        in QUESTIONS["11.1"]
    )


def test_each_lab_has_two_questions_or_more() -> None:
    assert list(QUESTIONS) == list(ANSWERS)
    assert len(QUESTIONS) >= 24
    for lab in range(1, 13):
        assert sum(number.startswith(f"{lab}.") for number in QUESTIONS) >= 2


def test_the_labs_are_called_by_their_titles() -> None:
    assert [row[0] for row in rows("Plans")] == [f"{lab.number} {lab.title}" for lab in LABS]


def test_the_number_of_functions_is_right() -> None:
    assert [row[3] for row in rows("Plans")] == [str(len(lab.functions)) for lab in LABS]


def test_mistakes_are_named_by_checks_that_there_are() -> None:
    table = dict(rows("Common mistakes"))
    for lab in LABS:
        named = re.findall(r"\*([^*]+)\*: \w", table[str(lab.number)])
        assert len(named) >= 3
        assert {*named} <= {check.name for check in lab.checks}


def test_what_is_read_in_the_engine_is_in_the_tour() -> None:
    tour = (DOCS / "tour.md").read_text(encoding="utf-8")
    symbols = {symbol for row in rows("Plans") for symbol in re.findall(r"`([\w./]+)`", row[5])}
    assert len(symbols) >= 29
    missing = {symbol for symbol in symbols if f"`{symbol}`" not in tour}
    assert missing <= {"Counters"}  # of it, the tour names the module


def test_the_json_shown_is_that_of_grading(tmp_path: Path) -> None:
    lab = find("bloom")
    body = "raise NotImplementedError"
    head, found, rest = lab.starter().partition("def probes")
    rounded = rest.replace(body, "return max(1, min(30, round(bits_per_key * 0.69)))", 1)
    path = tmp_path / lab.file_name
    path.write_text(head + found + rounded)
    with Grader(Limits()) as grader:
        checks = grader.grade_lab(lab, {lab.file_name: str(path)}).checks
    result = next(result for result in checks if result.check == "the number of probes")
    shown = PAGE.partition("<!-- grade -->\n```json\n")[2].partition("```")[0]
    assert json.loads(shown) == vars(result)
