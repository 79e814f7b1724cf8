"""BF.*: a Bloom filter as a value.

A filter is a chain of layers, each for more items than the one before; a new one begins when the
last is full.  A layer is cut into pages of 512 bytes, each a filter of :mod:`lsmkv.filter.bloom64`
of its own, under (layer, page): an item is in the one page that a hash of it chooses.  So adding
writes one page, and asking reads one page of each layer, as a rule one.

After its size, the number of items, the entry has: rate (8, a double), capacity of the first layer
(8), growth from layer to layer (4, 0 for none), number of layers (4), items in the last one (8).
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from lsmkv.filter.bloom64 import best_probes, bloom64_may_match, bloom64_positions
from lsmkv.filter.hash64 import xxh3_hash
from lsmkv.server.encoding import BLOOM, U32, Entry, element_prefix
from lsmkv.server.numbers import to_float, to_int
from lsmkv.server.overlay import Overlay
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, CommandError, Reply, syntax_error
from lsmkv.server.session import Session

_RATE, _CAPACITY, _EXPANSION = 0.01, 100, 2
"""Of a filter that BF.ADD makes, as RedisBloom has them."""
_MOST_ITEMS = 1 << 40
_MOST_PAGES = 1 << 32
_LEAST_RATE = 1e-300
"""Half of it, and half of that, for 40 layers and more, is still more than 0."""
_PAGE = 512
_PAGE_BITS = (_PAGE - 1) * 8
_UNEVEN = 1.06
"""Pages are not filled evenly, which costs some more bits a key."""
_REST = struct.Struct(">dQIIQ")


class _Layer(NamedTuple):
    """A layer's shape, which follows from its number."""

    number: int
    capacity: int
    pages: int
    probes: int


class BloomFilter:
    """The filter under an entry, which it changes and does not save."""

    def __init__(self, overlay: Overlay, entry: Entry) -> None:
        self._overlay = overlay
        self.entry = entry
        (self.rate, self.capacity, self.expansion, self.layers, self._in_last) = _REST.unpack(
            entry.rest
        )

    def layer(self, number: int) -> _Layer:
        """The shape of a layer.

        The rates of the layers halve from one to the next, so that their sum is the one asked for.
        """
        rate = self.rate if self.expansion == 0 else self.rate * 0.5 ** (number + 1)
        capacity = self.capacity * max(1, self.expansion) ** number
        bits = -math.log(rate) / math.log(2) ** 2
        pages = max(1, math.ceil(capacity * bits * _UNEVEN / _PAGE_BITS))
        return _Layer(number, capacity, pages, best_probes(bits))

    def _name(self, layer: _Layer, item: bytes) -> bytes:
        """The key of the page that an item belongs to.

        It is chosen by another hash than the bits: else an item would have its bits in the same
        part of the page as all others there.
        """
        chosen: int = xxh3_hash(b"page" + item)  # the product has more than 64 bits
        page = chosen * layer.pages >> 62
        return element_prefix(self.entry) + U32.pack(layer.number) + U32.pack(page)

    def may_contain(self, item: bytes) -> bool:
        """Whether the item may have been added; *False* is certain.  A Get a layer."""
        item_hash = xxh3_hash(item)
        for number in reversed(range(self.layers)):
            page = self._overlay.get(self._name(self.layer(number), item))
            if page is not None and bloom64_may_match(item_hash, page, 0, len(page)):
                return True
        return False

    def add(self, item: bytes) -> bool:
        """Add an item; False if it may have been there already."""
        if self.may_contain(item):
            return False
        layer = self.layer(self.layers - 1)
        if self._in_last >= layer.capacity:
            if self.expansion == 0:
                raise CommandError("ERR non scaling filter is full")
            self.layers += 1
            self._in_last = 0
            layer = self.layer(self.layers - 1)
            if layer.pages > _MOST_PAGES:
                raise CommandError("ERR the filter is full, and too large to grow")
        name = self._name(layer, item)
        end = bytes((layer.probes,))
        page = bytearray(self._overlay.get(name) or bytes(_PAGE - 1) + end)
        # In a page of ones a lookup goes by all bits of its item.
        for position in bloom64_positions(xxh3_hash(item), b"\xff" * (_PAGE - 1) + end):
            page[position >> 3] |= 1 << (position & 7)
        self._overlay.put(name, bytes(page))
        self._in_last += 1
        self.entry.size += 1
        self.entry.rest = _REST.pack(
            self.rate, self.capacity, self.expansion, self.layers, self._in_last
        )
        return True

    @property
    def full_capacity(self) -> int:
        """The items that all its layers are made for."""
        return sum(self.layer(number).capacity for number in range(self.layers))

    @property
    def bytes(self) -> int:
        """The bytes of all its pages, written or not."""
        return sum(self.layer(number).pages * _PAGE for number in range(self.layers))


