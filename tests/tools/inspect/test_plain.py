from __future__ import annotations

import pytest

from lsmkv.format.version_edit import FileMetaData
from lsmkv.tools.inspect.plain import grouped, shown_bytes, shown_file, whole_number


def test_hostile_bytes_are_escaped_and_cut() -> None:
    shown = shown_bytes(b"\x1b[31m\xff\n" + b"x" * 1_000_000)
    assert shown["text"].startswith("\\x1b[31m\\xff\\n")
    assert shown["cut"] is True
    assert shown["bytes"] == 1_000_007
    assert len(shown["text"]) < 500
    assert shown["text"].isprintable()


def test_a_table_shows_user_keys() -> None:
    file = FileMetaData(7, 100, b"ant" + bytes(8), b"bee" + bytes(8))
    shown = shown_file(file, "000007.ldb")
    assert (shown["smallest"]["text"], shown["largest"]["text"]) == ("ant", "bee")


@pytest.mark.parametrize("text", ["", "-1", "1e3", "٣", "9" * 19, " 1", None])
def test_what_is_no_number_is_refused(text: str | None) -> None:
    with pytest.raises(ValueError, match="step must be a number"):
        whole_number(text, "step")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ends at 49161: torn", "ends at 49,161: torn"),
        ("block: offset 1234567", "block: offset 1,234,567"),
        ("a segment has 2^11 = 2048 slots", "a segment has 2^11 = 2,048 slots"),
        ("value '1234 5678'... of 49161 bytes", "value '1234 5678'... of 49,161 bytes"),
        ("/tmp/12345/001234.ldb: 999 of 1,234", "/tmp/12345/001234.ldb: 999 of 1,234"),
        ("MANIFEST-123456 has 0.12345 of 4096.", "MANIFEST-123456 has 0.12345 of 4,096."),
    ],
)
def test_numbers_of_messages_have_the_pages_format(text: str, shown: str) -> None:
    assert grouped(text) == shown
