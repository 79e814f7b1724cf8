"""What an ingest asks of background work: to commit its tables."""

from __future__ import annotations

from lsmkv.format.version_edit import FileMetaData


class Publication:
    """Tables that an ingest has made, to become visible all at once; and what came of it.

    ``withdrawn``, it never was begun and never will be.  ``committed``, the tables are visible.
    Neither, once ``begun``: the commit is under way, or it failed, and then nobody knows what the
    MANIFEST holds, so that the tables must stay where they are.
    """

    def __init__(self, files: list[FileMetaData], sequence: int) -> None:
        self.files = files
        self.sequence = sequence
        """Of every entry in them."""
        self.log_number = 0
        """Of the empty log in which writes go on."""
        self.begun = False
        self.done = False
        self.committed = False

    @property
    def withdrawn(self) -> bool:
        """Whether nothing was done and nothing will be: the files are the maker's again."""
        return self.done and not self.begun
