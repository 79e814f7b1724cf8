"""Mistakes in repairs, dumps and the inspector: see :mod:`mistakes`."""

from __future__ import annotations

from mistake import Mistake

MISTAKES: tuple[Mistake, ...] = (
    # Repairs: which store is planned
    Mistake(
        "the plan that keeps fewer pairs is taken",
        "repair",
        "Planner.best",
        "if pairs > most:",
        "if pairs < most:",
        "A repair sets aside more than it has to.",
    ),
    Mistake(
        "the last write before those that are lost is set aside",
        "repair",
        "RepairPlan._keeps",
        "self._first <= batch.sequence",
        "self._first < batch.sequence",
        "A repair loses a batch that nothing has replaced.",
    ),
    Mistake(
        "a table has every sequence from 0 on",
        "repair",
        "TableSurvey._count",
        "min(self.first_sequence, lowest) if self.entries else lowest",
        "min(self.first_sequence, lowest)",
        "Lost writes count as if a table had them, and no plan names them.",
    ),
    Mistake(
        "a MANIFEST that is given up is still relied on",
        "repair",
        "Survey._do_not_rely",
        "self.manifest.whole = False",
        "pass",
        "--merge-all leaves out tables that the MANIFEST does not name.",
    ),
    Mistake(
        "logs whose writes are in tables stay left out of --merge-all",
        "repair",
        "Survey._use_all",
        "files = [*self.tables, *self.logs]",
        "files: list[FileSurvey] = [*self.tables]",
        "A log is not used although every log was asked for.",
    ),
    # Repairs: the order of files, and which are the store's
    Mistake(
        "tables are in the order of their numbers on deeper levels",
        "repair",
        "Ordering.first_of_table",
        "if origin.level == 0:",
        "if origin.level > 0:",
        "Entries that are current count as older than what is lost.",
    ),
    Mistake(
        "a table that is another store's proves the order",
        "repair",
        "Ordering._ends",
        "and is_as_stated(table, origin.file)",
        "",
        "The sequences of another store bound what is missing.",
    ),
    Mistake(
        "a table that was cut is not the one that the MANIFEST states",
        "repair",
        "can_be_stated",
        "table.reads_last and table.size >= stated.size and",
        "table.reads_last and",
        "What is left of a table that was cut is not used.",
    ),
    Mistake(
        "a flipped bit of a block is looked for at another place",
        "repair",
        "_mended_block",
        "flips.append(8 * handle.offset + flip)",
        "flips.append(handle.offset + flip)",
        "A block with a flipped bit is lost, although its checksum shows the bit.",
    ),
    # Repairs: what is written
    Mistake(
        "writes of a log that are set aside are dropped",
        "repair",
        "RepairJob._kept_batches",
        "stale.add(found.sequence, found.operations, -1)",
        "pass",
        "What may be out of date is gone, and not in lost/.",
    ),
    Mistake(
        "a repair that fails leaves its new files",
        "repair",
        "RepairJob.run",
        "_remove_all(self._target, self._made)",
        "pass",
        "A log and a MANIFEST of no store lie among the files of the old one.",
    ),
    Mistake(
        "a file in lost/ stands for another of the same name",
        "repair",
        "RepairJob._keep_old_files",
        "elif not _same(self._source, lost, name):",
        "elif False:",
        "A second repair removes a file that it has not kept.",
    ),
    # Dumps
    Mistake(
        "operations have the offset of no batch",
        "tools",
        "JsonForm._fields",
        "self._batch = record.offset",
        "pass",
        "The JSON of a dump does not say in which batch a write is.",
    ),
    Mistake(
        "a record without the header of a batch is shown as one",
        "tools",
        "_read_batch",
        "_ = record.batch.count",
        "_ = record.batch",
        "The dump of a damaged log ends at its first short record.",
    ),
    Mistake(
        "the metaindex is shown without its restart points",
        "tools",
        "restarts_of",
        'not in ("data", "index", "metaindex")',
        'not in ("data", "index")',
        "A dump differs from what the file holds.",
    ),
    # The inspector
    Mistake(
        "pieces of a filter begin at another byte",
        "tools",
        "near",
        "slot // NEAR * NEAR for slot in slots",
        "slot // NEAR for slot in slots",
        "The page draws other slots than a lookup reads.",
    ),
    Mistake(
        "the oldest MANIFEST stands for a CURRENT that cannot be read",
        "tools",
        "Source.manifest_name",
        "return found[-1][1]",
        "return found[0][1]",
        "The page shows the history of an older MANIFEST.",
    ),
)
