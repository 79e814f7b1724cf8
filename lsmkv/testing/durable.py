"""Files and directories in memory, with the parts of them that survive a power cut.

The model is pessimistic on purpose.  Only the file's own ``sync`` makes content durable, and only
its directory's ``sync`` makes a name durable.  (``create=True`` makes a directory durable
immediately, as the interface promises.)  The fate of the rest is drawn at random from the behaviors
of real file systems: :class:`NameModel` for names, :class:`Tails` for content.

It leaves out foreign content (a file system that shows another file's old blocks is broken), and
reordered renames of one file onto itself.
"""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, field

from lsmkv.engine.env.memory import MemoryFile, MemoryFolder, MemoryNode

_SECTOR = 512
"""Bytes that a disk writes completely or not at all."""
_PAGE = 4096
"""Bytes that the system writes together."""


class NameModel(enum.Enum):
    """The creations, renames and removals since a directory's last sync that survive a power cut.

    >>> [model.value for model in NameModel]
    ['ordered', 'any subset', 'synced']
    """

    ORDERED = "ordered"
    """The first few of each directory, in order: a journalling file system."""
    ANY_SUBSET = "any subset"
    """Each of them or not, independently."""
    SYNCED = "synced"
    """None."""


class Tails(enum.Enum):
    """The data written to a file since its last sync that survives a power cut.

    >>> [tails.value for tails in Tails]
    ['lost', 'torn', 'zeroed', 'holes', 'pages']
    """

    LOST = "lost"
    """Nothing."""
    TORN = "torn"
    """Some first part of it."""
    ZEROED = "zeroed"
    """Some first part, then zeros: the file's new length was written before its content."""
    HOLES = "holes"
    """Some first part, in which sectors of 512 bytes are zeros: later sectors were written first.
    """
    PAGES = "pages"
    """Each page of 4 KiB or not, in any order, as of any moment since the sync."""


@dataclass
class PowerCut:
    """One draw of what is left.  ``survivors`` are the nodes done so far: a file may have several
    names."""

    names: NameModel
    tails: Tails
    rng: random.Random
    survivors: dict[int, DurableFile | DurableFolder] = field(default_factory=dict)


