"""Internal keys, read and made."""

from __future__ import annotations

import pytest

from lsmkv.files import make_key, parse_key


def test_keys_are_read_and_made() -> None:
    for key in ((b"", 0, 0), (b"user", (1 << 56) - 1, 1)):
        assert parse_key(make_key(*key)) == key
    for sequence, kind in ((-1, 1), (1 << 56, 1), (0, 2)):
        with pytest.raises(ValueError, match="not a valid tag"):
            make_key(b"", sequence, kind)
