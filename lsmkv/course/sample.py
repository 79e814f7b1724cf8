"""The sample store of a student's folder: names to look up, and to try filters on."""

from __future__ import annotations

import os

import lsmkv
from lsmkv.tools.sample_keys import unicode_names

NAME = "sample"
"""The store's name in the folder."""
NAMES = 3_000
_TABLES = 4


def make_sample(folder: str) -> str:
    """Make the store in a folder, with names of characters in a few tables; returns its path.

    Each table has every fourth name, so that a Get of an absent name has several to ask.
    """
    path = os.path.join(folder, NAME)
    records = unicode_names().records
    some = records[:: len(records) // NAMES][:NAMES]
    with lsmkv.DB(
        path,
        create_if_missing=True,
        error_if_exists=True,
        bloom_filter_bits=10,
        compression=None,
        block_size=1024,
    ) as db:
        for number in range(_TABLES):
            with db.write_batch() as batch:
                for key, value in some[number::_TABLES]:
                    batch.put(key, value)
            db.flush()
    return path
