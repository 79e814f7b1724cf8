from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

from lsmkv.tools.report.page import Answer, html_page

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 &amp;"


class Parts(HTMLParser):
    """The scripts and styles of a page, and what a page of one file must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self._open: tuple[str, dict[str, str | None]] | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        assert not any(name.startswith("on") or name in ("src", "style") for name in given)
        self._open = (tag, given)
        if tag in ("meta", "link"):
            self.found.append((tag, given, ""))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[0] in ("script", "style", "title"):
            self.found.append((*self._open, data))

    def handle_endtag(self, tag: str) -> None:
        self._open = None


def parts(page: str) -> list[tuple[str, dict[str, str | None], str]]:
    parser = Parts()
    parser.feed(page)
    return parser.found


def test_hostile_text_ends_no_element() -> None:
    page = html_page(HOSTILE, [Answer("get", {"key": HOSTILE}, {"key": HOSTILE})])
    found = parts(page)
    data = [text for tag, given, text in found if given.get("type") == "application/json"]
    assert json.loads("".join(data))[0]["answer"]["key"] == HOSTILE
    assert "<" not in "".join(data)
    assert "<script>alert" not in page
    titles = [text for tag, _, text in found if tag == "title"]
    assert HOSTILE in html.unescape("".join(titles)) or HOSTILE in "".join(titles)


def test_the_policy_allows_its_own_parts_alone() -> None:
    found = parts(html_page("t", []))
    policy = next(
        given["content"] or ""
        for tag, given, _ in found
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    code = [
        text for tag, given, text in found if tag in ("script", "style") and "type" not in given
    ]
    assert len(code) == 6
    for text in code:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_it_asks_for_nothing() -> None:
    page = html_page("t", [])
    assert not re.search(r"<(?:script|img|iframe)[^>]+src=", page)
    links = [given for tag, given, _ in parts(page) if tag == "link"]
    assert links == [{"rel": "icon", "href": "data:,"}]
