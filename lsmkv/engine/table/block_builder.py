"""Builds a block: sorted entries with shared prefixes, and restart points to search by.

The layout is in :mod:`lsmkv.engine.table.block`.  A table builder owns three of them, in one
thread.  (Source: LevelDB, ``table/block_builder.cc``.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i64_le

from lsmkv.engine.format.keys import TAG_SIZE
from lsmkv.engine.util.coding import append_fixed32, append_varint
from lsmkv.engine.util.compression import DEFAULT_MAX_BLOCK_BYTES

if TYPE_CHECKING:
    from mypy_extensions import i64

_LARGE: Final = 1 << 20
"""A builder reuses its memory for the next block only if it has fewer bytes than this."""


class BlockBuilder:
    """Builds blocks, one after another; the caller ensures that the keys of a block strictly
    ascend.

    Call order: ``((add | add_entries)* finish reset)*``.

    Once the keys of a block have shared ``max_shared`` bytes, the next ones are written whole.
    LevelDB's default settings never reach that.
    """

    def __init__(self, restart_interval: int, max_shared: int = DEFAULT_MAX_BLOCK_BYTES) -> None:
        if restart_interval < 1:
            raise ValueError(f"restart_interval must be at least 1, not {restart_interval}")
        self._restart_interval = restart_interval
        self._max_shared = max_shared
        self._bytes = BytesWriter()
        self.reset()

    def reset(self) -> None:
        """Begin a new block."""
        if len(self._bytes) < _LARGE:
            self._bytes.truncate(0)
        else:
            self._bytes = BytesWriter()
        self._restarts = [0]
        self._since_restart: i64 = 0
        self._interval: i64 = self._restart_interval  # 0 once every key has to be whole
        self._shared_bytes: i64 = 0
        self.last_key = b""
        self._finished = False

    @property
    def empty(self) -> bool:
        """True if nothing was added since the last reset."""
        return len(self._bytes) == 0

    def size_estimate(self) -> int:
        """Bytes that :meth:`finish` would return now: exact."""
        return len(self._bytes) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        """Append one entry.  O(len(key) + len(value))."""
        if self._finished:
            raise ValueError("add after finish: reset the builder first")
        shared: i64 = 0
        if self._since_restart < self._interval:
            last = self.last_key
            shorter: i64 = min(len(last), len(key))
            while shared < shorter and last[shared] == key[shared]:
                shared += 1
        else:
            self._restarts.append(len(self._bytes))
            self._since_restart = 0
        unshared: i64 = len(key) - shared
        size: i64 = len(value)
        data = self._bytes
        _append_header(data, shared, unshared, size)
        data.write(key[shared:])
        data.write(value)
        self._shared_bytes += shared
        if self._shared_bytes > self._max_shared:
            self._interval = 0
        self.last_key = key
        self._since_restart += 1

    def add_entries(
        self, user_keys: list[bytes], tagged: list[bytes], at: i64, stop: i64, full: i64
    ) -> i64:
        """Append the entries from ``at`` to ``stop``, or until the block has ``full`` bytes.

        The user keys are in bytewise order, and ``tagged`` are the tagged values.  Returns the
        index of the first entry that was not added.  It stops early before an entry that is out of
        order and before one that only :meth:`add` can append, for example the first of a block.
        """
        if self._finished or self.empty:
            return at
        data = self._bytes
        restarts = self._restarts
        since: i64 = self._since_restart
        interval: i64 = self._interval
        spent: i64 = self._shared_bytes
        most: i64 = self._max_shared
        size: i64 = len(data)
        room: i64 = full - 4 * len(restarts) - 4
        last = self.last_key[: len(self.last_key) - TAG_SIZE]
        prefix = b""  # the last key begins with it
        known: i64 = 0
        begun = at
        while at < stop and size < room:
            key = user_keys[at]
            version = tagged[at]
            shared: i64 = 0
            if since < interval:
                shorter: i64 = len(last) if len(last) < len(key) else len(key)
                if known > 0 and key.startswith(prefix):
                    shared = known
                while shared < shorter and last[shared] == key[shared]:
                    shared += 1
                if shared == shorter or last[shared] > key[shared]:
                    break  # one is a prefix of the other, so the tags decide
                if shared < known or shared > known + 3:
                    prefix = key[:shared]
                    known = shared
            else:
                if key <= last:
                    break
                restarts.append(size)
                room -= 4
                since = 0
                known = 0
            unshared: i64 = len(key) - shared + TAG_SIZE
            length: i64 = len(version) - TAG_SIZE
            _append_header(data, shared, unshared, length)
            spent += shared
            if spent > most:
                interval = 0
            data.write(key[shared:])
            data.write(version)
            size = len(data)
            last = key
            since += 1
            at += 1
        if at > begun:
            self.last_key = last + tagged[at - 1][:TAG_SIZE]
        self._since_restart = since
        self._interval = interval
        self._shared_bytes = spent
        return at

    def finish(self) -> bytes:
        """The block's bytes."""
        if self._finished:
            raise ValueError("finish twice: reset the builder first")
        self._finished = True
        data = self._bytes
        for restart in self._restarts:
            append_fixed32(data, restart)
        append_fixed32(data, len(self._restarts))
        return data.getvalue()


def _append_header(data: BytesWriter, shared: i64, unshared: i64, size: i64) -> None:
    """Write the three lengths before an entry."""
    if (shared | unshared | size) < 128:
        end: i64 = len(data) + 3
        write_i64_le(data, shared | unshared << 8 | size << 16)
        data.truncate(end)
    else:
        append_varint(data, shared)
        append_varint(data, unshared)
        append_varint(data, size)
