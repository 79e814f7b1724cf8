"""The order of keys in which a store is surveyed, where no MANIFEST may name it.

Surveys, plans and repairs call :func:`survey_in_order`, so that a store in another of lsmkv's
orders is not called damaged because its MANIFEST is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from lsmkv.engine.errors import ComparatorMismatchError
from lsmkv.engine.options import (
    OptionArguments,
    Options,
    in_stored_order,
    likely_comparators,
    make_options,
    options_with,
    own_comparator,
)
from lsmkv.files.repair.damaged_table import OUT_OF_ORDER
from lsmkv.files.repair.report import Survey


def survey_in_order(
    path: str, arguments: OptionArguments, look: Callable[[Options], Survey]
) -> tuple[Options, Survey]:
    """The result of ``look`` in the order that the MANIFEST names, and the options with that order.

    If no MANIFEST names it, and the caller gives no comparator, it is the one of lsmkv's in which
    the most entries of tables can be read.  Costs one survey; two if the MANIFEST names another
    order than the likely one, and up to three if there is no MANIFEST and a table is not intact.
    """
    settings = make_options(**arguments)
    guesses: list[str] = []
    if arguments.get("comparator") is None:
        guesses = likely_comparators(path)
        settings = _options_in(arguments, guesses.pop(0))
    try:
        found = look(settings)
    except ComparatorMismatchError as error:
        settings = in_stored_order(arguments, error)
        found = look(settings)
    if found.manifest is not None and found.manifest._state.comparator is not None:
        return settings, found
    for guess in guesses:
        if not any(table.problems for table in found.tables):
            break
        other = _options_in(arguments, guess)
        found_so = look(other)
        if _entries(found_so) > _entries(found):
            settings, found = other, found_so
    return settings, found


def _options_in(arguments: OptionArguments, name: str) -> Options:
    order = own_comparator(name)
    assert order is not None
    return options_with(arguments, order)


def _entries(found: Survey) -> int:
    return sum(table.entries for table in found.tables)


def blocks_out_of_order(found: Survey) -> int:
    """The blocks that can be read, but whose keys are not in the order of the survey."""
    return sum(hole.reason == OUT_OF_ORDER for table in found.tables for hole in table.holes)
