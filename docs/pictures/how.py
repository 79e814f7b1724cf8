"""Draws ``how/*.svg``: what happens on a put, a get, a compaction, a recovery, and what is durable.

``make pictures`` runs it.  Nothing is measured: the pages in docs/how say in words what these show,
and name the code that does it.  All are narrow, to be legible on a telephone.
"""

from __future__ import annotations

from collections.abc import Callable

from drawing import BOXES, HEAD, HERE, MARGIN, WIDTH, arrow, bar, box, card, line, text

RIGHT = WIDTH - MARGIN


def write() -> str:
    """From a put to a table: memory on the left, files on the right."""
    left, right, wide = MARGIN, 258, 204
    middle = left + wide / 2
    parts = [
        HEAD,
        text(left, 60, "head", "in memory"),
        text(right, 60, "head", "in files"),
        box(left, 72, wide, 44, "put, delete, batch", "any thread"),
        arrow(middle, 116, middle, 136),
        box(
            left,
            138,
            wide,
            62,
            "queue of writers",
            "the first one leads,",
            "and commits for others",
        ),
        arrow(left + wide, 158, right - 4, 158),
        box(
            right,
            138,
            wide,
            62,
            "log",
            "one record for the group;",
            "fsync, if sync=True",
            kind="mark",
        ),
        text(234, 152, "small muted middle", "1"),
        arrow(middle, 200, middle, 220),
        text(middle + 12, 215, "small muted", "2"),
        box(left, 222, wide, 44, "memtable", "up to 4 MiB"),
        arrow(middle, 266, middle, 292),
        text(middle + 12, 284, "small muted", "full: a new log begins"),
        box(left, 294, wide, 44, "immutable memtable", "still read from"),
        arrow(left + wide, 316, right - 4, 316),
        text(240, 308, "small muted middle", "flush"),
        box(right, 294, wide, 44, "table", "level 0, at most 2", kind="mark"),
        arrow(right + wide / 2, 338, right + wide / 2, 358),
        box(right, 360, wide, 44, "MANIFEST", "one more edit, fsynced", kind="mark"),
        arrow(right, 382, left + wide + 4, 382),
        box(left, 360, wide, 44, "new Version", "readers see the table"),
        bar(MARGIN, 422, WIDTH - 2 * MARGIN, 1, "weak"),
        text(
            MARGIN,
            444,
            "small muted",
            "1 before 2: what a reader has seen, a killed process does not",
        ),
        text(MARGIN, 462, "small muted", "lose. The old log goes once the edit is durable."),
    ]
    return card(
        "A put, from memory to a table",
        "Writers queue up; the first one writes one record for the group to the log, then adds the"
        " entries to the memtable. A full memtable becomes immutable and is flushed into a table,"
        " which an edit in the MANIFEST makes visible.",
        478,
        parts,
        style=BOXES,
    )


def read() -> str:
    """The places where a Get looks, and the steps within each table."""
    left, wide = MARGIN, 190
    steps_x, steps_wide = 250, 212
    places = [
        ("memtable", "newest writes"),
        ("immutable memtable", "if there is one"),
        ("row cache", "values asked for often"),
        ("level 0", "each table, newest first"),
        ("level 1", "one table at most"),
        ("levels 2 to 6", "one table on each"),
    ]
    parts = [HEAD, text(left, 60, "head", "where to look")]
    for at, (name, detail) in enumerate(places):
        y = 72 + 62 * at
        parts.append(box(left, y, wide, 44, name, detail, kind="mark" if at >= 3 else "box"))
        if at:
            parts.append(arrow(left + wide / 2, y - 18, left + wide / 2, y - 2))
    parts.append(text(steps_x, 60, "head", "in each table"))
    steps = [
        ("range: may it be here?", "from the MANIFEST"),
        ("index: in which block?", "in memory"),
        ("filter: was it added?", "in memory"),
        ("block cache", "32 MiB"),
        ("data block", "one read, checksum"),
        ("search in the block", "the newest version"),
    ]
    for at, (name, detail) in enumerate(steps):
        y = 72 + 62 * at
        kind = "bad" if at == 4 else "box"
        parts.append(box(steps_x, y, steps_wide, 44, name, detail, kind=kind))
        if at:
            parts.append(arrow(steps_x + steps_wide / 2, y - 18, steps_x + steps_wide / 2, y - 2))
    for at, words in ((1, "no"), (3, "no"), (4, "hit")):
        parts.append(
            text(steps_x + steps_wide / 2 + 10, 72 + 62 * at - 5, "small muted", _after(words))
        )
    end = 72 + 62 * 6
    parts += [
        bar(MARGIN, end, WIDTH - 2 * MARGIN, 1, "weak"),
        text(
            MARGIN,
            end + 22,
            "small muted",
            "The first place that knows the key decides, a deletion too.",
        ),
        text(
            MARGIN,
            end + 40,
            "small muted",
            "Of an open table only red reads the file. One filter of 64-bit",
        ),
        text(
            MARGIN,
            end + 58,
            "small muted",
            "hashes for a whole table is asked before the index.",
        ),
    ]
    return card(
        "A Get, place by place",
        "A Get asks the memtable, the immutable memtable and the row cache, then the tables from"
        " new to old. In each table: the range, the index, the filter, the block cache, and only"
        " then the data block.",
        end + 74,
        parts,
        style=BOXES,
    )


