"""The store of several processes, for ``asyncio``."""

from __future__ import annotations

import os
from typing import Any, Literal, Unpack

from lsmkv.aio.db import DB
from lsmkv.aio.forwarding import forwarded
from lsmkv.engine.options import OptionArguments
from lsmkv.engine.options.shown import KeywordSignature
from lsmkv.shared import shared_db as _shared


class SharedDB(DB):
    """:class:`lsmkv.SharedDB` with ``async`` methods; otherwise as :class:`lsmkv.aio.DB`.

    Errors and costs are those of :class:`lsmkv.SharedDB`, and of a trip to a thread.

    >>> import asyncio, tempfile
    >>> async def main(place):
    ...     async with SharedDB(f"{place}/store", create_if_missing=True) as db:
    ...         await db.put(b"k", b"v")
    ...         return await db.get(b"k"), db.role, db.owner == os.getpid(), db.members
    >>> with tempfile.TemporaryDirectory() as place:
    ...     asyncio.run(main(place))
    (b'v', 'owner', True, [])
    """

    __signature__: Any = KeywordSignature(OptionArguments)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        may_own: bool = True,
        owner: Literal["process"] | None = None,
        patience: float | None = 30.0,
        python: str | os.PathLike[str] | None = None,
        handover: bool = False,
        **options: Unpack[OptionArguments],
    ) -> None:
        """Does not open anything yet.  The keywords are those of :class:`lsmkv.SharedDB`."""
        super().__init__(path, **options)
        self._may_own = may_own
        self._owner = owner
        self._patience = patience
        self._python = python
        self._handover = handover

    def _made(self) -> _shared.SharedDB:
        return _shared.SharedDB(
            self.path,
            may_own=self._may_own,
            owner=self._owner,
            patience=self._patience,
            python=self._python,
            handover=self._handover,
            **self._options,
        )

    def _shared_db(self) -> _shared.SharedDB:
        db = self._opened()[1]
        assert isinstance(db, _shared.SharedDB)
        return db

    @property
    def role(self) -> str:
        """``"owner"`` or ``"member"``, at this moment."""
        return self._shared_db().role

    @property
    def owner(self) -> int:
        """The process id of the owner."""
        return self._shared_db().owner

    @property
    def members(self) -> list[int]:
        """The process ids of the members: :attr:`lsmkv.SharedDB.members`."""
        return self._shared_db().members

    @forwarded(_shared.SharedDB.leases)
    def leases(self) -> None:
        """Report which processes lease which versions of the store: :meth:`lsmkv.SharedDB.leases`.

        >>> import asyncio, tempfile
        >>> async def main(place):
        ...     async with SharedDB(f"{place}/store", create_if_missing=True) as db:
        ...         return await db.leases()
        >>> with tempfile.TemporaryDirectory() as place:
        ...     asyncio.run(main(place))
        LeaseReport(bytes=0, leases=(), names=())
        """

    def __repr__(self) -> str:
        role = "closed" if self.closed else self.role
        return f"<lsmkv.aio.SharedDB {self.path!r} ({role})>"
