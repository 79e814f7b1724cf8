"""CHANGELOG.md has the form of Keep a Changelog 1.1, and its newest release is pyproject.toml's."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CHANGELOG.md"
SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)( \[YANKED\])?")


def faults(page: str, version: str) -> list[str]:
    """What is wrong with a changelog, for a project of this version."""
    found: list[str] = []
    if not page.startswith("# Changelog\n\n"):
        found.append("title")
    headings = re.findall(r"(?m)^## (.*)$", page)
    if headings[:1] != ["[Unreleased]"]:
        found.append("unreleased comes first")
    releases = [RELEASE.fullmatch(heading) for heading in headings[1:]]
    if not all(releases):
        found.append("heading of a release")
    numbers = [tuple(int(one[at]) for at in (1, 2, 3)) for one in releases if one]
    dates = [one[4] for one in releases if one]
    if numbers != sorted(set(numbers), reverse=True) or dates != sorted(dates, reverse=True):
        found.append("newest first")
    for date in dates:
        try:
            datetime.date.fromisoformat(date)
        except ValueError:
            found.append(f"date {date}")
    if not numbers or ".".join(map(str, numbers[0])) != version:
        found.append("newest release is the version")
    for part in re.split(r"(?m)^## .*\n", page)[1:]:
        names = re.findall(r"(?m)^### (.*)$", part)
        if [name for name in SECTIONS if name in names] != names:
            found.append(f"sections {names}")
        if any(not re.match(r"\n*- ", text) for text in re.split(r"(?m)^### .*\n", part)[1:]):
            found.append("a section is a list")
        entries = re.findall(r"(?m)^- .*\n(?:  .*\n)*", part)
        found += [
            f"twice: {one[2:].strip()}" for one in sorted({*entries}) if entries.count(one) > 1
        ]
    linked = re.findall(r"(?m)^\[([^\]]+)\]: \S+$", page)
    if linked != [one.partition("]")[0].removeprefix("[") for one in headings]:
        found.append("a link for each heading")
    return found


def test_the_changelog_keeps_the_form() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert faults(PAGE.read_text(encoding="utf-8"), pyproject["project"]["version"]) == []


GOOD = """# Changelog

## [Unreleased]

### Fixed
- That.

## [1.10.0] - 2026-02-03

### Added
- This.

### Removed
- The other.

## [1.9.2] - 2026-01-31 [YANKED]

[Unreleased]: https://example.org/compare
[1.10.0]: https://example.org/1.10.0
[1.9.2]: https://example.org/1.9.2
"""


def test_a_good_page_has_no_faults() -> None:
    assert faults(GOOD, "1.10.0") == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("# Changelog", "# Changes", "title"),
        ("## [Unreleased]\n", "", "unreleased comes first"),
        ("## [Unreleased]", "## Unreleased", "unreleased comes first"),
        ("[1.10.0] - ", "1.10.0 - ", "heading of a release"),
        ("2026-02-03", "3 February 2026", "heading of a release"),
        ("2026-02-03", "2026-02-30", "date 2026-02-30"),
        ("2026-02-03", "2026-01-03", "newest first"),
        ("## [1.9.2]", "## [1.11.2]", "newest first"),
        ("## [1.10.0]", "## [1.10.1]", "newest release is the version"),
        ("### Added", "### New", "sections ['New', 'Removed']"),
        ("### Added", "### Security", "sections ['Security', 'Removed']"),
        ("- The other.", "The other.", "a section is a list"),
        ("- The other.\n", "", "a section is a list"),
        ("- The other.\n", "- This.\n", "twice: This."),
        ("[1.9.2]: https://example.org/1.9.2\n", "", "a link for each heading"),
    ],
)
def test_faults_are_found(old: str, new: str, fault: str) -> None:
    assert old in GOOD
    assert fault in faults(GOOD.replace(old, new, 1), "1.10.0")
