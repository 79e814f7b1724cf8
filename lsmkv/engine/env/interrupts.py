"""Handles signals and lets other threads run in the middle of long compiled work.

Compiled code does neither until it calls interpreted code, and this module is interpreted.
"""

from __future__ import annotations


def allow_interrupts() -> None:
    """Run an interpreted function.  Before it, the interpreter handles signals, whose handlers may
    raise (Ctrl-C), and lets a waiting thread run.  Unbounded compiled loops call it about once in
    10 us to 1 ms of work; it takes 0.05 us."""
