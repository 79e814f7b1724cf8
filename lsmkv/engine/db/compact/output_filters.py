"""The filters of a table that is about to be written: the options for one output.

Flushes and compactions ask before they write; where every table gets the same filters, the answer
is the store's own options.  A worker process gets the answer with its job, and chooses nothing
itself.  Sizes in bytes are used in place of numbers of keys.
"""

from __future__ import annotations

from lsmkv.engine.db.compact.picking import Compaction
from lsmkv.engine.db.tree.version import Version, total_size
from lsmkv.engine.filter.bloom import BloomFilterPolicy
from lsmkv.engine.filter.bloom64 import Bloom64Policy
from lsmkv.engine.filter.levels import FEWEST_BITS
from lsmkv.engine.filter.policy import FilterPolicy
from lsmkv.engine.options import Options


def options_for_flush(options: Options, version: Version, size: int) -> Options:
    """The options for a table of level 0 of about ``size`` bytes, next to the tables of
    ``version``."""
    runs = [file.size for file in version.levels[0]]
    runs.append(size)
    runs += version.sizes[1:]
    return _with_policy(options, _policy(options, 0, runs, len(version.levels[0])))


def options_for_compaction(options: Options, compaction: Compaction) -> Options:
    """The options for the outputs of a compaction.  O(tables of level 0)."""
    version = compaction.version
    level = compaction.output_level
    if not options.filter_last_level and not any(version.sizes[level + 1 :]):
        return _with_policy(options, None)
    consumed = {file.number for file in compaction.inputs}
    runs = [file.size for file in version.levels[0] if file.number not in consumed]
    own = len(runs) + level - 1
    runs += version.sizes[1:]
    if not compaction.is_rewrite:
        moving = total_size(compaction.inputs)
        runs[own] += moving
        if compaction.level > 0:
            runs[own - 1] -= moving
    return _with_policy(options, _policy(options, level, runs, own))


def _policy(options: Options, level: int, runs: list[int], own: int) -> FilterPolicy | None:
    """The policy for a table of ``level``, which will be in ``runs[own]``; None for no filters.

    ``runs`` are the sizes of all that a Get asks one table of.
    """
    policy = options.filter_policy
    bits = options.filter_bits
    if bits is None or not isinstance(policy, (BloomFilterPolicy, Bloom64Policy)):
        return policy
    wanted = bits.bits_for(level, runs, own)
    return policy.with_bits(wanted) if wanted >= FEWEST_BITS else None


def _with_policy(options: Options, policy: FilterPolicy | None) -> Options:
    return options if policy is options.filter_policy else options._replace(filter_policy=policy)
