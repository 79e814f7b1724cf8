"""RangeDrop: tables that one edit takes out of the version, since a range deletion covers them.

``admin/delete_range.py`` makes it, and the background work commits it.  The store keeps it as long
as a reader from before pins its sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsmkv.engine.format.key_order import KeyOrder, Position

if TYPE_CHECKING:
    from lsmkv.engine.db.tree.store import View


class RangeDrop:
    """The tables, the range that they lie in, and what readers from before need."""

    def __init__(
        self,
        lower: Position | None,
        upper: Position | None,
        key: bytes,
        tables: frozenset[int],
        expected: frozenset[int],
    ) -> None:
        """``expected`` are all tables that overlapped the range when the deletions were made; if
        one is missing, a compaction has moved some of its entries."""
        self.lower = lower
        self.upper = upper
        self.key = key
        """A user key of the range, which the operation with the drop's sequence deletes."""
        self.tables = tables
        self.expected = expected
        self.sequence = 0
        """Its sequence: readers at lower ones see the tables."""
        self.view: View | None = None
        """What they read; None if there are none."""

    def covers(self, order: KeyOrder, user_key: bytes) -> bool:
        """Whether a key lies in the range."""
        lower, upper = self.lower, self.upper
        return (lower is None or order.is_at_or_after(user_key, lower)) and (
            upper is None or not order.is_at_or_after(user_key, upper)
        )

    def overlaps(self, order: KeyOrder, lower: Position | None, upper: Position | None) -> bool:
        """Whether the range has a part of another one."""
        return (self.lower is None or upper is None or order.is_before(self.lower, upper)) and (
            lower is None or self.upper is None or order.is_before(lower, self.upper)
        )
