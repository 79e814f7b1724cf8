"""The filters that a setting would have built for a table, by the real builders."""

from __future__ import annotations

from lsmkv.errors import CorruptionError
from lsmkv.table.filter_block import (
    FilterBlockBuilder,
    FilterBlockReader,
    FilterReader,
    TableFilterReader,
    TableFilters,
)
from lsmkv.table.reader import Table
from lsmkv.tools.lab.settings import FilterSetting


class TrialFilter:
    """The filters that a setting would have built for one table.

    Call order: ``add_block* finish``.
    """

    def __init__(self, setting: FilterSetting, level: int) -> None:
        self.policy = setting.policy(level)
        """None if the table would have no filter."""
        self.takes_all_keys = self.policy is not None and setting.layout == "table"
        """Whether :meth:`finish` makes one filter of all the keys."""
        self._by_block: FilterBlockBuilder | None = None
        if self.policy is not None and setting.layout == "block":
            self._by_block = FilterBlockBuilder(self.policy)
            self._by_block.start_block(0)

    def add_block(self, offset: int, user_keys: list[bytes]) -> None:
        """The next data block; :class:`CorruptionError` if it lies before the one before it."""
        if self._by_block is not None:
            try:
                self._by_block.start_block(offset)
            except ValueError as error:
                raise CorruptionError(str(error)) from None
            self._by_block.add_keys(user_keys)

    def finish(self, table: Table, all_keys: list[bytes]) -> TableFilters | None:
        """The filters as the table would have them; None if it would have none."""
        policy = self.policy
        if policy is None:
            return None
        reader: FilterReader
        if self._by_block is not None:
            if table.num_blocks > 0:  # as the table builder does behind its last block
                self._by_block.start_block(table.index.end(table.num_blocks - 1))
            reader = FilterBlockReader(policy, self._by_block.finish())
        else:
            reader = TableFilterReader(policy, policy.create_filter(all_keys))
        return TableFilters([reader], table.index.offsets)


def filter_size(filters: TableFilters) -> int:
    """The bytes of a table's filters as they are stored, without block trailers."""
    size = 0
    for reader in filters.readers:
        if isinstance(reader, FilterBlockReader):
            size += len(reader.contents)
        else:
            size += len(reader.filter_for(0) or b"")
    return size
