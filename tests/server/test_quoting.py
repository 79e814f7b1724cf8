"""Lines of words with quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmkv.server.quoting import quoted, split_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b" \t ", []),
        (b"a b\tc", [b"a", b"b", b"c"]),
        (b"\"a b\" ''", [b"a b", b""]),
        (rb'"\n\r\t\b\a\x41\xfF\q\"\\"', [b'\n\r\t\b\aA\xffq"\\']),
        (rb"'\n\'\x41\\'", [rb"\n'\x41" + b"\\\\"]),
        (b"a=b\\n", [b"a=b\\n"]),
        (b'"\\xzz"', [b"xzz"]),
        (b"a\"b c\" d'e f'", [b"ab c", b"de f"]),
        (b"\xff\x80", [b"\xff\x80"]),
    ],
)
def test_words(line: bytes, words: list[bytes]) -> None:
    assert split_words(line) == words


@pytest.mark.parametrize("line", [b'"', b"'", b'"a', b'"a"b', b"'a'b", b'a"b"c', b"'\\'", b'"\\"'])
def test_unbalanced_quotes(line: bytes) -> None:
    with pytest.raises(ValueError, match="unbalanced quotes"):
        split_words(line)


@given(st.lists(st.binary()))
def test_what_monitor_shows_is_read_back(words: list[bytes]) -> None:
    line = " ".join(quoted(word) for word in words)
    assert line.isascii()
    assert line.isprintable()
    assert split_words(line.encode()) == words
