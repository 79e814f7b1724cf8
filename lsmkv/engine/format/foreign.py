"""Distinguishes databases of other engines from damaged ones.

RocksDB, Pebble, Riak's eleveldb and goleveldb derive from LevelDB and share its files, but write
some of them in ways that LevelDB does not know.  Opening, surveys and commands call this when they
find such a file, so that no message suggests repairing a sound database.
"""

from __future__ import annotations

from lsmkv.engine.errors import ForeignFormatError


def engine_of(names: list[str]) -> str | None:
    """The engine that has files of these names in its directory, if it is not LevelDB.

    A LevelDB store may contain a user's file of such a name, so only Pebble and Riak are certain.

    >>> engine_of(["CURRENT", "IDENTITY", "MANIFEST-000004", "OPTIONS-000007"])
    'RocksDB'
    >>> engine_of(["CURRENT", "MANIFEST-000004", "000005.ldb"]) is None
    True
    """
    engine = _certain_engine(names)
    if engine is None and "IDENTITY" in names:
        return "RocksDB"
    if engine is None and any(name.startswith("OPTIONS-") for name in names):
        return "RocksDB or Pebble"
    return engine


def _certain_engine(names: list[str]) -> str | None:
    if any(name.startswith(("marker.manifest.", "marker.format-version.")) for name in names):
        return "Pebble"
    if "sst_0" in names and "sst_6" in names:  # directories, in which it keeps its tables
        return "Riak (eleveldb)"
    return None


def refuse_certain(path: str, names: list[str]) -> None:
    """Raise :class:`ForeignFormatError` if the names alone prove another engine: Pebble, which has
    no CURRENT, or Riak's, whose tables are not in ``path`` itself."""
    engine = _certain_engine(names)
    if engine is not None:
        raise ForeignFormatError(f"{path} is a {engine} database")


def refuse_foreign(path: str, names: list[str]) -> None:
    """Raise :class:`ForeignFormatError` if the names of the files in ``path`` show that its
    unreadable MANIFEST is another engine's."""
    engine = engine_of(names)
    if engine is not None:
        raise ForeignFormatError(f"{path} is a {engine} database")


def unknown_field(path: str, names: list[str], tag: int) -> ForeignFormatError:
    """The error for an intact record of the MANIFEST ``path`` with a field that LevelDB lacks."""
    directory = path.rpartition("/")[0]
    engine = engine_of(names)
    if engine is not None:
        return ForeignFormatError(f"{directory} is a {engine} database")
    return ForeignFormatError(
        f"{path} has a field that LevelDB does not know (tag {tag}): another engine's database"
    )


def too_many_levels(path: str, level: int) -> ForeignFormatError:
    """The error for a store in ``path`` with tables on ``level``, beyond LevelDB's last one."""
    return ForeignFormatError(
        f"{path} has tables on level {level}: goleveldb made it, and LevelDB has levels 0 to 6."
        " read_only=True opens it, and lsmkv export copies it"
    )