def _find(session: Session, key: bytes) -> BloomFilter | None:
    entry = session.space.find(session.database, key, BLOOM)
    return None if entry is None else BloomFilter(session.space.overlay, entry)


def _make(session: Session, rate: float, capacity: int, expansion: int) -> BloomFilter:
    entry = session.space.make(BLOOM)
    entry.rest = _REST.pack(rate, capacity, expansion, 1, 0)
    return BloomFilter(session.space.overlay, entry)


@command("BF.RESERVE", -4, "write fast", group="bf")
def bf_reserve(session: Session, args: list[bytes]) -> Reply:
    """Make an empty filter for a rate of false positives and a number of items."""
    rate = to_float(args[2], "ERR bad error rate")
    if not 0 < rate < 1:
        raise CommandError("ERR (0 < error rate range < 1)")
    if rate < _LEAST_RATE:
        raise CommandError(f"ERR error rate is less than {_LEAST_RATE}")
    capacity = to_int(args[3], "ERR bad capacity")
    if not 0 < capacity <= _MOST_ITEMS:
        raise CommandError(f"ERR (0 < capacity <= {_MOST_ITEMS})")
    expansion, scales = _EXPANSION, True
    at = 4
    while at < len(args):
        word = args[at].upper()
        if word == b"NONSCALING":
            scales = False
        elif word == b"EXPANSION" and at + 1 < len(args):
            at += 1
            expansion = to_int(args[at], "ERR bad expansion")
            if not 1 <= expansion <= 32768:
                raise CommandError("ERR expansion should be between 1 and 32768")
        else:
            raise syntax_error()
        at += 1
    if session.space.find(session.database, args[1]) is not None:
        raise CommandError("ERR item exists")
    made = _make(session, rate, capacity, expansion if scales else 0)
    if made.layer(0).pages > _MOST_PAGES:
        raise CommandError("ERR the filter would be too large: take less capacity or a higher rate")
    session.space.save(session.database, args[1], made.entry, new=True)
    return OK


def _add(session: Session, key: bytes, items: list[bytes]) -> list[Reply]:
    found = _find(session, key)
    new = found is None
    if found is None:
        found = _make(session, _RATE, _CAPACITY, _EXPANSION)
    added: list[Reply] = [int(found.add(item)) for item in items]
    if new or any(added):
        session.space.save(session.database, key, found.entry, new)
    return added


@command("BF.ADD", 3, "write fast", group="bf")
def bf_add(session: Session, args: list[bytes]) -> Reply:
    """Add an item; 0 if it may have been there already."""
    return _add(session, args[1], args[2:])[0]


@command("BF.MADD", -3, "write fast", group="bf")
def bf_madd(session: Session, args: list[bytes]) -> Reply:
    """Add items; for each, 0 if it may have been there already."""
    return _add(session, args[1], args[2:])


@command("BF.EXISTS", 3, "readonly fast", group="bf")
def bf_exists(session: Session, args: list[bytes]) -> Reply:
    """Whether an item may have been added; 0 is certain."""
    found = _find(session, args[1])
    return int(found is not None and found.may_contain(args[2]))


@command("BF.MEXISTS", -3, "readonly fast", group="bf")
def bf_mexists(session: Session, args: list[bytes]) -> Reply:
    """Which items may have been added; 0 is certain."""
    found = _find(session, args[1])
    return [int(found is not None and found.may_contain(item)) for item in args[2:]]


@command("BF.CARD", 2, "readonly fast", group="bf")
def bf_card(session: Session, args: list[bytes]) -> Reply:
    """How many items were added that were not there."""
    found = _find(session, args[1])
    return 0 if found is None else found.entry.size


@command("BF.INFO", -2, "readonly fast", group="bf")
def bf_info(session: Session, args: list[bytes]) -> Reply:
    """Capacity, size in bytes, layers, items and growth of a filter."""
    found = _find(session, args[1])
    if found is None:
        raise CommandError("ERR not found")
    fields: dict[bytes, Reply] = {
        b"Capacity": found.full_capacity,
        b"Size": found.bytes,
        b"Number of filters": found.layers,
        b"Number of items inserted": found.entry.size,
        b"Expansion rate": found.expansion or None,
    }
    if len(args) == 2:
        return fields
    short = {b"FILTERS": b"Number of filters", b"ITEMS": b"Number of items inserted"}
    short |= {b"CAPACITY": b"Capacity", b"SIZE": b"Size", b"EXPANSION": b"Expansion rate"}
    if len(args) > 3 or args[2].upper() not in short:
        raise CommandError("ERR Invalid information value")
    return [fields[short[args[2].upper()]]]
