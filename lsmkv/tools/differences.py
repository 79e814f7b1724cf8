"""Output of ``lsmkv diff`` and ``lsmkv bulk diff``: a line for each differing key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lsmkv.engine.util.json_fields import json_field
from lsmkv.engine.util.pair_diff import Difference
from lsmkv.tools.console import say, write_json, write_line
from lsmkv.tools.text import shown

ONLY_A, ONLY_B, CHANGED = "only_a", "only_b", "changed"
SIGNS = {ONLY_A: "-", ONLY_B: "+", CHANGED: "!"}


class Form(NamedTuple):
    """Output format of differences."""

    keys_only: bool
    is_hex: bool
    as_json: bool
    quiet: bool


def print_differences(
    found: Iterable[Difference], form: Form, most: int | None
) -> tuple[dict[str, int], bool]:
    """Print them, at most ``most``; return the number of each kind, and True if that is all."""
    counts = dict.fromkeys(SIGNS, 0)
    for difference in found:
        counts[_change(difference)] += 1
        if not form.quiet:
            _print(difference, form)
        if sum(counts.values()) == most:
            return counts, False
    return counts, True


def say_counts(counts: dict[str, int], complete: bool) -> None:
    """The numbers in one line, for people."""
    say(
        f"only in A {counts[ONLY_A]:,}, only in B {counts[ONLY_B]:,},"
        f" changed {counts[CHANGED]:,}{'' if complete else ', and maybe more'}"
    )


def _change(difference: Difference) -> str:
    if difference.b is None:
        return ONLY_A
    return ONLY_B if difference.a is None else CHANGED


def _print(difference: Difference, form: Form) -> None:
    change = _change(difference)
    values = [("a", difference.a), ("b", difference.b)]
    present = [(name, value) for name, value in values if value is not None and not form.keys_only]
    if form.as_json:
        fields = {"change": change} | json_field("key", difference.key, form.is_hex)
        for name, value in present:
            fields |= json_field(name, value, form.is_hex)
        write_json(fields)
        return
    texts = [
        shown(data, form.is_hex) for data in (difference.key, *(value for _, value in present))
    ]
    write_line(f"{SIGNS[change]} " + "\t".join(texts))
