"""A MANIFEST: its version edits, and the version after each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lsmkv.engine.errors import CorruptionError, ForeignFormatError
from lsmkv.engine.format.foreign import unknown_field
from lsmkv.engine.format.version_edit import MAX_LEVELS, VersionEdit, unknown_tag
from lsmkv.engine.util.coding import decode_string, decode_varint32, decode_varint64
from lsmkv.files.keys import InternalKey, parse_key
from lsmkv.files.logs import Log
from lsmkv.files.parts import Damage, Field

LEVELS: Final = 7
"""The levels of LevelDB's stores, 0 to 6; goleveldb's may have more."""
_NUMBERS: Final = {
    2: "log number",
    9: "previous log number",
    3: "next file number",
    4: "last sequence",
}
_COMPARATOR, _COMPACT_POINTER, _DELETED_FILE, _NEW_FILE = 1, 5, 6, 7
EDIT_TAGS: Final = {
    _COMPARATOR: "comparator",
    _COMPACT_POINTER: "compact pointer",
    _DELETED_FILE: "deleted file",
    _NEW_FILE: "new file",
} | _NUMBERS
"""The fields of a version edit, by their tags."""
_VARINTS: Final = {_COMPACT_POINTER: (), _DELETED_FILE: ("number",), _NEW_FILE: ("number", "size")}
_KEYS: Final = {
    _COMPACT_POINTER: ("key",),
    _DELETED_FILE: (),
    _NEW_FILE: ("smallest key", "largest key"),
}


class TableFile(NamedTuple):
    """A table as the MANIFEST states it.

    >>> key = parse_key(b"k\\x01\\x07\\0\\0\\0\\0\\0\\0")
    >>> TableFile(5, 1024, key, key).largest.user_key
    b'k'
    """

    number: int
    """The number in its file's name."""
    size: int
    """Bytes."""
    smallest: InternalKey
    largest: InternalKey


class Edit(NamedTuple):
    """A record of a MANIFEST: a change to the set of tables.  None: the record has no such field.

    >>> parse_edit(bytes.fromhex("0203")).log_number
    3
    """

    offset: int
    """Start of its first fragment in the file."""
    end: int
    """End of its last fragment."""
    payload: bytes
    """The bytes of the record."""
    comparator: str | None
    """The name of the order of keys."""
    log_number: int | None
    """Older logs are obsolete."""
    prev_log_number: int | None
    next_file_number: int | None
    last_sequence: int | None
    compact_pointers: tuple[tuple[int, InternalKey], ...]
    """The key at which the next compaction of each level begins."""
    deleted_files: tuple[tuple[int, int], ...]
    """The level and the number of each, in this order."""
    new_files: tuple[tuple[int, TableFile], ...]
    """The level of each, and the table, in the order of the record."""


class Version(NamedTuple):
    """The current set of tables after an edit, and the counters of the store.

    >>> version = VersionBuilder().version()
    >>> len(version.levels), version.last_sequence
    (7, 0)
    """

    levels: tuple[tuple[TableFile, ...], ...]
    """The tables of each level by number: seven levels, or more in a goleveldb store."""
    comparator: str | None = None
    log_number: int = 0
    prev_log_number: int = 0
    next_file_number: int = 0
    last_sequence: int = 0


def parse_edit(payload: bytes, offset: int = 0, end: int = 0) -> Edit:
    """The version edit in a record of a MANIFEST; ``offset`` and ``end`` are its place in the file.

    Raises :class:`~lsmkv.CorruptionError` with the position in the record.  O(bytes).

    >>> edit = parse_edit(bytes.fromhex("0203 060007"))
    >>> edit.log_number, edit.deleted_files, edit.comparator
    (3, ((0, 7),), None)
    """
    found = VersionEdit.decode(payload, MAX_LEVELS)
    return Edit(
        offset,
        end,
        payload,
        found.comparator,
        found.log_number,
        found.prev_log_number,
        found.next_file_number,
        found.last_sequence,
        tuple((level, parse_key(key)) for level, key in found.compact_pointers),
        tuple(sorted(found.deleted_files)),
        tuple(
            (level, TableFile(file.number, file.size, parse_key(file.smallest), largest))
            for level, file in found.new_files
            for largest in (parse_key(file.largest),)
        ),
    )


def edit_fields(payload: bytes) -> Iterator[Field]:
    """The fields of a version edit, in the order of their bytes, which cover every byte.

    Each of a record's fields begins with its ``tag``, a varint32, and continues as
    :data:`EDIT_TAGS` names it: a string after its length, a number, or a ``level``, numbers and
    internal keys, each key after its length.  Raises :class:`~lsmkv.CorruptionError` after the last
    valid field, and at the end for impossible values, such as level 999.  O(bytes).

    >>> [(field.name, field.value) for field in edit_fields(bytes.fromhex("0203 060007"))]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('tag', 2), ('log number', 3), ('tag', 6), ('level', 0), ('number', 7)]
    """
    at = 0
    while at < len(payload):
        tag, end = decode_varint32(payload, at)
        if tag not in EDIT_TAGS:
            raise CorruptionError(f"an unknown field, tag {tag}", None, at)
        yield Field("tag", at, end, tag)
        at = end
        for field in _content_fields(tag, payload, at):
            yield field
            at = field.end
    VersionEdit.decode(payload, MAX_LEVELS)  # raises for impossible values


