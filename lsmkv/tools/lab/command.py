"""``lsmkv filter-lab``: the command."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Annotated

import lsmkv
from lsmkv.tools.arguments import open_input, store_only
from lsmkv.tools.console import guarded, write_json
from lsmkv.tools.drawing import progress, stdout_console
from lsmkv.tools.filter_lab import (
    DEFAULT_SETTINGS,
    SETTINGS_WITH_OWN,
    parse_settings,
)
from lsmkv.tools.lab.experiment import choose_gets, experiment, open_store
from lsmkv.tools.lab.gets import given_gets
from lsmkv.tools.lab.own import load_policy
from lsmkv.tools.lab.report import print_report
from lsmkv.tools.load import Loaded, load_lines, read_records
from lsmkv.tools.options import argument, flag, option
from lsmkv.tools.text import printable


@guarded
def filter_lab(
    directory: Annotated[
        str | None, argument("DIR", "The store's directory.", callback=store_only)
    ] = None,
    keys: str | None = option(
        None,
        "FILE",
        "The keys to look up, a line each, as 'load' takes them; - is stdin. Without DIR,"
        " a store is made of them in a temporary directory, and a sample is looked up.",
    ),
    trace: str | None = option(None, "FILE", "Replay the Gets of a trace: DB(..., trace=FILE)."),
    settings: str = option(
        DEFAULT_SETTINGS, "LIST", "Filter settings to compare, with spaces between them."
    ),
    policy: str | None = option(
        None,
        "FILE[:NAME]",
        "A Python file with a custom filter policy, for settings such as own:10.",
    ),
    gets: int = option(10_000, "N", "Keys to look up.", min=1),
    seed: int = option(1, "N", "Seed of the random choices."),
    as_json: bool = flag("The figures alone, as JSON.", "--json"),
) -> None:
    """Replay Gets under other filter settings: blocks read, wasted reads, memory.

    The keys are those of a trace or a file, or a sample of the store and as many near misses:
    keys with a letter changed, which are absent. Each setting's filters are rebuilt from the
    tables' keys and asked as the store would ask them, so the counts are exact, without a block
    cache. Nothing is written, and no lock is taken.

    A setting is none, block:10 (a filter for each 2 KiB of a table, 10 bits a key), table:15 (one
    for each table), block64:10 and table64:10 (the same with a 64-bit hash), or fuse (a binary fuse
    filter for each table). The bits may be fractions, by level from level 0 on, block:10,10,8.5, or
    an average that is spread over the levels, block:auto:10. LevelDB only uses
    filters of the kind block.

    With --policy, own:10 is a filter for each 2 KiB by your own code, which is executed: the file's
    functions create_filter(keys, bits_per_key) and key_may_match(key, filter_data). FILE.py:NAME
    names a policy in the file, or a callable that makes one from the bits per key.

    JSON: the figures of each setting, the wasted reads of each table, and the verdict.
    """
    if directory is None and keys is None:
        raise ValueError("name a store, or a file of keys with --keys")
    if trace is not None and (directory is None or keys is not None):
        raise ValueError("--trace requires a store, and cannot be combined with --keys")
    own = None if policy is None else load_policy(policy)
    if own is not None and settings == DEFAULT_SETTINGS:
        settings = SETTINGS_WITH_OWN
    wanted = parse_settings(settings, own)
    if own is not None and all(one.kind != "own" for one in wanted):
        raise ValueError("--policy requires a setting such as own:10")
    with _store(directory, keys) as db:
        if directory is not None and keys is not None:
            with open_input(keys) as file:
                name = "stdin" if keys == "-" else printable(keys)
                listed = (key for key, _ in read_records(file, "plain", Loaded()))
                chosen = given_gets(listed, gets, seed, name)
        else:
            chosen = choose_gets(db, trace, gets, seed, progress)
        outcome = experiment(db, directory or keys or "", chosen, wanted, seed, progress)
    if as_json:
        write_json(outcome.to_dict(), indent=2)
        return
    print_report(stdout_console(), outcome)


@contextlib.contextmanager
def _store(directory: str | None, keys: str | None) -> Iterator[lsmkv.DB]:
    """The store to read, without a block cache; one made of the keys if there is no directory."""
    with contextlib.ExitStack() as stack:
        if directory is None:
            assert keys is not None
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="lsmkv-filter-lab-"))
            directory = os.path.join(home, "store")
            with (
                open_input(keys) as file,
                lsmkv.DB(directory, create_if_missing=True) as new,
                progress("Loading", "key") as bar,
            ):
                load_lines(new, file, "plain", Loaded(), bar.advance)
                new.flush()
        yield stack.enter_context(open_store(directory))
