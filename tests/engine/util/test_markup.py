"""Tables of HTML with bars."""

from __future__ import annotations

import re

import pytest

from lsmkv.engine.util.markup import bar, table


@pytest.mark.parametrize(
    ("share", "width"), [(1.0, "10.0"), (0.5, "5.0"), (1e-6, "0.1"), (7.0, "10.0")]
)
def test_a_bar_is_as_long_as_its_share(share: float, width: str) -> None:
    assert re.findall(r"width:([\d.]+)em", bar(share)) == [width]


@pytest.mark.parametrize("share", [0.0, -1.0])
def test_no_bar_for_nothing(share: float) -> None:
    assert bar(share) == ""


def test_a_table_has_a_cell_for_each_figure() -> None:
    html = table(["level", ""], [["0", 0.5], ["<b>", 0.0]])
    assert html.count("<tr>") == 3
    assert html.count("<th ") == 2
    assert html.count("<td ") == 4
    assert html.count("width:5.0em") == 1
    assert "<b>" not in html
