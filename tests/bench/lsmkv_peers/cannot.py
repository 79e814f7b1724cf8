"""What engines of other kinds than LevelDB's cannot do, and why."""

from __future__ import annotations

NO_LEVELS = {"compact": "it has no levels"}
FOREIGN_FILES = dict.fromkeys(
    ("footprint", "absent"), "its files and their levels are not LevelDB's"
)
