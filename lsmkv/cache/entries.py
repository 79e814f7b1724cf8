"""Operations of a step on an entry: :func:`put`, :func:`remove` and others.

An entry is its head, its key in the order of storing, and one key in each index; its chunks, if its
value is large, or its value beside the head.  These functions keep all of them in step, and count.
"""

from __future__ import annotations

from typing import Final

from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.entry_head import RAW, Head, Pointer, entry_size, make, parse, with_expiry
from lsmkv.cache.keys import (
    HEAD,
    POSITION_SIZE,
    eviction_key,
    expiry_key,
    moment,
    number_moment,
    order_key,
    tag_prefix,
)
from lsmkv.engine.errors import CorruptionError

_FIRST: Final = bytes(POSITION_SIZE)
READ: Final = b"r"
"""The mark of an entry that was read since it was stored."""


def put(
    step: Step,
    name: bytes,
    old_data: bytes | None,
    number: bytes,
    now: float,
    expiry: float | None,
    tag: bytes | None,
    raw: bool,
    value: bytes | Pointer,
    counts: bool,
    position: bytes | None = None,
) -> bytes:
    """Store an entry in place of that with ``old_data``; ``number`` is for a new one.

    Returns its head.  An entry keeps its place in the order of storing.  ``counts`` says that
    positions are counts; else it gets the ``position``, or that of its time.
    """
    if counts:
        position = _FIRST
    elif isinstance(value, Pointer) and value.beside:
        position = number_moment(value.number)
    elif position is None:
        position = moment(now)
    old_size = 0
    if old_data is None:
        step.count += 1
    else:
        old = parse(old_data)
        number = old.number
        old_size = entry_size(name, old_data, old.pointer)
        _leave(step, old, position)
        if old.expiry is not None and old.expiry != expiry:
            step.delete(expiry_key(old.expiry, number))
        if old.tag is not None and old.tag != tag:
            step.delete(tag_prefix(old.tag) + number)
    data = make(number, now, expiry, tag, raw, value)
    step.put(name, data)
    step.put(order_key(number), position + name[1:])
    step.put(eviction_key(position, number), b"")
    if expiry is not None:
        step.put(expiry_key(expiry, number), b"")
    if tag is not None:
        step.put(tag_prefix(tag) + number, b"")
    pointer = value if isinstance(value, Pointer) else None
    step.size += entry_size(name, data, pointer) - old_size
    step.changed = True
    return data


def _leave(step: Step, old: Head, position: bytes | None) -> None:
    """Take an entry out of the order of eviction unless it stays there; and drop its value."""
    entry = step.get(order_key(old.number))
    if entry is not None and entry[:POSITION_SIZE] != position:
        step.delete(eviction_key(entry[:POSITION_SIZE], old.number))
    pointer = old.pointer
    if pointer is not None and not (pointer.beside and step.keeps_values):
        for index in range(pointer.chunks):
            step.delete(pointer.key(index))


def remove(step: Step, name: bytes, data: bytes, head: Head | None = None) -> None:
    """Remove an entry, of which ``data`` is the head."""
    if head is None:
        head = parse(data)
    _leave(step, head, None)
    step.delete(name)
    step.delete(order_key(head.number))
    if head.expiry is not None:
        step.delete(expiry_key(head.expiry, head.number))
    if head.tag is not None:
        step.delete(tag_prefix(head.tag) + head.number)
    step.count -= 1
    step.size -= entry_size(name, data, head.pointer)
    step.changed = True


def set_expiry(step: Step, name: bytes, data: bytes, head: Head, expiry: float | None) -> None:
    """Give an entry another expiry."""
    number = head.number
    made = with_expiry(data, head, expiry)
    step.put(name, made)
    if head.expiry is not None and head.expiry != expiry:
        step.delete(expiry_key(head.expiry, number))
    if expiry is not None:
        step.put(expiry_key(expiry, number), b"")
    step.size += len(made) - len(data)
    step.changed = True


def move(step: Step, number: bytes, position: bytes) -> None:
    """Put an entry elsewhere in the order of eviction, if there still is one."""
    entry = step.get(order_key(number))
    if entry is None or entry[:POSITION_SIZE] == position:
        return
    step.delete(eviction_key(entry[:POSITION_SIZE], number))
    step.put(eviction_key(position, number), b"")
    step.put(order_key(number), position + entry[POSITION_SIZE:])
    step.changed = True


def entry_of(step: Step, number: bytes) -> tuple[bytes, bytes] | None:
    """The name of the entry that has a number in the order of storing, and its head's bytes."""
    entry = step.get(order_key(number))
    name = b"" if entry is None else HEAD + entry[POSITION_SIZE:]
    data = None if entry is None else step.get(name)
    return None if data is None else (name, data)


def renew(step: Step, number: bytes, now: float) -> int | None:
    """Put an entry last in the order of eviction, and its value after all others.

    Returns the bytes that were copied for it, or None if it has expired, or is not whole.
    """
    found = entry_of(step, number)
    if found is None:
        return None
    name, data = found
    try:
        head = parse(data)
    except CorruptionError:
        return None
    pointer = head.pointer
    if head.number != number or head.expired(now):
        return None
    if pointer is None or not pointer.beside:
        move(step, number, step.position(now))
        return 0
    value = step.get(pointer.key(0))
    if value is None:
        return None
    moved = step.put_beside(value, now)
    put(step, name, data, b"", now, head.expiry, head.tag, bool(head.flags & RAW), moved, False)
    return len(value)


def restore(step: Step, number: bytes, now: float) -> None:
    """Give an entry a position in time, after positions that were counts."""
    found = entry_of(step, number)
    if found is not None:
        pointer = parse(found[1]).pointer
        beside = pointer is not None and pointer.beside
        move(step, number, number_moment(pointer.number) if pointer and beside else moment(now))


def mark_read(step: Step, number: bytes) -> None:
    """Mark an entry as read, if there still is one."""
    entry = step.get(order_key(number))
    if entry is not None:
        step.put(eviction_key(entry[:POSITION_SIZE], number), READ)
        step.changed = True
