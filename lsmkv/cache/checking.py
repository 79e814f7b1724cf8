"""Consistency of a cache's entries, indexes and counters: :func:`check`, for ``Cache.check``."""

from __future__ import annotations

from lsmkv.cache.atomic_steps import Step, Steps
from lsmkv.cache.entry_head import entry_size, parse
from lsmkv.cache.keys import (
    CHUNK,
    EVICTION,
    EXPIRY,
    HEAD,
    NUMBER_SIZE,
    ORDER,
    PENDING,
    POSITION_SIZE,
    QUEUE,
    TAG,
    VALUE,
    eviction_key,
    expiry_key,
    order_key,
    tag_prefix,
)
from lsmkv.cache.queues import is_within, queue_of
from lsmkv.engine.errors import CorruptionError

_BATCH = 100


class _Repair:
    """The keys that are to be written or removed."""

    def __init__(self, steps: Steps, fix: bool) -> None:
        self._steps = steps
        self._fix = fix
        self.problems: list[str] = []
        self._changes: dict[bytes, bytes | None] = {}

    def report(self, problem: str, changes: dict[bytes, bytes | None]) -> None:
        self.problems.append(problem)
        self._changes.update(changes)

    def carry_out(self) -> None:
        if not self._fix:
            return
        _change(self._steps, list(self._changes.items()))


def _change(steps: Steps, changes: list[tuple[bytes, bytes | None]]) -> None:
    """Write keys, and remove those whose value is None, in batches."""
    for begin in range(0, len(changes), _BATCH):
        part = changes[begin : begin + _BATCH]
        steps.run(lambda step: _apply(step, part))  # noqa: B023 - called at once


def _apply(step: Step, changes: list[tuple[bytes, bytes | None]]) -> None:
    for key, value in changes:
        if value is None:
            step.delete(key)
        else:
            step.put(key, value)
    step.changed = True


def check(steps: Steps, fix: bool) -> list[str]:
    """Return the faults, one sentence each.  With ``fix``, repair them.

    Damaged entries are removed.  Nothing else may write to the cache during this.  Cost: a read of
    the whole store, and memory for the names of all index keys.
    """
    repair = _Repair(steps, fix)
    db = steps.db
    numbers: dict[bytes, bytes] = {}
    """The key of the user, by its entry's number."""
    wanted: set[bytes] = set()
    """The index keys that there should be."""
    values: dict[bytes, int] = {}
    """The chunks that there should be, by the number of a value."""
    size = 0
    queues = dict(db.iterator(prefix=QUEUE))

    for name, data in db.iterator(prefix=HEAD):
        try:
            head = parse(data)
        except CorruptionError as error:
            repair.report(f"the entry {name[1:]!r} is damaged: {error}", {name: None})
            continue
        if head.number in numbers:
            repair.report(f"the entry {name[1:]!r} has another's number", {name: None})
            continue
        pointer = head.pointer
        if pointer is not None:
            have = 0
            for index in range(pointer.chunks):
                piece = db.get(pointer.key(index)) or b""
                if len(piece) == pointer.length(index):  # else a reader finds others' bytes
                    have += len(piece)
            if have != pointer.size:
                repair.report(
                    f"the entry {name[1:]!r} has {have:,} of {pointer.size:,} bytes", {name: None}
                )
                continue
            values[pointer.number] = pointer.chunks  # also of a value beside its head
        place = queue_of(name)
        if place is not None and place[0] in queues and not is_within(place[1], queues[place[0]]):
            repair.report(f"the entry {name[1:]!r} is outside of its queue", {place[0]: None})
        numbers[head.number] = name[1:]
        size += entry_size(name, data, pointer)
        order = order_key(head.number)
        entry = db.get(order)
        if entry is None or entry[POSITION_SIZE:] != name[1:]:
            entry = bytes(POSITION_SIZE) + name[1:]
            repair.report(f"the entry {name[1:]!r} is not in the order of storing", {order: entry})
        eviction = eviction_key(entry[:POSITION_SIZE], head.number)
        keys = [eviction]
        if head.expiry is not None:
            keys.append(expiry_key(head.expiry, head.number))
        if head.tag is not None:
            keys.append(tag_prefix(head.tag) + head.number)
        for key in keys:
            wanted.add(key)
            if db.get(key) is None:
                repair.report(f"the entry {name[1:]!r} is missing in an index", {key: b""})

    for key in db.iterator(prefix=ORDER, include_value=False):
        if key[1:] not in numbers:
            repair.report(f"{key!r} leads to no entry", {key: None})
    for prefix in (EVICTION, EXPIRY, TAG):
        for key in db.iterator(prefix=prefix, include_value=False):
            if key not in wanted:
                repair.report(f"{key!r} leads to no entry", {key: None})
    pending = {key[1:] for key in db.iterator(prefix=PENDING, include_value=False)}
    for key in db.iterator(prefix=CHUNK, include_value=False):
        number = key[1 : 1 + NUMBER_SIZE]
        index = int.from_bytes(key[1 + NUMBER_SIZE :], "big")
        if index >= values.get(number, 0) and number not in pending:
            repair.report(f"{key!r} is a chunk of no entry", {key: None})
    if not steps.keeps_values:
        for key in db.iterator(prefix=VALUE, include_value=False):
            if key[1:] not in values:
                repair.report(f"{key!r} is a value of no entry", {key: None})

    totals = steps.totals()
    if (totals.entries, totals.size) != (len(numbers), size):
        repair.problems.append(
            f"{totals.entries:,} entries of {totals.size:,} bytes were counted,"
            f" and there are {len(numbers):,} of {size:,}"
        )
        if fix:
            steps.correct(len(numbers), size)
    repair.carry_out()
    return repair.problems


def remove_unowned_values(steps: Steps) -> None:
    """Remove values beside heads that no head has, which nobody drops under the new policy.

    Cost: a scan of all heads, and memory for the numbers of the values.
    """
    db = steps.db
    unowned = set(db.iterator(prefix=VALUE, include_value=False))
    for _, data in db.iterator(prefix=HEAD):
        pointer = parse(data).pointer
        if pointer is not None and pointer.beside:
            unowned.discard(pointer.key(0))
    _change(steps, [(key, None) for key in sorted(unowned)])