def _content_fields(tag: int, payload: bytes, at: int) -> Iterator[Field]:
    if tag in _NUMBERS:
        number, end = decode_varint64(payload, at)
        yield Field(_NUMBERS[tag], at, end, number)
        return
    if tag == _COMPARATOR:
        yield from _string_fields("comparator", payload, at)
        return
    level, end = decode_varint32(payload, at)
    yield Field("level", at, end, level)
    for what in _VARINTS[tag]:
        number, after = decode_varint64(payload, end)
        yield Field(what, end, after, number)
        end = after
    for what in _KEYS[tag]:
        for field in _string_fields(what, payload, end):
            yield field
            end = field.end


def _string_fields(name: str, payload: bytes, at: int) -> Iterator[Field]:
    content, end = decode_string(payload, at)
    begin = end - len(content)
    yield Field(f"{name} length", at, begin, len(content))
    yield Field(name, begin, end, content)


class VersionBuilder:
    """Applies edits one after the other.

    Each edit costs O(its tables), and :meth:`version` O(all tables).  Raises nothing.

    >>> builder = VersionBuilder()
    >>> builder.apply(parse_edit(bytes.fromhex("0203 060007")))
    >>> builder.version().log_number, len(builder), (0, 7) in builder, builder.files
    (3, 0, False, ())
    """

    def __init__(self, files: Iterable[tuple[int, TableFile]] = ()) -> None:
        """``files`` are the initial tables, each with its level, as in :attr:`files`.  The counters
        begin at 0."""
        self._counters = Version(())
        self._files: dict[tuple[int, int], TableFile] = {
            (level, file.number): file for level, file in files
        }

    def apply(self, edit: Edit) -> None:
        """Remove the deleted files, add the new ones, and store the counters."""
        stated = {
            name: value
            for name in Version._fields[1:]
            if (value := getattr(edit, name)) is not None
        }
        if stated:
            self._counters = self._counters._replace(**stated)
        for level, number in edit.deleted_files:
            self._files.pop((level, number), None)
        for level, file in edit.new_files:
            self._files[level, file.number] = file

    @property
    def files(self) -> tuple[tuple[int, TableFile], ...]:
        """The level of each table, and the table; by level and number.  O(tables log tables)."""
        return tuple((at[0], self._files[at]) for at in sorted(self._files))

    def version(self) -> Version:
        """The state now."""
        levels: list[list[TableFile]] = [[] for _ in range(LEVELS)]
        for level, file in self.files:
            while level >= len(levels):
                levels.append([])
            levels[level].append(file)
        return self._counters._replace(levels=tuple(map(tuple, levels)))

    def __contains__(self, at: tuple[int, int]) -> bool:
        """Return True if a level has the table with a number."""
        return at in self._files

    def __len__(self) -> int:
        """The number of tables."""
        return len(self._files)


class Manifest(Log):
    """A MANIFEST: a log (:class:`Log`) whose records are version edits.

    Errors and costs are those of a log.  Zeros at its end are damage, not reserved space.
    A record with a field that LevelDB lacks is another engine's.

    >>> import lsmkv
    >>> env = lsmkv.MemoryEnv()
    >>> with lsmkv.DB("store", create_if_missing=True, env=env) as db:
    ...     db.put(b"k", b"v")
    ...     db.flush()
    >>> directory = env.open_directory("store")
    >>> with Manifest(directory.open("MANIFEST-000004")) as manifest:
    ...     [(edit.log_number, len(edit.new_files)) for edit in manifest.edits()]
    ...     [len(version.levels[2]) for _, version in manifest.versions()]
    ...     [table.number for table in manifest.version().levels[2]]
    ...     all(isinstance(part, Edit) for part in manifest.walk_edits())
    [(None, 0), (3, 0), (5, 1)]
    [0, 0, 1]
    [6]
    True
    """

    _reserved = False

    def walk_edits(self, start: int = 0) -> Iterator[Edit | Damage]:
        """The edits and the damage between them, in the order of the file.

        ``start`` is where an edit begins: those before it are skipped, and not read.  Raises
        ``OSError``.
        """
        for part in self.walk(start):
            if isinstance(part, Damage):
                yield part
                continue
            try:
                yield parse_edit(part.payload, part.offset, part.end)
            except CorruptionError as error:
                size = part.end - part.offset
                yield Damage("damage", part.offset, size, error.reason, error.offset)

    def edits(self) -> Iterator[Edit]:
        """The edits.

        Raises :class:`~lsmkv.CorruptionError` at the first damage, unless it may be a torn write at
        the end, and :class:`~lsmkv.ForeignFormatError` for a field that LevelDB does not know.
        """
        for record in self.records():
            try:
                yield parse_edit(record.payload, record.offset, record.end)
            except CorruptionError as error:
                tag = unknown_tag(record.payload, error)
                if tag > 0:
                    raise self._foreign(tag) from None
                raise CorruptionError(error.reason, self.path, record.offset) from None

    def versions(self) -> Iterator[tuple[Edit, Version]]:
        """Each edit, and the version after it.  Raises as :meth:`edits`.

        Costs O(all tables) for each edit: a :class:`VersionBuilder` makes only the versions that
        you request.
        """
        builder = VersionBuilder()
        for edit in self.edits():
            builder.apply(edit)
            yield edit, builder.version()

    def version(self) -> Version:
        """The version after the last edit.  Raises as :meth:`edits`.  O(size of the file)."""
        builder = VersionBuilder()
        for edit in self.edits():
            builder.apply(edit)
        return builder.version()

    def _foreign(self, tag: int) -> ForeignFormatError:
        return unknown_field(self.path, [], tag)