class DurableFile(MemoryFile):
    """A file that remembers which part of it is durable."""

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(data)
        self._durable = len(data)  # bytes of ``data``, unless ``_cut_off`` replaces it
        self._cut_off: bytes | None = (
            None  # the durable content, once the file was truncated into it
        )
        self._doomed = False
        # The content of each page before each store into it since the sync; the first one is
        # durable.
        self._earlier: dict[int, list[bytes]] = {}

    def store(self, offset: int, data: bytes) -> None:
        for page in range(offset // _PAGE, -(-(offset + len(data)) // _PAGE)):
            old = bytes(self.data[page * _PAGE : (page + 1) * _PAGE])
            self._earlier.setdefault(page, []).append(old)
        super().store(offset, data)

    def truncate(self, length: int) -> None:
        if length < self._durable:
            if self._cut_off is None:
                self._cut_off = self._durable_content()
            self._durable = length
        super().truncate(length)

    def sync(self) -> None:
        if not self._doomed:
            self._durable = len(self.data)
            self._cut_off = None
            self._earlier = {}

    def doom(self) -> None:
        """Note a failed sync: bytes that are not durable now never will be."""
        self._doomed = True

    def survivor(self, cut: PowerCut) -> DurableFile:
        """The file after a power cut: its durable content, and the rest as ``cut.tails`` allows.

        A truncation that was not synced may have reached the disk or not.
        """
        rng = cut.rng
        if cut.tails is Tails.LOST or (self._cut_off is not None and rng.random() < 0.5):
            return DurableFile(self._durable_content())
        left = self.data[: rng.randint(self._durable, len(self.data))]
        length = len(left)
        self._draw_stored_pages(left, cut)
        if cut.tails is Tails.ZEROED:
            left += bytes(rng.randint(0, len(self.data) - length))
        elif cut.tails is Tails.HOLES:
            share = rng.choice((0.02, 0.1, 0.5))
            self._make_holes(left, _SECTOR, share, rng)
        elif cut.tails is Tails.PAGES:
            self._make_holes(left, _PAGE, 0.5, rng)
        return DurableFile(bytes(left))

    def copy(self) -> DurableFile:
        """A copy of everything that is there now, all of it durable."""
        return DurableFile(bytes(self.data))

    def _durable_content(self) -> bytes:
        if self._cut_off is not None:
            return self._cut_off
        content = self.data[: self._durable]
        for page, versions in self._earlier.items():
            _put_page(content, page, versions[0])
        return bytes(content)

    def _draw_stored_pages(self, left: bytearray, cut: PowerCut) -> None:
        """Give each page that was stored into one of the contents that it had."""
        rng = cut.rng
        reached = rng.randint(
            0, len(left) // _PAGE + 1
        )  # with the pages that were written in order
        for page, versions in sorted(self._earlier.items()):
            if cut.tails is Tails.PAGES:
                at = rng.randint(0, len(versions))
            elif cut.tails is Tails.HOLES:
                at = rng.choice((0, len(versions)))
            else:
                at = len(versions) if page < reached else 0
            if at < len(versions):
                _put_page(left, page, versions[at])

    def _make_holes(self, left: bytearray, unit: int, share: float, rng: random.Random) -> None:
        for start in range(self._durable // unit * unit, len(left), unit):
            if rng.random() < share:
                at = max(start, self._durable)
                end = min(start + unit, len(left))
                left[at:end] = bytes(end - at)


def _put_page(content: bytearray, page: int, data: bytes) -> None:
    """Store a page's bytes, without extending the content."""
    start = page * _PAGE
    end = min(start + len(data), len(content))
    if end > start:
        content[start:end] = data[: end - start]


class _Change:
    """One change of a directory: a node's new name (or none), and the removal of the old one."""

    def __init__(self, node: MemoryNode, old: str | None, new: str | None) -> None:
        self.node = node
        self.old = old
        self.new = new

    def apply(self, entries: dict[str, MemoryNode]) -> None:
        """Apply it to the names that survived so far, which may lack earlier changes.

        A node never gets two names.
        """
        if self.new is None:
            if self.old is not None and entries.get(self.old) is self.node:
                del entries[self.old]
            return
        for name in [name for name, node in entries.items() if node is self.node]:
            del entries[name]
        entries[self.new] = self.node


class DurableFolder(MemoryFolder):
    """A directory that knows which of its names are durable."""

    def __init__(self) -> None:
        super().__init__()
        self._durable: dict[str, MemoryNode] = {}
        self._pending: list[_Change] = []

    def new_file(self) -> DurableFile:
        return DurableFile()

    def new_folder(self) -> DurableFolder:
        return DurableFolder()

    def link(self, name: str, node: MemoryNode) -> None:
        super().link(name, node)
        self._pending.append(_Change(node, None, name))

    def unlink(self, name: str) -> None:
        self._pending.append(_Change(self.entries[name], name, None))
        super().unlink(name)

    def move(self, old: str, new: str) -> None:
        self._pending.append(_Change(self.entries[old], old, new))
        super().move(old, new)

    def sync(self) -> None:
        self._durable = dict(self.entries)
        self._pending.clear()

    def confirm(self, name: str) -> None:
        self._durable[name] = self.entries[name]
        self._pending = [change for change in self._pending if name not in (change.old, change.new)]

    def survivor(self, cut: PowerCut) -> DurableFolder:
        """The folder after a power cut, all of it durable."""
        entries = dict(self._durable)
        for change in self._kept_changes(cut):
            change.apply(entries)
        folder = DurableFolder()
        for name, node in entries.items():
            if id(node) not in cut.survivors:
                cut.survivors[id(node)] = _own(node).survivor(cut)
            folder.link(name, cut.survivors[id(node)])
        folder.sync()
        return folder

    def _kept_changes(self, cut: PowerCut) -> list[_Change]:
        if cut.names is NameModel.ORDERED:
            return self._pending[: cut.rng.randint(0, len(self._pending))]
        if cut.names is NameModel.ANY_SUBSET:
            return [change for change in self._pending if cut.rng.random() < 0.5]
        return []

    def copy(self) -> DurableFolder:
        """A copy of everything that is there now, all of it durable."""
        folder = DurableFolder()
        for name, node in self.entries.items():
            folder.link(name, _own(node).copy())
        folder.sync()
        return folder


def _own(node: MemoryNode) -> DurableFile | DurableFolder:
    assert isinstance(node, DurableFile | DurableFolder)
    return node
