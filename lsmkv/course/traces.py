"""Reads the report that ``faulthandler`` writes of where a student's process is.

The process may write anything to that file.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Collection, Iterator

from lsmkv.course.failure import Place

MOST_BYTES = 1 << 16
"""The most that is read of a report."""
_FRAME = re.compile(r'File "([^"]*)", line ([0-9]{1,9}) in (.*)')


def places_in(report: bytes, folders: Collection[str]) -> Iterator[Place]:
    """The lines of the report that are in files of these folders, the innermost one first."""
    for line in report.decode(errors="replace").splitlines():
        found = _FRAME.search(line)
        if found is None or os.path.dirname(found[1]) not in folders:
            continue
        if os.path.isfile(found[1]):  # a FIFO would wait for its writer
            text = linecache.getline(found[1], int(found[2])).strip()
            yield Place(found[1], int(found[2]), text, found[3], os.path.basename(found[1]))
