"""Texts of ``lsmkv top``: the meaning of its figures, and the reason for which there are none."""

from __future__ import annotations

from textual.content import Content

from lsmkv.tools.top import figures
from lsmkv.tools.top.watch import Watch

HELP: tuple[tuple[str, str], ...] = (
    (
        "Operations",
        "The number of each kind in the last second, and the latencies of the last 10 seconds:"
        " half of them at most p50, 99 of 100 at most p99 (to 3.2%). A write is a batch of several"
        " operations; a seek is the first step of an iterator.",
    ),
    (
        "Processes",
        "Of a store that processes share: Gets and writes of each, how long a member's writes took,"
        " waiting for the owner included, and for how long it was without an owner before it had"
        " this one. Above, the Gets of all are counted, and the owner's are timed.",
    ),
    (
        "Leases with names",
        "Locks, transactions and memoize(lock=True) of a cache: the process ids of those who hold"
        " each and of those who wait. An owner does not know the holders of what an earlier one has"
        " granted: ?.",
    ),
    (
        "Hits",
        "Data blocks found in the block cache; Gets that the row cache or a memtable answered; Gets"
        " that found their key.",
    ),
    (
        "Filters",
        "A filter that says no saves the read of a data block. Rates are those of false positives"
        " among the keys that a table does not hold: as their bits promise, and as measured.",
    ),
    (
        "Written",
        "Bytes a second. Amplification is all that was written, to log and tables, for each byte of"
        " the user, since the store was opened.",
    ),
    (
        "Background",
        "Stalls: writers waited for a flush or a compaction. Slowdowns: writes that slept for up"
        " to a millisecond, for level 0 to thin out.",
    ),
    ("Keys", "q quits, p pauses and continues, d changes dark and light, ? shows this."),
)
"""Headings, and what is below each."""


def explanation(watch: Watch) -> Content:
    """Explain why nothing is shown of a store, and how to change that."""
    explained = figures.explanation(watch)
    if not explained.call:
        return Content.assemble((f"{explained.heading}\n\n", "bold $text-error"), explained.text)
    return Content.assemble(
        (f"{explained.heading}\n\n", "bold"),
        f"{explained.text}\n\n" if explained.text else "",
        "A process that opens the store like this is shown here, a second later:\n\n    ",
        (explained.call, "$text-accent"),
        "\n\nEach operation is timed then; without the option that costs nothing.",
    )
