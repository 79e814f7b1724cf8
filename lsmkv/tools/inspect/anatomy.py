"""A table in the order of its file: its blocks to scale, down to entries and raw bytes.

The meaning of the bytes is the one in ``lsmkv dump --annotate``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from lsmkv.engine.errors import CorruptionError, ForeignFormatError
from lsmkv.files import FOOTER_SIZE, Block, BlockPlace, Damage, Table
from lsmkv.tools.dump.annotated_tables import annotate_block, annotate_footer
from lsmkv.tools.dump.records import Fault, Piece, fault_of
from lsmkv.tools.inspect.damage import effect
from lsmkv.tools.inspect.filters import facts_of, filters_in
from lsmkv.tools.inspect.plain import NotThereError, Plain, grouped, shown_bytes
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.text import shown

CHECKED_BYTES = 64 << 20
"""A table larger than this is drawn without checking its blocks."""
WINDOW = 300
"""The most entries, or pieces of bytes, in one answer."""
_HEX_SHOWN = 64


def table(source: Source, name: str) -> Plain:
    """The parts of a table, in file order, with any damage in them.

    Reads the whole table unless it is larger than :data:`CHECKED_BYTES`.
    """
    with source.open_table(name) as table:
        problems: list[Plain] = []
        parts: list[Plain] = []
        checked = table.size <= CHECKED_BYTES
        places = _places(table, problems)
        keys = _separators(table) if places else {}
        at = 0
        for place in places:
            if place.offset < at or place.end > table.size - FOOTER_SIZE:
                reason = f"a {place.kind} block in an impossible place"
                problems.append(_problem(place.kind, place.offset, reason))
                continue
            if place.offset > at:
                parts.append(_part("unknown", at, place.offset - at))
            parts.append(_block_part(source, table, place, keys, checked, problems))
            at = place.end
        footer = max(0, table.size - FOOTER_SIZE) if places else table.size
        if footer > at:
            parts.append(_part("unknown", at, footer - at))
        if places:
            parts.append(_part("footer", footer, table.size - footer))
        return {
            "name": name,
            "size": table.size,
            "checked": checked,
            "parts": parts,
            "problems": problems,
        }


def block(source: Source, name: str, offset: int, first: int = 0) -> Plain:
    """One part of a table: its entries and its bytes, :data:`WINDOW` of each from ``first`` on.

    Raises ``NotThereError`` if no part of the table begins at ``offset``.
    """
    with source.open_table(name) as table:
        if offset == table.size - FOOTER_SIZE:
            return _footer(table, name)
        place = next((one for one in _places(table, []) if one.offset == offset), None)
        if place is None:
            raise NotThereError(f"{name} has no block at {offset:,}")
        facts: Plain = {"name": name, "offset": offset, "kind": place.kind, "size": place.size}
        loaded = table.block(place)
        if loaded.damage is None:
            facts |= {"codec": loaded.codec, "plain_size": len(loaded.plain)}
            facts |= _content(source, loaded, first)
        if place.kind in ("filter", "full filter", "prefix filter"):
            filters = filters_in(table, place.offset)
            facts["filters"] = [facts_of(one) for one in filters[first : first + WINDOW]]
            facts["more_filters"] = len(filters) > first + WINDOW
        pieces = annotate_block(table, place, False)
        window = list(itertools.islice(_pieces(pieces), first, first + WINDOW + 1))
        return facts | {
            "first": first,
            "pieces": window[:WINDOW],
            "more_pieces": len(window) > WINDOW,
        }


def can_be_opened(source: Source, name: str) -> bool:
    """True if a table exists, with a footer and a sound index.  Its other blocks are not read."""
    try:
        with source.open_table(name) as table:
            return table.index.damage is None
    except (CorruptionError, ForeignFormatError, NotThereError, OSError):
        return False


def _places(table: Table, problems: list[Plain]) -> list[BlockPlace]:
    try:
        places = table.places()
    except (CorruptionError, ForeignFormatError) as error:
        reason = error.reason if isinstance(error, CorruptionError) else str(error)
        message = f"{reason}; without a footer nothing else can be found"
        problems.append(_problem("footer", max(0, table.size - FOOTER_SIZE), message))
        return []
    for block in (table.index, table.metaindex):
        kind = block.place.kind
        for part in block.walk():
            if isinstance(part, Damage):
                reason = fault_of(part).reason
                if block.damage is not None:
                    reason += f"; it is the {kind}"
                problems.append(_problem(kind, block.place.offset, reason))
    return places


def _separators(table: Table) -> dict[int, bytes]:
    """The index's user key for each data block, by the block's offset."""
    return {
        part.handle.offset: part.internal_key.user_key
        for part in table.index.walk()
        if not isinstance(part, Damage) and part.handle is not None
    }


def _problem(kind: str, offset: int, reason: str) -> Plain:
    return {"kind": kind, "offset": offset, "reason": grouped(reason), "effect": effect(kind)}


def _part(kind: str, offset: int, size: int) -> Plain:
    return {"kind": kind, "offset": offset, "size": size}


def _block_part(
    source: Source,
    table: Table,
    place: BlockPlace,
    keys: dict[int, bytes],
    checked: bool,
    problems: list[Plain],
) -> Plain:
    part = _part(place.kind, place.offset, place.end - place.offset)
    if place.kind == "data" and place.offset in keys:
        part["up_to"] = source.shown_key(keys[place.offset])
    if checked:
        block = table.block(place)
        if block.damage is not None:
            reason = block.damage.reason
            part["problem"] = grouped(reason)
            if place.kind not in ("index", "metaindex"):  # theirs is shown with their entries
                problems.append(_problem(place.kind, place.offset, reason))
        else:
            part["plain_size"] = len(block.plain)
    return part


def _content(source: Source, block: Block, first: int) -> Plain:
    """The entries of a block that has any, and its restart points."""
    kind = block.place.kind
    if kind not in ("data", "index", "metaindex"):
        return {"entries": [], "more_entries": False, "restarts": []}
    try:
        restarts = block.restart_points()
    except CorruptionError:
        restarts = []  # the pieces show what is wrong
    entries: list[Plain] = []
    window = list(itertools.islice(block.walk(), first, first + WINDOW + 1))
    for one in window[:WINDOW]:
        if isinstance(one, Damage):
            entries.append({"problem": grouped(fault_of(one).reason)})
            continue
        key = one.internal_key
        entry: Plain = {
            "offset": one.offset,
            "restart": one.is_restart,
            "shared": one.shared,
            "key": shown_bytes(one.key) if kind == "metaindex" else source.shown_key(key.user_key),
        }
        if kind == "data":
            entry |= {"sequence": key.sequence, "deletion": key.kind == 0}
            entry["value"] = shown_bytes(one.value)
        elif one.handle is not None:
            entry["handle"] = one.handle._asdict()
        entries.append(entry)
    return {"entries": entries, "more_entries": len(window) > WINDOW, "restarts": restarts[:WINDOW]}


def _pieces(pieces: Iterator[Piece | Fault]) -> Iterator[Plain]:
    for piece in pieces:
        if isinstance(piece, Fault):
            yield {"problem": grouped(piece.reason), "offset": piece.offset}
        else:
            yield shown_piece(piece)


def shown_piece(piece: Piece) -> Plain:
    """Some bytes of a file with their meaning; ``inside`` has those of a compressed block."""
    return {
        "offset": piece.offset,
        "bytes": len(piece.data),
        "hex": shown(piece.data[:_HEX_SHOWN], True),
        "meaning": grouped(piece.meaning),
        "inside": piece.block >= 0,
    }


def _footer(table: Table, name: str) -> Plain:
    at = table.size - FOOTER_SIZE
    facts: Plain = {"name": name, "offset": at, "kind": "footer", "size": FOOTER_SIZE}
    pieces: list[Plain] = []
    try:
        pieces += [shown_piece(piece) for piece in annotate_footer(table)]
    except (CorruptionError, ForeignFormatError) as error:
        reason = error.reason if isinstance(error, CorruptionError) else str(error)
        pieces.append({"problem": reason, "offset": at})
    return facts | {"entries": [], "restarts": [], "pieces": pieces, "first": 0}
