"""EXPLAIN for a Get: the steps of a lookup, as data.

``DB.explain`` calls it without a lock, for one view of the store.  Explaining changes nothing in
the store: no counter is increased, no table stays open, no block enters the block cache, and no
seek is charged to a table.  It reads more than the Get would, to show which older versions the
answer hides; what the Get itself would read is reported separately.
"""

from __future__ import annotations

from lsmkv.engine.db.handles.explanation import Explanation
from lsmkv.engine.db.handles.steps import BlockStep, FilterStep, KeyVersion, TableStep
from lsmkv.engine.db.tree.memtable import MemTable
from lsmkv.engine.db.tree.store import Store
from lsmkv.engine.errors import CorruptionError
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.fuse import BinaryFusePolicy, FuseLook, look_at_fuse
from lsmkv.engine.format.keys import KIND_VALUE, TAG_SIZE, sequence_in, unpack
from lsmkv.engine.format.version_edit import FileMetaData
from lsmkv.engine.table.format import BLOCK_TRAILER_SIZE
from lsmkv.engine.table.inspection import BlockLook, FilterLook, look
from lsmkv.engine.table.reader import Table


class Explainer:
    """Explains lookups in one view of a store, which it holds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._view = store.open_view()
        self._versions: list[KeyVersion] = []
        self._missed: list[KeyVersion] = []
        self._tables: list[TableStep] = []
        self._memtables: list[str] = []
        self._blocks_searched = 0
        self._blocks_wasted = 0
        self._blocks_read = 0
        self._bytes_read = 0
        self._blocks_without = 0
        self._bytes_without = 0

    def explain(self, key: bytes) -> Explanation:
        """The whole story of ``key``."""
        view = self._view
        self._look_into("memtable", view.memtable, key)
        if view.immutable is not None:
            self._look_into("immutable memtable", view.immutable, key)
        at_hand = not self._versions and key in view.version.row_cache.values
        for level, file in view.version.candidates(self._store.order.of(key)):
            self._ask(level, file, key)
        chosen = self._versions[0] if self._versions else None
        return Explanation(
            key=key,
            found=chosen is not None and not chosen.deleted,
            memtables=tuple(self._memtables),
            tables=tuple(self._tables),
            chosen=chosen,
            shadowed=tuple(self._versions[1:]),
            missed=tuple(self._missed),
            blocks_searched=self._blocks_searched,
            blocks_wasted=self._blocks_wasted,
            blocks_read=self._blocks_read,
            bytes_read=self._bytes_read,
            blocks_without_filters=self._blocks_without,
            bytes_without_filters=self._bytes_without,
            at_hand=at_hand,
        )

    def _look_into(self, name: str, memtable: MemTable, key: bytes) -> None:
        """Note the memtable's versions of the key, from the newest on."""
        if not self._versions:
            self._memtables.append(name)
        for row in memtable.versions(key):
            deleted = row[0] != KIND_VALUE
            self._versions.append(KeyVersion(name, sequence_in(row), deleted, len(row) - TAG_SIZE))

    def _ask(self, level: int, file: FileMetaData, key: bytes) -> None:
        """One table, as the Get does it; and then, for what it hides, without regard to filters."""
        asked = not self._versions
        opened = self._store.tables.opened(file.number)
        table = self._store.tables.peek(file) if opened is None else opened
        name = table.path.rsplit("/", 1)[-1]
        found = look(table, key)
        opens = asked and opened is None
        checked = opens and self._keeps_first_block(table, found.block)
        filters = tuple(self._filter_step(step, key) for step in found.filters)
        verdict = "the key lies past its last index entry"
        block: BlockStep | None = None
        spared: BlockStep | None = None
        wasted = wrong = False
        if found.block is not None:
            versions = self._versions_in(table, found.block, key, name)
            ruled_out = any(not step.may_match for step in filters)
            if ruled_out:
                spared = _block_step(found.block, checked)
                verdict = "a filter says no: no block is searched"
                wrong = bool(versions)
                if wrong:
                    liar = found.filters[-1]  # the one that said no
                    verdict += "; the block holds the key all the same: this filter is wrong"
                    verdict += f" (filter per {liar.layout}, {liar.policy.name})"
            else:
                block = _block_step(found.block, checked)
                verdict = "found" if versions else "not in the block"
                if filters and not versions:
                    verdict += ": a false positive of the filter"
            wasted = asked and not ruled_out and not versions
            if asked:
                self._count(found.block, checked, ruled_out, wasted)
            if asked and ruled_out:
                self._missed += versions
            else:
                self._versions += versions
        self._tables.append(
            TableStep(
                level=level,
                name=name,
                size=file.size,
                smallest=file.smallest[:-8],
                largest=file.largest[:-8],
                asked=asked,
                index_key=None if found.index_key is None else found.index_key[:-8],
                filters=filters,
                block=block,
                spared=spared,
                wasted=wasted,
                wrong=wrong,
                verdict=verdict if asked else "not asked: the answer is known",
                metadata_reads=table.metadata_reads if opens else 0,
                identity_check_reads=table.identity_check.blocks_read if opens else 0,
            )
        )

    def _keeps_first_block(self, table: Table, block: BlockLook | None) -> bool:
        """Return True if a block is the first of its table, and the block cache keeps it when the
        Get opens the table."""
        cache = self._store.options.block_cache
        if block is None or cache is None or block.offset != table.index.offsets[0]:
            return False
        return min(block.plain_size, block.stored_size) <= cache.capacity

    def _count(self, block: BlockLook, checked: bool, ruled_out: bool, wasted: bool) -> None:
        self._blocks_without += 1
        self._bytes_without += block.stored_size
        if not ruled_out:
            self._blocks_searched += 1
            self._blocks_wasted += wasted
            if not block.cached and not checked:
                self._blocks_read += 1
                self._bytes_read += block.stored_size

    def _filter_step(self, asked: FilterLook, key: bytes) -> FilterStep:
        policy = asked.policy
        positions: tuple[int, ...] = ()
        fuse: FuseLook | None = None
        if isinstance(policy, (BloomFilterPolicy, Bloom64Policy)):
            positions = tuple(policy.probed_positions(policy.key_hash(key), asked.data))
        elif isinstance(policy, BinaryFusePolicy):
            fuse = look_at_fuse(policy.key_hash(key), asked.data)
            if fuse is None:  # a table of few keys: a Bloom filter under the same name
                positions = tuple(policy.probed_positions(policy.key_hash(key), asked.data))
        return FilterStep(
            layout=asked.layout,
            policy=policy.name,
            size=len(asked.data),
            positions=positions,
            values=tuple(bool(asked.data[bit // 8] >> bit % 8 & 1) for bit in positions),
            may_match=asked.may_match,
            slots=() if fuse is None else fuse.slots,
            slot_values=() if fuse is None else fuse.values,
            fingerprint=None if fuse is None else fuse.fingerprint,
        )

    def _versions_in(
        self, table: Table, block: BlockLook, key: bytes, name: str
    ) -> list[KeyVersion]:
        """The versions of the key in a block, newest first; any in the next block are left out."""
        compare = self._store.comparator.user_comparator.compare
        found: list[KeyVersion] = []
        for internal_key, value in zip(*block.entries, strict=True):
            try:
                user_key, sequence, kind = unpack(internal_key)
            except CorruptionError as error:
                raise CorruptionError(error.reason, table.path, block.offset) from None
            if compare(user_key, key) == 0:
                found.append(KeyVersion(name, sequence, kind != KIND_VALUE, len(value)))
        return found


def _block_step(block: BlockLook, checked: bool) -> BlockStep:
    return BlockStep(
        offset=block.offset,
        size=block.stored_size - BLOCK_TRAILER_SIZE,
        cached=block.cached,
        bytes_read=0 if block.cached or checked else block.stored_size,
        compression=block.codec,
        plain_size=block.plain_size,
        by_identity_check=checked,
    )