def _after(words: str) -> str:
    """What leads past the steps that follow."""
    return {"no": "no: next table", "hit": "hit: no read"}[words]


def compaction() -> str:
    """Two levels before and after, and which versions of a key stay."""
    left, unit = 92, 37

    def table(
        level: int, start: int, end: int, words: str, kind: str = "box", top: int = 84
    ) -> str:
        return box(
            left + unit * start, top + 42 * level, unit * (end - start) - 6, 30, words, kind=kind
        )

    parts = [HEAD]
    for top, name in ((84, "before"), (264, "after")):
        parts.append(text(MARGIN, top - 12, "head", name))
        for level in range(3):
            parts.append(text(MARGIN, top + 42 * level + 20, "small muted", f"level {level + 1}"))
    parts += [
        table(0, 0, 3, "a..d"),
        table(0, 3, 6, "e..h", "mark"),
        table(0, 7, 10, "m..r"),
        table(1, 0, 2, "a..c"),
        table(1, 2, 5, "d..f", "mark"),
        table(1, 5, 7, "g..k", "mark"),
        table(1, 8, 10, "n..t"),
        table(2, 0, 4, "a..e"),
        table(2, 4, 10, "f..t"),
        arrow(left + unit * 4, 208, left + unit * 4, 246),
        text(left + unit * 4 + 12, 232, "small muted", "merged, in order, into new tables"),
        table(0, 0, 3, "a..d", top=264),
        table(0, 3, 6, "", "gone", top=264),
        table(0, 7, 10, "m..r", top=264),
        table(1, 0, 2, "a..c", top=264),
        table(1, 2, 4, "d..e", "mark", top=264),
        table(1, 4, 7, "f..k", "mark", top=264),
        table(1, 8, 10, "n..t", top=264),
        table(2, 0, 4, "a..e", top=264),
        table(2, 4, 10, "f..t", top=264),
    ]
    top = 412
    parts.append(text(MARGIN, top, "head", "what stays of a key"))
    rows = [
        ("f = 3, sequence 91", "the newest: stays", "mark"),
        ("f = 2, sequence 60", "stays if a snapshot is older than 91", "box"),
        ("f = 1, sequence 12", "dropped, unless one is older than 60", "gone"),
        ("g deleted, sequence 70", "stays: f..t below may hold g", "box"),
    ]
    for at, (entry, detail, kind) in enumerate(rows):
        y = top + 12 + 36 * at
        parts.append(box(MARGIN, y, 186, 28, entry, kind=kind))
        parts.append(text(MARGIN + 198, y + 19, "small", detail))
    return card(
        "A compaction, from level 1 to level 2",
        "A table of level 1 and the tables of level 2 that it overlaps are merged into new tables"
        " of level 2. Of each key the newest version stays, older ones only for a snapshot; a"
        " deletion stays while a deeper level may hold the key.",
        top + 12 + 36 * 4 + 12,
        parts,
        style=BOXES,
    )


