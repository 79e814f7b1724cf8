"""The names of files, read and made."""

from __future__ import annotations

import pytest

from lsmkv.files import FileName, make_name, parse_name


def test_names_are_read_and_made() -> None:
    for name in ("000005.ldb", "000005.log", "MANIFEST-000005", "CURRENT", "LOCK", "LOG", "TRACE"):
        parsed = parse_name(name)
        assert parsed is not None
        assert make_name(*parsed) == name
    assert parse_name("000005.sst") == FileName("table", 5)
    assert make_name("table", 5, old=True) == "000005.sst"
    for name in ("", "notes.txt", "5.ldb.old", "MANIFEST-", "MANIFEST-x", "²5.ldb"):
        assert parse_name(name) is None
    with pytest.raises(ValueError, match="stats"):
        make_name("stats")
