"""Counts of errors by their first word."""

from __future__ import annotations

from lsmkv.server.errors import Errors


def test_errors_count_by_their_first_word() -> None:
    errors = Errors()
    for text in ("ERR one", "ERR two", "WRONGTYPE three"):
        errors.note(text)
    assert (errors.total, errors.counts) == (3, {"ERR": 2, "WRONGTYPE": 1})
    errors.forget()
    assert (errors.total, errors.counts) == (0, {})


def test_made_up_words_have_a_bound() -> None:
    errors = Errors()
    errors.note("ERR x")
    for number in range(1000):
        errors.note(f"MINE{number} x")
    errors.note("ERR x")
    assert (errors.total, len(errors.counts), errors.counts["ERR"]) == (1002, 128, 2)
