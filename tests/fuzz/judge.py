"""What all targets judge by."""

from __future__ import annotations


class Finding(AssertionError):
    """What a judge raises."""


def expect(condition: bool, what: str) -> None:
    """Raise :class:`Finding` unless the condition holds."""
    if not condition:
        raise Finding(what)
