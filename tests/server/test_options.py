"""Options of requests."""

from __future__ import annotations

import pytest

from lsmkv.server.options import Options, clip, pop_options, split_numbered, wait_seconds
from lsmkv.server.resp import CommandError


def test_options_are_read_with_their_values() -> None:
    options = Options([b"nx", b"Limit", b"a", b"b", b"x"])
    seen = []
    for word in options:
        seen.append((word, options.given, options.values(2) if word == b"LIMIT" else []))
    assert seen == [(b"NX", b"nx", []), (b"LIMIT", b"Limit", [b"a", b"b"]), (b"X", b"x", [])]
    with pytest.raises(CommandError, match="syntax error"):
        options.value()


def test_a_value_that_is_missing_is_a_syntax_error() -> None:
    options = Options([b"LIMIT", b"1"])
    assert next(options) == b"LIMIT"
    with pytest.raises(CommandError, match="syntax error"):
        options.values(2)
    assert options.value() == b"1"


def test_keys_come_after_their_number() -> None:
    args = b"ZINTER 2 a b WITHSCORES".split()
    assert split_numbered(args, 1) == ([b"a", b"b"], [b"WITHSCORES"])
    assert split_numbered(args[:4], 1) == ([b"a", b"b"], [])
    for count, error in ((b"0", "numkeys"), (b"x", "numkeys"), (b"4", "syntax")):
        with pytest.raises(CommandError, match=error):
            split_numbered([b"ZINTER", count, *args[2:]], 1)


def test_the_end_to_pop_from_comes_after_the_keys() -> None:
    ends = (b"RIGHT", b"LEFT")
    assert pop_options(b"LMPOP 1 a left".split(), 1, ends) == ([b"a"], True, 1)
    assert pop_options(b"LMPOP 1 a RIGHT COUNT 3".split(), 1, ends) == ([b"a"], False, 3)


def test_positions_are_clipped() -> None:
    assert clip(1, -1, 4) == (1, 4)
    assert clip(-9, 1, 4) == (0, 2)
    assert clip(2, 9, 4) == (2, 4)
    assert clip(3, 2, 4) == clip(4, 9, 4) == clip(0, 0, 0) == (0, 0)


def test_times_to_wait_are_not_negative() -> None:
    assert wait_seconds(b"1500") == 1.5
    with pytest.raises(CommandError, match="negative"):
        wait_seconds(b"-1")
    with pytest.raises(CommandError, match="not an integer"):
        wait_seconds(b"1.5")
