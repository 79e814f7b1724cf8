"""Detection of the codec of a store's tables, so that new tables get the same.

Minecraft's Bedrock edition keeps its worlds in a fork of LevelDB whose readers know Mojang's codecs
and no other: the game cannot read a world with one table under Snappy.  So a store with tables
under one of Mojang's codecs is written under that codec, unless ``compression`` is given.  Opening
and repair call this, in the thread that opens, before they write a table.
"""

from __future__ import annotations

import errno

from lsmkv.engine.env.base import Directory
from lsmkv.engine.format.filenames import old_table_name, table_name
from lsmkv.engine.options import Options
from lsmkv.engine.table.inspection import codec_in
from lsmkv.engine.util.compression import MOJANG, NO_COMPRESSION

_NO_TABLE = (errno.ENOENT, errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
_NEWEST = 2
_OLDEST = 2
"""Number of the oldest tables that are examined.  If another program has added tables to a world,
the game's own are the oldest ones.  Two, since a small table may have no block that compression
makes smaller."""


def in_stored_codec(options: Options, directory: Directory, tables: frozenset[int]) -> Options:
    """The options with which to write new tables next to those with these numbers.

    The newest table under one of Mojang's codecs decides, of the two newest and the two oldest.
    A table that is missing, damaged or cannot be read shows no codec.  Costs a few reads of some
    bytes for each table looked at, and nothing where there are no tables or ``compression`` was
    given.
    """
    if not options.auto_compression:
        return options
    numbers = sorted(tables, reverse=True)
    for number in numbers[:_NEWEST] + numbers[_NEWEST:][-_OLDEST:]:
        found = with_codec_of(options, {number: _codec_of(directory, number)})
        if found is not options:
            return found
    return options


def with_codec_of(options: Options, codecs: dict[int, int]) -> Options:
    """The options with the codec of the newest table that has one of Mojang's.

    ``codecs`` has the codec of each table by its number.  ``options`` themselves if there is no
    such table, or if ``compression`` was given.
    """
    if options.auto_compression:
        for number in sorted(codecs, reverse=True):
            if codecs[number] in MOJANG:
                return options._replace(compression=codecs[number])
    return options


def _codec_of(directory: Directory, number: int) -> int:
    for name in (table_name(number), old_table_name(number)):
        try:
            with directory.open(name) as file:
                return codec_in(file)
        except OSError as error:
            # What is not a regular file is reported to those who read the table.
            if error.errno not in _NO_TABLE:
                raise
    return NO_COMPRESSION
