"""TableWriter: writes a table outside of any store, to be ingested later.

User code calls it, from one thread, and no lock is taken.
"""

from __future__ import annotations

import errno
import itertools
import os
import warnings
from types import TracebackType
from typing import Any, Never, Self, Unpack

from mypy_extensions import mypyc_attr

from lsmkv.engine.db.admin.ingest import INGEST_SEQUENCE
from lsmkv.engine.env.base import Directory, WritableFile
from lsmkv.engine.env.local import LocalEnv
from lsmkv.engine.errors import ClosedError, Error, raise_typed
from lsmkv.engine.format.keys import KIND_VALUE, pack
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.options import TableArguments, make_options, refuse_unknown
from lsmkv.engine.options.shown import KeywordSignature
from lsmkv.engine.table.builder import TableBuilder
from lsmkv.engine.util.arguments import BytesLike, as_bytes
from lsmkv.engine.util.coding import MAX_UINT32
from lsmkv.engine.util.copying import refuse_copy
from lsmkv.engine.util.introspection import described

_writers = itertools.count()


@described
@mypyc_attr(native_class=False)  # weak references and subclasses, as for DB
class TableWriter:
    """Writes sorted entries to one table, a file that :meth:`lsmkv.DB.ingest` takes.

    Call order: ``add* (finish | close)``.  The file is made under a temporary name next to ``path``
    and gets its own name once it is complete and durable.  ``close`` without ``finish`` removes it,
    and so does a ``with`` block that raises; a ``with`` block that ends normally finishes it.

    The file is a table in LevelDB's format (by convention, ``.ldb``) whose keys are internal keys
    of sequence 0.  A table without entries may be ingested too, and changes nothing, so a batch job
    needs no special case for its empty parts.

    Not safe for use by several threads at once.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.TableWriter("/bulk.ldb", env=env) as table:
    ...     table.add(b"a", b"1")
    ...     table.add(b"b", b"2")
    >>> with lsmkv.DB("/db", create_if_missing=True, env=env) as db:
    ...     db.ingest(["/bulk.ldb"])
    ...     db.get(b"b")
    b'2'

    Without a ``with`` block:

    >>> table = lsmkv.TableWriter("/more.ldb", env=env, block_size=16 * 1024)
    >>> table.add(b"c", b"3")
    >>> table.finish()
    >>> table.num_entries, table.file_size > 100, table.closed
    (1, True, True)
    >>> given_up = lsmkv.TableWriter("/less.ldb", env=env)
    >>> given_up.add(b"d", b"4")
    >>> given_up.close()
    """

    _builder: TableBuilder | None = None  # None before it is open and after it is closed
    __signature__: Any = KeywordSignature(TableArguments)

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[TableArguments]) -> None:
        """Begin the table ``path``, by convention ``something.ldb``.

        The keywords are those of ``lsmkv.DB`` that shape a table.  ``comparator`` and
        ``comparator_name`` must be those of the store that will ingest the file.  Ingesting
        rewrites the entries with the store's own settings, so all but the comparator and the
        ``env`` matter only for a file that is read by other means.

        Raises :class:`IOError` with ``errno.EEXIST`` if ``path`` exists, or with any other error of
        the file system; ``TypeError`` and ``ValueError`` for wrong arguments.
        """
        refuse_unknown(options, TableArguments.__annotations__, "TableWriter")
        settings = make_options(**options, lru_cache_size=0)
        self.path: str = os.fsdecode(path)
        """The path, as it was given."""
        parent, self._name = os.path.split(self.path)
        if not self._name:
            raise ValueError(f"not the path of a file: {self.path!r}")
        self._compare = settings.comparator.compare
        self._last = b""
        self._intact = True
        try:
            env = LocalEnv() if settings.env is None else settings.env
            self._directory: Directory = env.open_directory(parent or ".")
            try:
                self._refuse_if_taken()
                self._file = self._create_partial()
            except BaseException:
                self._directory.close()
                raise
        except OSError as error:
            raise_typed(error)
        self._written = TableBuilder(settings, self._file)
        self._builder = self._written

    @property
    def num_entries(self) -> int:
        """Entries added so far."""
        return self._written.num_entries

    @property
    def file_size(self) -> int:
        """Bytes of the file, without the unfinished block; once finished, of the whole file."""
        return self._written.file_size

    @property
    def closed(self) -> bool:
        """True if the table was finished or closed."""
        return self._builder is None

    def add(self, key: BytesLike, value: BytesLike) -> None:
        """Append an entry.  Amortised cost: its share of a block that is compressed and written.

        ``ValueError`` unless ``key`` sorts after the key before it; then the entry is not added,
        and more may follow.  After any other error the table can only be closed.
        """
        builder = self._open()
        user_key = as_bytes(key, "key")
        content = as_bytes(value, "value")
        if len(user_key) > MAX_UINT32 - 8 or len(content) > MAX_UINT32:
            raise ValueError("key or value too large: the limit is 4 GiB each")
        if builder.num_entries == 0:
            self._compare(
                user_key, user_key
            )  # raises if the user's comparator cannot compare the key
        elif self._compare(user_key, self._last) <= 0:
            raise ValueError(f"keys must ascend: {user_key!r} does not sort after {self._last!r}")
        self._intact = False
        try:
            builder.add(pack(user_key, INGEST_SEQUENCE, KIND_VALUE), content)
        except OSError as error:
            raise_typed(error)
        self._last = user_key
        self._intact = True

    def finish(self) -> None:
        """Complete the file, make it durable, and give it its name.

        Raises :class:`IOError` with ``errno.EEXIST`` if a file of that name now exists.
        After an error no file is left.
        """
        builder = self._open()
        named = False
        try:
            builder.finish()
            self._file.sync()
            self._file.close()
            self._refuse_if_taken()
            self._directory.rename(self._partial, self._name)
            named = True
            self._directory.sync()
        except OSError as error:
            self._give_up(named)
            raise_typed(error)
        except BaseException:
            self._give_up(named)
            raise
        self._builder = None
        self._directory.close()

    def close(self) -> None:
        """Remove the file unless it is finished.  Closing twice is harmless."""
        if self._builder is not None:
            self._give_up(False)

    def __reduce__(self) -> Never:
        refuse_copy("a table that is being written", "it holds an open file")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self._builder is not None:
                self.finish()
        finally:
            self.close()

    def __del__(self) -> None:
        if self._builder is not None:
            warnings.warn(f"unfinished {self!r}", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def __repr__(self) -> str:
        return f"<lsmkv.TableWriter {self.path!r}{' (closed)' if self.closed else ''}>"

    def _open(self) -> TableBuilder:
        builder = self._builder
        if builder is None:
            raise ClosedError(f"{self.path}: the table is finished or closed")
        if not self._intact:
            raise Error(
                f"{self.path}: an earlier error left an incomplete entry; write a new table"
            )
        return builder

    def _refuse_if_taken(self) -> None:
        """Raise ``FileExistsError`` if the path exists.  Not a lock: a file that another program
        makes at the same moment is replaced."""
        if self._directory.exists(self._name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.path)

    def _create_partial(self) -> WritableFile:
        while True:
            self._partial = f"{self._name}.partial-{os.getpid()}-{next(_writers)}"
            try:
                return self._directory.create(self._partial)
            except FileExistsError:
                pass  # left by a process of the same number that died

    def _give_up(self, named: bool) -> None:
        """Remove the file, or leave it if it cannot be removed."""
        self._builder = None
        self._file.close()
        for name in (self._partial, self._name) if named else (self._partial,):
            try:
                self._directory.remove(name)
            except OSError:
                pass
        self._directory.close()


keep_paths(TableWriter)
