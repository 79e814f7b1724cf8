"""PFADD, PFCOUNT and PFMERGE: how many different items were added, estimated.

A HyperLogLog is a string of at most 12 KiB.  A command reads all of it, and writes all of it if it
changes anything.
"""

from __future__ import annotations

from lsmkv.server.encoding import STRING
from lsmkv.server.hyperloglog import REGISTERS, HyperLogLog, estimate, largest
from lsmkv.server.registry import command
from lsmkv.server.resp import OK, Reply
from lsmkv.server.session import Session


def _read(session: Session, key: bytes) -> HyperLogLog | None:
    value = session.space.string(session.database, key)
    if value is None:
        return None
    return HyperLogLog(value, session.service.settings.hll_sparse_most)


@command("PFADD", -2, "write fast", group="hyperloglog")
def pfadd(session: Session, args: list[bytes]) -> Reply:
    """Add items.  Returns 1 if the estimate may have changed, or if the key is new."""
    entry, new = session.space.find_or_make(session.database, args[1], STRING)
    most = session.service.settings.hll_sparse_most
    found = HyperLogLog(None if new else session.space.content(entry), most)
    changed = new
    for item in args[2:]:
        changed = found.add(item) or changed
    if changed:
        found.outdate()
        session.space.set_content(entry, bytes(found.value))
        session.space.save(session.database, args[1], entry, new)
        session.announce("$", "pfadd", args[1])
    return int(changed)


@command("PFCOUNT", -2, "readonly", group="hyperloglog")
def pfcount(session: Session, args: list[bytes]) -> Reply:
    """Return about how many different items were added to a key, or to any of several.

    The estimate of one key is kept with it until that changes.
    """
    if len(args) > 2:
        return estimate(_union(session, args[1:])[0])
    space = session.space
    entry = space.find(session.database, args[1], STRING)
    if entry is None:
        return 0
    found = HyperLogLog(space.content(entry))
    kept = found.estimate
    if kept is None:
        kept = estimate(found.registers())
        if space.writable and not space.reading:
            found.keep_estimate(kept)
            space.set_content(entry, bytes(found.value))
            space.save(session.database, args[1], entry)
    return kept


def _union(session: Session, keys: list[bytes]) -> tuple[bytes, bool]:
    """The registers of several keys together, and whether one of them is dense."""
    union = bytes(REGISTERS)
    dense = False
    for key in keys:
        found = _read(session, key)
        if found is not None:
            dense = dense or found.is_dense
            union = largest(union, found.registers())
    return union, dense


@command("PFMERGE", -2, "write", group="hyperloglog")
def pfmerge(session: Session, args: list[bytes]) -> Reply:
    """Add all that other keys have to a key."""
    union, dense = _union(session, args[1:])
    session.space.counting = False
    entry, new = session.space.find_or_make(session.database, args[1], STRING)
    most = session.service.settings.hll_sparse_most
    found = HyperLogLog(None if new else session.space.content(entry), most)
    if dense:
        found.make_dense()
    found.raise_registers(union)
    found.outdate()
    session.space.set_content(entry, bytes(found.value))
    session.space.save(session.database, args[1], entry, new)
    session.announce("$", "pfadd", args[1])
    return OK
