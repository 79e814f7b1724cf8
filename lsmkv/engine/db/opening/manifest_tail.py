"""Reads on in the MANIFEST that another process is writing: :class:`ManifestTail`."""

from __future__ import annotations

from lsmkv.engine.db.opening.damage_policy import ReadAgain
from lsmkv.engine.db.tree.manifest import Manifest
from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import read_current
from lsmkv.engine.format.log_tail import LogTail
from lsmkv.engine.format.version_edit import VersionEdit


class ManifestTail:
    """The state of a MANIFEST, to which the edits are added that its writer has appended since.

    One thread at a time calls it.
    """

    def __init__(self, directory: Directory, name: str, state: Manifest) -> None:
        """``state`` is what the MANIFEST ``name`` held when it was read.  Raises ``OSError``."""
        self._directory = directory
        self._name = name
        self.state = state
        """The sum of all edits that were read."""
        self._tail = LogTail(directory.open(name), state.end, state.last)

    def is_in_force(self) -> bool:
        """Return True if CURRENT names this MANIFEST."""
        return read_current(self._directory) == self._name

    def was_replaced(self) -> bool:
        """Return True if another file has its name: a store never reuses a number."""
        return self._directory.exists(self._name) and not self._directory.leads_to(
            self._name, self._tail.file
        )

    def unread(self) -> bool:
        """Return True if there may be new edits; two reads of a few bytes."""
        return self._tail.unread()

    def read(self) -> bool:
        """Add the new edits to the state; returns whether there are any.

        Raises :class:`ReadAgain`, and :class:`CorruptionError` for a record that is not an
        edit; in that case the state is unusable.
        """
        records = self._tail.read()
        if self._tail.unclear:
            raise ReadAgain
        for record in records:
            self.state.apply(VersionEdit.decode(record.payload))
        return bool(records)
