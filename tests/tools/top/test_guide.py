"""lsmkv.tools.top.guide: why nothing is shown, and how that changes."""

from __future__ import annotations

import os

from watching import Owner

from lsmkv.tools.top.guide import HELP, explanation


def test_nobody_has_the_store_open() -> None:
    owner = Owner()
    owner.lock.close()
    text = explanation(owner.look()).plain
    assert text.startswith("No process has this store open.")
    assert "lsmkv.DB('store', publish_stats=True)" in text
    assert "killed" not in text


def test_somebody_who_publishes_nothing() -> None:
    owner = Owner()
    text = explanation(owner.look()).plain
    assert text.startswith(f"Process {os.getpid()} has this store open, and publishes nothing.")
    assert "publish_stats=True" in text


def test_a_killed_owner() -> None:
    owner = Owner()
    owner.publish(-60.0, opened=owner.now.time - 100)
    owner.lock.close()
    text = explanation(owner.look()).plain
    assert f"Process {owner.now.pid} published here, last 60 s ago, and was killed" in text


def test_damage() -> None:
    owner = Owner()
    owner.write(b"\x1b[31m")
    text = explanation(owner.look()).plain
    assert text.startswith("What is published cannot be read")
    assert "STATS.json" in text
    assert "\x1b" not in text


def test_a_hostile_path_is_escaped() -> None:
    owner = Owner("[red]\x1b[31m")
    text = explanation(owner.look()).plain
    assert "\x1b" not in text
    assert "[red]" in text


def test_every_panel_is_explained() -> None:
    assert [heading for heading, _ in HELP] == [
        *("Operations", "Processes", "Leases with names", "Hits", "Filters", "Written"),
        *("Background", "Keys"),
    ]
