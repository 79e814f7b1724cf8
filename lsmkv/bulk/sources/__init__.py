"""Where the pairs of a bulk build come from: parts, each of which a task of its own reads.

:func:`~lsmkv.bulk.sources.parts.parts_of` makes parts of whatever a program has: files, tables,
frames, or pairs.  A part is sent to another process by the standard pickle, and gives the same
pairs as often as it is asked.
"""
