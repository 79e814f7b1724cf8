"""Tells the databases of other engines from damaged ones.

RocksDB, Pebble, Riak's eleveldb and goleveldb come from LevelDB, have its files, and write some of
them in ways that LevelDB does not know.  Opening, surveys and commands call this once they have met
such a thing, so that nobody is told to repair a sound database.
"""

from __future__ import annotations

from lsmkv.errors import ForeignFormatError


def engine_of(names: list[str]) -> str | None:
    """The engine that has files of these names in its directory, if it is not LevelDB's format.

    >>> engine_of(["CURRENT", "IDENTITY", "MANIFEST-000004", "OPTIONS-000007"])
    'RocksDB'
    >>> engine_of(["CURRENT", "MANIFEST-000004", "000005.ldb"]) is None
    True
    """
    if any(name.startswith("marker.") for name in names):
        return "Pebble"
    if "IDENTITY" in names:
        return "RocksDB"
    if any(name.startswith("OPTIONS-") for name in names):
        return "RocksDB or Pebble"
    if is_riak(names):
        return "Riak (eleveldb)"
    return None


def is_riak(names: list[str]) -> bool:
    """Whether tables are in a directory for each level, as Riak's eleveldb keeps them."""
    return "sst_0" in names and "sst_6" in names


def refuse_foreign(path: str, names: list[str]) -> None:
    """Raise :class:`ForeignFormatError` if the files in directory ``path`` are another engine's."""
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
        f"{path} has tables on level {level}: it is goleveldb's, and LevelDB has levels 0 to 6."
        " read_only=True opens it, and lsmkv export copies it"
    )
