"""The table of the parts."""

from __future__ import annotations

from lsmkv.course.labs.registry import find
from lsmkv.course.store.parts import PARTS, in_use, part_named


def test_every_part_names_functions_and_checks_of_its_lab() -> None:
    for part in PARTS:
        lab = find(str(part.lab))
        assert set(part.functions) <= set(lab.functions), part.name
        assert set(part.checks) <= {check.name for check in lab.checks}, part.name
        assert part.checks
    assert len({part.name for part in PARTS}) == len(PARTS)
    assert {part.lab for part in PARTS} == set(range(1, 13))


def test_a_part_is_used_once_all_of_its_checks_pass() -> None:
    filters, asking = part_named("filters"), part_named("asking filters")
    assert in_use({}) == []
    assert in_use({4: [*filters.checks, "asking a filter"]}) == [filters]
    assert in_use({4: [*filters.checks, *asking.checks], 5: filters.checks}) == [filters, asking]
