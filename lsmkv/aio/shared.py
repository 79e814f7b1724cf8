"""The store of several processes, for ``asyncio``."""

from __future__ import annotations

import os
from typing import Any, Literal, Unpack

from lsmkv.aio.db import DB
from lsmkv.options import OptionArguments
from lsmkv.options.shown import KeywordSignature
from lsmkv.shared import shared_db as _shared
from lsmkv.shared.leases import LeaseReport


class SharedDB(DB):
    """:class:`lsmkv.SharedDB` with ``async`` methods; otherwise as :class:`lsmkv.aio.DB`.

    Errors and costs are those of :class:`lsmkv.SharedDB`, and of a trip to a thread.

    >>> import asyncio, tempfile
    >>> async def main(place):
    ...     async with SharedDB(f"{place}/store", create_if_missing=True) as db:
    ...         await db.put(b"k", b"v")
    ...         return await db.get(b"k"), db.role
    >>> with tempfile.TemporaryDirectory() as place:
    ...     asyncio.run(main(place))
    (b'v', 'owner')
    """

    __signature__: Any = KeywordSignature(OptionArguments)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        may_own: bool = True,
        owner: Literal["process"] | None = None,
        patience: float | None = None,
        **options: Unpack[OptionArguments],
    ) -> None:
        """Does not open anything yet.  The keywords are those of :class:`lsmkv.SharedDB`."""
        super().__init__(path, **options)
        self._may_own = may_own
        self._owner = owner
        self._patience = patience

    def _open_in_thread(self) -> None:
        self._sync_db = _shared.SharedDB(
            self.path,
            may_own=self._may_own,
            owner=self._owner,
            patience=self._patience,
            **self._options,
        )

    @property
    def role(self) -> str:
        """``"owner"`` or ``"member"``, at this moment."""
        db = self._opened()[1]
        assert isinstance(db, _shared.SharedDB)
        return db.role

    async def leases(self) -> LeaseReport:
        """Who leases which versions of the store: :meth:`lsmkv.SharedDB.leases`.

        >>> import asyncio, tempfile
        >>> async def main(place):
        ...     async with SharedDB(f"{place}/store", create_if_missing=True) as db:
        ...         return await db.leases()
        >>> with tempfile.TemporaryDirectory() as place:
        ...     asyncio.run(main(place))
        LeaseReport(bytes=0, leases=())
        """
        threads, db = self._opened()
        assert isinstance(db, _shared.SharedDB)
        return await threads.run(db.leases)

    def __repr__(self) -> str:
        role = "closed" if self.closed else self.role
        return f"<lsmkv.aio.SharedDB {self.path!r} ({role})>"
