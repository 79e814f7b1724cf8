"""BF.*: a Bloom filter as a value.

A filter is a chain of layers, each for more items than the one before.  A new layer begins when the
last one is full.  A layer is split into pages of 512 bytes, stored under (layer, page).  Each page
is a filter of :mod:`lsmkv.engine.filter.bloom64`, and a hash of an item chooses its page.  So
adding an item writes one page.  A test reads one page of each layer; usually there is one layer.

After the number of items (its size), the entry has: rate (8, a double), capacity of the first layer
(8), growth from layer to layer (4, 0 for none), number of layers (4), items in the last layer (8).
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

from lsmkv.engine.filter.bloom64 import best_probes, bloom64_may_match, bloom64_positions
from lsmkv.engine.filter.hash64 import xxh3_hash
from lsmkv.server.encoding import BLOOM, U32, Entry, element_prefix
from lsmkv.server.numbers import to_float, to_int
from lsmkv.server.options import Options
from lsmkv.server.records import Records
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, CommandError, Reply, syntax_error
from lsmkv.server.session import Session

_RATE, _CAPACITY, _EXPANSION = 0.01, 100, 2
"""The defaults of a filter that BF.ADD makes, the same as RedisBloom's."""
_MOST_ITEMS = 1 << 40
_MOST_PAGES = 1 << 32
_LEAST_RATE = 1e-300
"""Halved for each of 40 layers or more, it is still more than 0."""
_PAGE = 512
_PAGE_BITS = (_PAGE - 1) * 8
_UNEVEN = 1.06
"""Pages fill unevenly, which costs a few more bits per key."""
_REST = struct.Struct(">dQIIQ")


class _Layer(NamedTuple):
    """The shape of a layer, derived from its number."""

    number: int
    capacity: int
    pages: int
    probes: int


class BloomFilter:
    """The filter of an entry, which it changes but does not save."""

    def __init__(self, records: Records, entry: Entry) -> None:
        self._records = records
        self.entry = entry
        (self.rate, self.capacity, self.expansion, self.layers, self._in_last) = _REST.unpack(
            entry.rest
        )

    def layer(self, number: int) -> _Layer:
        """The shape of a layer.

        Each layer has half the rate of the one before, so the sum stays below the requested rate.
        """
        rate = self.rate if self.expansion == 0 else self.rate * 0.5 ** (number + 1)
        capacity = self.capacity * max(1, self.expansion) ** number
        bits = -math.log(rate) / math.log(2) ** 2
        pages = max(1, math.ceil(capacity * bits * _UNEVEN / _PAGE_BITS))
        return _Layer(number, capacity, pages, best_probes(bits))

    def _name(self, layer: _Layer, item: bytes) -> bytes:
        """The key of the page that an item belongs to.

        The page and the bits come from different hashes.  With one hash, all items of a page would
        set bits in the same part of it.
        """
        chosen: int = xxh3_hash(b"page" + item)  # the product exceeds 64 bits
        page = chosen * layer.pages >> 62
        return element_prefix(self.entry) + U32.pack(layer.number) + U32.pack(page)

    def may_contain(self, item: bytes) -> bool:
        """True if the item may have been added; False is certain.  Costs a Get per layer."""
        item_hash = xxh3_hash(item)
        for number in reversed(range(self.layers)):
            page = self._records.get(self._name(self.layer(number), item))
            if page is not None and bloom64_may_match(item_hash, page, 0, len(page)):
                return True
        return False

    def add(self, item: bytes) -> bool:
        """Add an item.  Returns False if it may have been added before."""
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
        page = bytearray(self._records.get(name) or bytes(_PAGE - 1) + end)
        # In a page of ones a lookup tests all bits of its item.
        for position in bloom64_positions(xxh3_hash(item), b"\xff" * (_PAGE - 1) + end):
            page[position >> 3] |= 1 << (position & 7)
        self._records.put(name, bytes(page))
        self._in_last += 1
        self.entry.size += 1
        self.entry.rest = _REST.pack(
            self.rate, self.capacity, self.expansion, self.layers, self._in_last
        )
        return True

    @property
    def full_capacity(self) -> int:
        """The number of items that all its layers together have room for."""
        return sum(self.layer(number).capacity for number in range(self.layers))

    @property
    def bytes(self) -> int:
        """The size of all its pages, written or not."""
        return sum(self.layer(number).pages * _PAGE for number in range(self.layers))


def _find(session: Session, key: bytes) -> BloomFilter | None:
    entry = session.space.find(session.database, key, BLOOM)
    return None if entry is None else BloomFilter(session.space.records, entry)


def _make(session: Session, rate: float, capacity: int, expansion: int) -> BloomFilter:
    entry = session.space.make(BLOOM)
    entry.rest = _REST.pack(rate, capacity, expansion, 1, 0)
    return BloomFilter(session.space.records, entry)


@command("BF.RESERVE", -4, "write fast", group="bf")
def bf_reserve(session: Session, args: list[bytes]) -> Reply:
    """Make an empty filter for a false positive rate and a number of items."""
    rate = to_float(args[2], "ERR bad error rate")
    if not 0 < rate < 1:
        raise CommandError("ERR (0 < error rate range < 1)")
    if rate < _LEAST_RATE:
        raise CommandError(f"ERR error rate is less than {_LEAST_RATE}")
    capacity = to_int(args[3], "ERR bad capacity")
    if not 0 < capacity <= _MOST_ITEMS:
        raise CommandError(f"ERR (0 < capacity <= {_MOST_ITEMS})")
    expansion, scales = _EXPANSION, True
    options = Options(args[4:])
    for word in options:
        if word == b"NONSCALING":
            scales = False
        elif word == b"EXPANSION":
            expansion = to_int(options.value(), "ERR bad expansion")
            if not 1 <= expansion <= 32768:
                raise CommandError("ERR expansion should be between 1 and 32768")
        else:
            raise syntax_error()
    if session.space.find(session.database, args[1]) is not None:
        raise CommandError("ERR item exists")
    made = _make(session, rate, capacity, expansion if scales else 0)
    if made.layer(0).pages > _MOST_PAGES:
        raise CommandError(
            "ERR the filter would be too large: use a smaller capacity or a higher error rate"
        )
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
    """Add an item.  Returns 0 if it may have been added before."""
    return _add(session, args[1], args[2:])[0]


@command("BF.MADD", -3, "write fast", group="bf")
def bf_madd(session: Session, args: list[bytes]) -> Reply:
    """Add items.  Returns 0 for each that may have been added before."""
    return _add(session, args[1], args[2:])


@command("BF.EXISTS", 3, "readonly fast", group="bf")
def bf_exists(session: Session, args: list[bytes]) -> Reply:
    """Return whether an item may have been added; 0 is certain."""
    found = _find(session, args[1])
    return int(found is not None and found.may_contain(args[2]))


@command("BF.MEXISTS", -3, "readonly fast", group="bf")
def bf_mexists(session: Session, args: list[bytes]) -> Reply:
    """Return which items may have been added; 0 is certain."""
    found = _find(session, args[1])
    return [int(found is not None and found.may_contain(item)) for item in args[2:]]


@command("BF.INFO", -2, "readonly fast", group="bf")
def bf_info(session: Session, args: list[bytes]) -> Reply:
    """Return capacity, size in bytes, layers, items and growth of a filter."""
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
