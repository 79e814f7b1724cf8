"""The result of EXPLAIN for a Get: :class:`Explanation`, as data, text and HTML."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lsmkv.engine.db.handles.steps import KeyVersion, TableStep
from lsmkv.engine.former_paths import keep_paths
from lsmkv.engine.util.outline import Line, Tone, as_html, as_text
from lsmkv.engine.util.record import Record
from lsmkv.engine.util.text import count, escape, quoted


@dataclass(frozen=True)
class Explanation(Record):
    """The steps of a Get of one key; ``str()`` is text, ``to_dict()`` is plain data.

    ``DB.explain`` makes one and states errors and cost; this is plain data.  A notebook shows it
    as HTML.

    >>> import lsmkv
    >>> with lsmkv.DB(":memory:") as db:
    ...     for key in (b"ant", b"cow"):
    ...         db.put(key, b"v")
    ...     db.flush()
    ...     explanation = db.explain(b"bee")
    >>> explanation.found, explanation.blocks_searched, explanation.blocks_without_filters
    (False, 0, 1)
    >>> explanation.tables[0].verdict
    'a filter says no: no block is searched'
    >>> explanation.metadata_reads, explanation.identity_check_reads
    (4, 1)
    """

    key: bytes
    found: bool
    memtables: tuple[str, ...]
    """Those that were looked at, newest first."""
    tables: tuple[TableStep, ...]
    """Those whose range covers the key, in the order in which they are asked."""
    chosen: KeyVersion | None
    """The version that answers; a deletion answers with a miss."""
    shadowed: tuple[KeyVersion, ...]
    """Older versions that it hides, newest first."""
    missed: tuple[KeyVersion, ...]
    """Versions that the Get does not see, since a filter wrongly says no: a filter policy that is
    at fault, or one that does not fit the comparator."""
    blocks_searched: int
    """Data blocks that the Get looks into."""
    blocks_wasted: int
    """Number of these blocks that do not hold the key."""
    blocks_read: int
    """Number of these blocks that are read from files: neither the block cache nor an identity
    check supplies them."""
    bytes_read: int
    blocks_without_filters: int
    """Data blocks that it would look into if there were no filters."""
    bytes_without_filters: int
    """Their bytes as stored, as if none were cached."""
    at_hand: bool
    """True if the value is in the row cache, because the key is read often: a Get then returns it
    without asking the tables.  The steps here show the tables all the same."""

    @property
    def metadata_reads(self) -> int:
        """Reads of footers, indexes and filters with which the Get opens tables."""
        return sum(table.metadata_reads for table in self.tables)

    @property
    def identity_check_reads(self) -> int:
        """Reads of first data blocks of the tables that the Get opens."""
        return sum(table.identity_check_reads for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; keys are escaped text, so that it can go out as JSON.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     explanation = db.explain(b"k").to_dict()
        >>> explanation["key"], explanation["chosen"]["where"]
        ('k', 'memtable')
        """
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def outline(self) -> list[Line]:
        """The steps in words, one line each, with a depth and a tone for rendering.

        Long keys are cut, and keys are escaped.

        >>> import lsmkv
        >>> with lsmkv.DB(":memory:") as db:
        ...     db.put(b"k", b"v")
        ...     lines = db.explain(b"k").outline()
        >>> lines[1]
        Line(depth=1, tone='plain', text='memtable: answers')
        """
        lines = [Line(0, "plain", f"get {quoted(self.key)}: {self._answer()}")]
        for name in self.memtables:
            answers = self.chosen is not None and self.chosen.where == name
            text = "answers" if answers else "does not know the key"
            lines.append(Line(1, "plain", f"{name}: {text}"))
        if self.at_hand:
            text = "in the row cache: a Get takes the value from there; what follows is without it"
            lines.append(Line(1, "saved", text))
        for table in self.tables:
            lines += table.outline()
        if self.chosen is None and not self.tables:
            lines.append(Line(1, "plain", "no table's range covers the key"))
        for version in self.missed:
            lines.append(Line(1, "wasted", f"missed, since a filter is wrong: {version}"))
        for version in self.shadowed:
            lines.append(Line(1, "quiet", f"hidden: {version}"))
        if self.chosen is not None:
            lines.append(Line(1, "quiet", self._number_of(self.chosen)))
        lines += self._totals()
        return lines

    def __str__(self) -> str:
        """The steps in words, a line each."""
        return as_text(self.outline())

    def _repr_html_(self) -> str:
        """The steps as nested lists, for a notebook."""
        return as_html(self.outline())

    def _number_of(self, version: KeyVersion) -> str:
        meaning = "puts and deletes are numbered from 1 on; the highest number of a key answers"
        return f"write {version.sequence:,}: {meaning}"

    def _answer(self) -> str:
        if self.chosen is None:
            return "not there"
        return f"{'deleted' if self.chosen.deleted else 'found'}, {self.chosen}"

    def _totals(self) -> list[Line]:
        searched = f"searched: {count(self.blocks_searched, 'data block')}"
        tone: Tone = "plain"
        if self.blocks_searched:
            if self.blocks_wasted:
                searched += f", {self.blocks_wasted:,} wasted"
            if self.blocks_read:
                searched += (
                    f"; {self.blocks_read:,} from the file, {count(self.bytes_read, 'byte')}"
                )
            else:
                searched += "; none from the file"
            tone = "wasted" if self.blocks_wasted else "read"
        without = f"without filters: {count(self.blocks_without_filters, 'data block')}"
        if self.blocks_without_filters:
            without += f", {count(self.bytes_without_filters, 'byte')}"
        saved = self.blocks_without_filters - self.blocks_searched
        if saved:
            without += f"; filters save {saved:,}"
        lines = [Line(1, tone, searched), Line(1, "saved" if saved else "plain", without)]
        if self.identity_check_reads:
            opening = f"opening: {count(self.metadata_reads, 'read')} of metadata,"
            opening += f" {count(self.identity_check_reads, 'identity check read')}"
            lines.append(Line(1, "plain", opening))
        return lines


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return escape(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


keep_paths(Explanation)
