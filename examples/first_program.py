"""A first program: store a few things, in order, on disk.

Run it twice: the second time it finds what the first one left in ``./animals``.
"""

from __future__ import annotations

import lsmkv

with lsmkv.DB("animals", create_if_missing=True) as db:
    # Keys and values are bytes.  For an absent key, get() returns None or your default.
    runs = int(db.get(b"runs", b"0"))
    print("runs before this one:", runs)
    db.put(b"runs", b"%d" % (runs + 1))
    db.put(b"bird:owl", b"hoots at night")
    db.put(b"bird:wren", b"tiny, and loud")
    print("owl:", db.get(b"bird:owl"))
    print("dodo:", db.get(b"bird:dodo"))

    # A batch is written completely or not at all; with sync=True it also survives a power cut.
    with db.write_batch(sync=True) as batch:
        batch.put(b"fish:carp", b"lives long")
        batch.put(b"fish:pike", b"eats the carp")
        batch.delete(b"bird:wren")

    # A snapshot keeps showing the state from when it was taken.
    with db.snapshot() as before:
        db.delete(b"fish:carp")
        print("carp now:", db.get(b"fish:carp"), "- before:", before.get(b"fish:carp"))

    # Keys come in order, forwards or backwards, all of them or a range.
    for key, value in db.iterator(prefix=b"bird:"):
        print(key.decode(), "->", value.decode())
    print("last key:", next(db.iterator(reverse=True, include_value=False)).decode())
