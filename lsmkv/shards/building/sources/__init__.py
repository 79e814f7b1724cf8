"""The input of a bulk build: parts, each of which its own task reads.

:func:`~lsmkv.shards.building.sources.parts.parts_of` makes parts from files, tables, frames, or
pairs.  A part is sent to another process with the standard pickle, and gives the same pairs every
time.
"""
