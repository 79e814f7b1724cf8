"""lsmkv.tools.demo.report: the table of the demo."""

from __future__ import annotations

from demos import measurement

from lsmkv.tools.demo.report import table


def test_the_table() -> None:
    off = measurement("off", blocks=2500)
    block = measurement("block", blocks=25, asked=2500, positives=25, predicted=0.011)
    *_, exists, absent, kept, lost = [line.plain for line in table([off, block])]
    assert exists.split() == ["filters", "off", "exists", "1.000", "2,000", "-", "10.0"]
    assert absent.split() == ["absent", "2.500", "5,000", "-", "5.0"]
    assert kept.split() == ["per", "2", "KiB", "exists", "1.000", "2,000", "2.50", "10.0"]
    assert lost.split() == ["absent", "0.025", "50", "2.50", "5.0", "1.00%", "1.10%", "0.84%"]
