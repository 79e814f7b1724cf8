"""Outlines: one list of lines, as text and as HTML."""

from __future__ import annotations

import pytest

from lsmkv.engine.util.outline import EDGES, Line, Tone, as_html, as_text

LINES = [
    Line(0, "plain", "heading"),
    Line(1, "saved", "first"),
    Line(2, "quiet", "within"),
    Line(3, "wasted", "deep"),
    Line(1, "read", "second"),
]


def test_text_is_indented() -> None:
    assert as_text(LINES) == "heading\n  first\n    within\n      deep\n  second"
    assert as_text([]) == ""


def test_html_has_a_list_for_each_depth() -> None:
    html = as_html(LINES)
    assert html.count("<ul") == html.count("</ul>") == 4
    assert html.count("<li") == html.count("</li>") == len(LINES)
    assert html.index("deep") < html.index("</ul></li></ul></li><li") < html.index("second")
    assert as_html([]) == ""


@pytest.mark.parametrize("tone", EDGES)
def test_each_tone_has_its_edge(tone: Tone) -> None:
    assert EDGES[tone] in as_html([Line(0, tone, "text")])


def test_text_is_escaped() -> None:
    html = as_html([Line(0, "quiet", "<img src=x onerror='alert(1)'> & \"")])
    assert "<img" not in html
    assert "&lt;img src=x onerror=&#x27;alert(1)&#x27;&gt; &amp; &quot;" in html
