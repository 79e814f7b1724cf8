"""``lsmkv repair`` of a shard set: what each damaged shard keeps, and the new set."""

from __future__ import annotations

import lsmkv.shards.building
from lsmkv.shards.building import SetRepair, ShardRepair
from lsmkv.tools.console import say, write_folded, write_json, write_line
from lsmkv.tools.drawing import progress
from lsmkv.tools.shard_sets import store_options
from lsmkv.tools.text import as_argument, count, printable


def repair_shards(url: str, into: str | None, as_json: bool) -> None:
    """Repair a shard set into a new one; without ``into``, print what would be kept."""
    with progress("Repairing", "byte") as bar:
        found = lsmkv.bulk.repair(url, into, options=store_options(url), progress=bar.report)
    if as_json:
        write_json(_as_data(url, found, into), indent=2)
        return
    for shard in found.shards:
        _write_shard(shard)
    if not found.shards:
        write_line("no shard is damaged")
    if into is not None:
        write_line(f"repaired: {printable(into)}")
    elif found.shards:
        say("nothing was changed; a new set of the sound shards and of what is kept:")
        say(f"lsmkv repair {as_argument(url)} --into NEW")


def _write_shard(shard: ShardRepair) -> None:
    kept = f"{shard.kept:,} of {count(shard.stated, 'pair')} are kept"
    write_folded(f"shard {shard.number}: {kept}", 4)
    lines = ["none of its files is there"] if shard.plan is None else str(shard.plan).split("\n")
    for line in lines:
        write_folded(f"    {printable(line)}", 8)


def _as_data(url: str, found: SetRepair, into: str | None) -> dict[str, object]:
    return {
        "path": url,
        "version": found.source.number,
        "needed": bool(found.shards),
        "shards": [
            {
                "shard": shard.number,
                "pairs": shard.stated,
                "kept": shard.kept,
                "plan": None if shard.plan is None else shard.plan.to_dict(),
            }
            for shard in found.shards
        ],
        "repaired": into,
    }
