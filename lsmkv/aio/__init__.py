"""The same store for ``asyncio``: no call blocks the event loop.

>>> import asyncio
>>> import lsmkv.aio
>>> async def main():
...     async with lsmkv.aio.open_db(":memory:") as db:
...         await db.put(b"k", b"v")
...         return [pair async for pair in db.iterator(prefix=b"k")]
>>> asyncio.run(main())
[(b'k', b'v')]

Names and arguments are those of :class:`lsmkv.DB`, and so are costs and errors.  Calls run in a few
threads of the store (:mod:`lsmkv.aio.threads`).  A call costs a trip to such a thread and
back: tens of microseconds on top of its work.  So for many keys prefer ``multi_get``, a batch, or
an iterator, which fetches a chunk per trip.

**Cancellation.**  A cancelled call that no thread has started is dropped: it has no effect.  A call
that a thread has started ends first, and then the cancellation continues.  So once ``await
db.put(...)`` is over, the write has happened completely or never will, and an iterator may be used
again or closed.  The exceptions are ``compact_range``, ``delete_range``, ``ingest``, ``verify``
and ``check``: they continue in their thread without their caller.  ``close`` ends a compaction or
an ingest.
"""

from __future__ import annotations

from lsmkv.aio.batch import WriteBatch
from lsmkv.aio.batches import Batches
from lsmkv.aio.cache import Cache
from lsmkv.aio.db import DB, open_db
from lsmkv.aio.iterator import Iterator
from lsmkv.aio.prefixed import PrefixedDB
from lsmkv.aio.shards import Shards, open_shards
from lsmkv.aio.shared import SharedDB
from lsmkv.aio.snapshot import Snapshot
from lsmkv.aio.transaction import Transaction

__all__ = [
    "Batches",
    "Cache",
    "DB",
    "Iterator",
    "PrefixedDB",
    "SharedDB",
    "Shards",
    "Snapshot",
    "Transaction",
    "WriteBatch",
    "open_db",
    "open_shards",
]
