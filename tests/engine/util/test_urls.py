"""URLs and local paths, and how they differ."""

from __future__ import annotations

import pytest

from lsmkv.engine.util.urls import is_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("s3://bucket/x", True),
        ("file:///x", True),
        ("HTTP://host", True),
        ("git+ssh://host", True),
        ("/data", False),
        ("data/x", False),
        ("C:\\data", False),
        ("c:/data", False),
        ("x:", False),
        ("", False),
        ("/s3://bucket", False),
    ],
)
def test_what_a_url_is(text: str, url: bool) -> None:
    assert is_url(text) == url
