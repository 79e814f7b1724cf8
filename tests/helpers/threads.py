"""Threads whose errors the test sees."""

from __future__ import annotations

import threading
from collections.abc import Callable


def background_of(target: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Run it in a thread; what it raised is in the list."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            target()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)  # a hang must not hold up the exit
    thread.start()
    return thread, errors


def run_threads(*targets: Callable[[], object]) -> list[BaseException]:
    """Run them all at once, to their end; what they raised."""
    running = [background_of(target) for target in targets]
    for thread, _ in running:
        thread.join()
    return [error for _, errors in running for error in errors]
