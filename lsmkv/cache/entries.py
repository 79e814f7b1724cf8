"""What a step does to an entry: :func:`put`, :func:`remove` and others.

An entry is its head, its key in the order of storing, and one key in each index; its chunks, if its
value is large.  These functions keep all of them in step, and count.
"""

from __future__ import annotations

from typing import Final

from lsmkv.cache.atomic_steps import Step
from lsmkv.cache.entry_head import Head, Pointer, entry_size, make, parse, with_expiry
from lsmkv.cache.keys import (
    POSITION_SIZE,
    chunk_key,
    eviction_key,
    expiry_key,
    moment,
    order_key,
    tag_prefix,
)

_FIRST: Final = bytes(POSITION_SIZE)


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
    """Take an entry out of the order of eviction unless it stays there; and drop its chunks."""
    entry = step.get(order_key(old.number))
    if entry is not None and entry[:POSITION_SIZE] != position:
        step.delete(eviction_key(entry[:POSITION_SIZE], old.number))
    if old.pointer is not None:
        for index in range(old.pointer.chunks):
            step.delete(chunk_key(old.pointer.number, index))


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
