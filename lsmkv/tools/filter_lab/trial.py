"""The filters that a setting would have built for a table, by the real builders."""

from __future__ import annotations

from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.table.filter_block import (
    FilterBlockBuilder,
    FilterBlockReader,
    FilterReader,
    TableFilterBuilder,
    TableFilterReader,
    TableFilters,
)
from lsmkv.engine.table.reader import Table
from lsmkv.tools.filter_lab.settings import Layout


class TrialFilter:
    """The filters that a policy would have built for one table, in one layout.

    Call order: ``add_block* finish``.
    """

    def __init__(self, policy: FilterPolicy | None, layout: Layout) -> None:
        """``policy`` is None if the table would have no filter."""
        self._policy = policy
        self._by_block: FilterBlockBuilder | None = None
        self._whole: TableFilterBuilder | None = None
        if policy is not None and layout == "block":
            self._by_block = FilterBlockBuilder(policy)
            self._by_block.start_block(0)
        elif policy is not None:
            self._whole = TableFilterBuilder(policy)

    def add_block(self, offset: int, user_keys: list[bytes]) -> None:
        """The next data block; :class:`CorruptionError` if it precedes the previous one."""
        if self._whole is not None:
            self._whole.add_keys(user_keys)
        if self._by_block is not None:
            try:
                self._by_block.start_block(offset)
            except ValueError as error:
                raise CorruptionError(str(error)) from None
            self._by_block.add_keys(user_keys)

    def finish(self, table: Table) -> TableFilters | None:
        """The filters as the table would have them; None if it would have none."""
        policy = self._policy
        if policy is None:
            return None
        reader: FilterReader
        if self._by_block is not None:
            if table.num_blocks > 0:  # as the table builder does after its last block
                self._by_block.start_block(table.index.end(table.num_blocks - 1))
            reader = FilterBlockReader(policy, self._by_block.finish())
        else:
            assert self._whole is not None
            reader = TableFilterReader(policy, self._whole.finish())
        return TableFilters([reader], table.index.offsets)


def filter_size(filters: TableFilters) -> int:
    """The bytes of a table's filters as they are stored, without block trailers."""
    return sum(len(reader.contents) for reader in filters.readers)
