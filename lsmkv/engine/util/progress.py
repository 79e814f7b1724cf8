"""The callback by which long operations report how far they have come."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""``progress(done, total, phase)``: both numbers in the operation's unit, and what it is doing."""
