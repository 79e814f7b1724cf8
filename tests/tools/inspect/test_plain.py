from __future__ import annotations

import pytest

from lsmkv.format.version_edit import FileMetaData
from lsmkv.tools.inspect.plain import shown_bytes, shown_file, whole_number


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