def recovery() -> str:
    """The order of opening, and the two ways in which a log may end or be damaged."""
    parts = [HEAD]
    steps = [
        ("LOCK, CURRENT", "names the MANIFEST"),
        ("MANIFEST", "tables, log number, last sequence"),
        ("logs, oldest first", "replayed into a memtable"),
        ("tables of level 0", "what the logs held, fsynced"),
        ("one edit", "new tables, new log number"),
        ("remove", "what no longer counts"),
    ]
    for at, (name, detail) in enumerate(steps):
        x = MARGIN + 228 * (at % 2)
        y = 54 + 66 * (at // 2)
        parts.append(box(x, y, 216, 46, name, detail, kind="mark" if at == 4 else "box"))
        if at % 2:
            parts.append(arrow(x - 11, y + 23, x - 1, y + 23))
        elif at:
            parts.append(arrow(x + 290, y - 20, x + 150, y - 2))
    top = 274

    def log(y: float, records: list[tuple[str, float, str]]) -> None:
        x: float = MARGIN
        for words, width, kind in records:
            parts.append(box(x, y, width - 4, 30, words, kind=kind))
            x += width

    parts.append(text(MARGIN, top, "head", "the newest log ends in a torn record"))
    log(
        top + 10,
        [
            ("41", 60, "box"),
            ("42..44", 90, "box"),
            ("45", 60, "box"),
            ("46, cut short", 130, "bad"),
        ],
    )
    parts.append(
        text(MARGIN, top + 60, "small", "Never acknowledged: left out. 41 to 45 are kept.")
    )
    top += 92
    parts.append(text(MARGIN, top, "head", "a record in the middle is damaged"))
    log(
        top + 10,
        [
            ("41", 60, "box"),
            ("42..44", 90, "box"),
            ("checksum", 100, "bad"),
            ("49", 60, "gone"),
            ("50..52", 90, "gone"),
        ],
    )
    parts += [
        text(
            MARGIN,
            top + 60,
            "small",
            "A gap: 45 to 48 are missing. What comes before it is kept; the",
        ),
        text(
            MARGIN,
            top + 78,
            "small",
            "log goes to lost/, with a warning. 49 without 48 is a state that",
        ),
        text(
            MARGIN,
            top + 96,
            "small",
            "the store was never in. paranoid_checks refuses such a store.",
        ),
    ]
    return card(
        "Opening a store after a crash",
        "Lock, CURRENT, MANIFEST, logs, new tables, one edit, removal. A torn last record is left"
        " out. A gap in the sequences of a log ends what is kept, and the log is set aside.",
        top + 114,
        parts,
        style=BOXES,
    )


def durability() -> str:
    """A log with what survives, and the order of syncs."""
    parts = [HEAD, text(MARGIN, 62, "head", "the log, from left to right")]
    widths = [
        ("put", "box"),
        ("put", "box"),
        ("put, sync", "mark"),
        ("put", "box"),
        ("batch", "box"),
    ]
    x: float = MARGIN
    edges = [x]
    for words, kind in widths:
        width = 110 if kind == "mark" else 72
        parts.append(box(x, 74, width - 4, 32, words, kind=kind))
        x += width
        edges.append(x)
    parts.append(box(x, 74, RIGHT - x, 32, "...", kind="gone"))
    synced, acknowledged = edges[3] - 2, edges[5] - 2
    parts += [
        line(synced, 70, 142, "strong"),
        line(acknowledged, 70, 196, "axis"),
        bar(MARGIN, 124, synced - MARGIN, 8, "strong"),
        text(MARGIN, 150, "small", "survives a power cut for certain"),
        bar(synced, 124, acknowledged - synced, 8, "weak"),
        text(synced + 8, 150, "small muted", "perhaps, from the left"),
        bar(MARGIN, 178, acknowledged - MARGIN, 8, "strong"),
        text(MARGIN, 204, "small", "survives the kill of the process for certain"),
    ]
    top = 244
    parts.append(text(MARGIN, top, "head", "nothing is named before it is durable"))
    steps = [
        ("fsync the table", "its content"),
        ("fsync the directory", "its name"),
        ("append the edit to the MANIFEST", "and fsync it: now the table counts"),
        ("remove old tables and logs", "last of all"),
    ]
    for at, (name, detail) in enumerate(steps):
        y = top + 12 + 62 * at
        parts.append(box(MARGIN, y, 250, 44, name, detail, kind="mark" if at == 2 else "box"))
        if at:
            parts.append(arrow(MARGIN + 125, y - 18, MARGIN + 125, y - 2))
    notes = [
        ("A cut here: a table that", "no MANIFEST names"),
        ("the same", "it is removed on opening"),
        ("before the fsync: old state;", "after it: new state"),
        ("files that nothing names", "are removed on opening"),
    ]
    for at, lines in enumerate(notes):
        y = top + 12 + 62 * at
        for row, words in enumerate(lines):
            parts.append(text(MARGIN + 262, y + 19 + 17 * row, "small muted", words))
    return card(
        "What survives, and why",
        "Acknowledged writes survive the kill of the process; writes up to the last sync survive a"
        " power cut, and of later ones a prefix. Tables are synced before the MANIFEST names them,"
        " and removed after it no longer does.",
        top + 12 + 62 * 4 + 4,
        parts,
        style=BOXES,
    )


def processes() -> str:
    """One put of a member: the member on the left, the owner on the right, files below."""
    left, right, wide = MARGIN, 258, 204
    middle, other = left + wide / 2, right + wide / 2
    parts = [
        HEAD,
        text(left, 60, "head", "a member"),
        text(right, 60, "head", "the owner"),
        box(left, 72, wide, 44, "put", "any thread"),
        arrow(left + wide, 94, right - 4, 94),
        text(234, 88, "small muted middle", "1"),
        box(right, 72, wide, 62, "its thread", "all that came in:", "one group"),
        arrow(other, 134, other, 156),
        text(other + 12, 150, "small muted", "2"),
        box(right, 158, wide, 44, "log", "and fsync, if sync=True", kind="mark"),
        arrow(other, 202, other, 224),
        text(other + 12, 218, "small muted", "3"),
        box(right, 226, wide, 44, "the page's sequence", "now the write happens", kind="mark"),
        arrow(other, 270, other, 292),
        text(other + 12, 286, "small muted", "4"),
        box(right, 294, wide, 44, "memtable, answer", "the put returns"),
        text(left, 176, "head", "any member"),
        box(left, 188, wide, 44, "get, iterator, ...", "any thread"),
        arrow(right - 4, 248, left + wide, 220),
        text(left + wide + 22, 222, "small muted middle", "a"),
        arrow(middle, 232, middle, 292),
        text(middle + 12, 262, "small muted", "b: behind? read on"),
        text(middle + 12, 279, "small muted", "in the log, up to it"),
        box(left, 294, wide, 44, "its own memtable", "and tables, leased"),
    ]
    return card(
        "One write of a member, and who sees it",
        "A member sends its batch to the owner, which appends it to the log, syncs it if that is"
        " asked for, and then stores its sequence in shared memory: from then on the write has"
        " happened. Every read of a member compares that sequence with its own, and reads on in the"
        " log first if it is behind.",
        354,
        parts,
        style=BOXES,
    )


def handing_over() -> str:
    """From one owner to the next: that one on the left, any other member on the right."""
    left, right, wide = MARGIN, 258, 204
    middle, other = left + wide / 2, right + wide / 2
    parts = [
        HEAD,
        box(
            left,
            50,
            WIDTH - 2 * MARGIN,
            44,
            "the owner is killed, or closes the store",
            "its lock, its leases and its connections end",
            kind="gone",
        ),
        text(left, 124, "head", "the next owner"),
        text(right, 124, "head", "any other member"),
        arrow(middle, 94, middle, 108),
        arrow(other, 94, other, 108),
        box(left, 136, wide, 44, "LOCK", "the first one gets it", kind="mark"),
        arrow(middle, 180, middle, 202),
        text(middle + 12, 196, "small muted", "1"),
        box(left, 204, wide, 44, "the old page", "an impossible sequence", kind="mark"),
        arrow(middle, 248, middle, 270),
        text(middle + 12, 264, "small muted", "2"),
        box(left, 272, wide, 62, "recovery", "as at any opening; tables", "that are leased stay"),
        arrow(middle, 334, middle, 356),
        text(middle + 12, 350, "small muted", "3"),
        box(left, 358, wide, 44, "its socket", "it serves from now on"),
        arrow(middle, 402, middle, 424),
        text(middle + 12, 418, "small muted", "4"),
        box(left, 426, wide, 44, "SHARED", "what it has recovered", kind="mark"),
        box(right, 136, wide, 44, "a read, or a write", "without an answer yet"),
        arrow(other, 180, other, 270),
        arrow(left + wide, 226, other - 8, 226),
        text(other + 12, 214, "small muted", "sees the page,"),
        text(other + 12, 231, "small muted", "or the end of its"),
        text(other + 12, 248, "small muted", "connection"),
        box(right, 272, wide, 62, "waits", "snapshots and iterators", "go on, by their leases"),
        arrow(other, 334, other, 356),
        arrow(left + wide, 448, right - 4, 392),
        box(right, 358, wide, 44, "joins", "the new page, a new lease"),
        arrow(other, 402, other, 424),
        text(other + 12, 418, "small muted", "was it a write?"),
        box(right, 426, wide, 44, "its slot in the old page", "is it there, and recovered?"),
        arrow(right + 50, 470, right + 50, 492),
        arrow(right + 154, 470, right + 154, 492),
        text(right + 42, 486, "small muted right", "yes"),
        text(right + 162, 486, "small muted", "no"),
        box(right, 494, 98, 44, "it returns"),
        box(right + 106, 494, 98, 44, "sent again"),
        text(left, 500, "small muted", "1 before 2: nobody reads"),
        text(left, 517, "small muted", "by the old page what 2"),
        text(left, 534, "small muted", "has changed."),
    ]
    return card(
        "Handing over, to the next owner",
        "When the owner has gone, one process gets LOCK. It stores an impossible sequence in the"
        " old page, recovers the store, listens on its socket, and notes in SHARED what it has"
        " recovered. The other members see the old page, wait, and join. A write without an answer"
        " has happened if its slot in the old page names it and its last sequence was recovered;"
        " otherwise it is sent again.",
        554,
        parts,
        style=BOXES,
    )


PICTURES: dict[str, Callable[[], str]] = {
    "write": write,
    "read": read,
    "compaction": compaction,
    "recovery": recovery,
    "durability": durability,
    "processes": processes,
    "handing_over": handing_over,
}

if __name__ == "__main__":
    folder = HERE / "how"
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")
