"""lsmkv.engine.db.compact.picking: which tables are picked, as states in text."""

from __future__ import annotations

import trees
from states import Case, Drawing, states
from trees import level_of, numbers, words_text

from lsmkv.engine.counters import NUM_LEVELS
from lsmkv.engine.db.compact.picking import Compaction, compaction_of_range, pick_compaction
from lsmkv.engine.db.tree.version import Version
from lsmkv.engine.options import Options


def answer(drawing: Drawing, words: list[str]) -> str:
    """Of the tables that are drawn by level."""
    of = trees.version_of(drawing)
    of.check()
    seek_compaction = dict(drawing).get("seek_compaction") != "no"
    options = Options(max_file_size=2 * trees.MIB, seek_compaction=seek_compaction)
    pointers: list[bytes | None] = [None] * NUM_LEVELS
    match words:
        case ["pick"]:
            return picked_text(pick_compaction(of, pointers, options), options)
        case ["seek", number, *edit]:
            # This table has used up its seeks.
            (of.file_to_compact,) = (
                (level, file)
                for level, files in enumerate(of.levels)
                for file in files
                if file.number == int(number)
            )
            picked = pick_compaction(of, pointers, options)
            if edit[:1] == ["edit"]:
                assert picked is not None
                return edit_text(of, picked, " ".join(edit[1:]))
            return picked_text(picked, options)
        case ["turns", count, *after]:
            if after:
                _, pointer, *others = after
                pointers[of.compaction_level] = trees.internal_key_of(pointer)
                for level, other in zip(others[::2], others[1::2], strict=True):
                    pointers[level_of(level)] = trees.internal_key_of(other)
            taken: list[int] = []
            for _ in range(int(count)):
                picked = pick_compaction(of, pointers, options)
                assert picked is not None
                taken += numbers(picked.inputs)
                ((at, largest),) = picked.edit([]).compact_pointers
                pointers[at] = largest
            return words_text(taken)
        case ["range", level, *between]:
            found = compaction_of_range(of, level_of(level), *trees.range_of(between), options)
            if found is None:
                return "none"
            then = "" if found[1] is None else f", then from {trees.key_text(found[1])}"
            return picked_text(found[0], options) + then
    raise NotImplementedError


def picked_text(picked: Compaction | None, options: Options) -> str:
    if picked is None:
        return "none"
    how = "move" if picked.is_trivial_move(options) else "merge"
    text = f"{how} L{picked.level} {words_text(numbers(picked.inputs))}"
    if picked.next_inputs:
        text += f", L{picked.output_level} {words_text(numbers(picked.next_inputs))}"
    text += f" ({trees.size_text(picked.input_size)})"
    if picked.grandparents:
        text += f" above L{picked.level + 2} {words_text(numbers(picked.grandparents))}"
    return text + (" by seeks" if picked.by_seeks else "")


def edit_text(of: Version, picked: Compaction, outputs: str) -> str:
    """What the compaction's edit does by level, with these outputs; a move's are its inputs."""
    edit = picked.edit(trees.files_of(outputs) or picked.inputs)
    of.apply(edit).check()
    changes: dict[int, list[str]] = {}
    for level, number in sorted(edit.deleted_files):
        changes.setdefault(level, []).append(f"-{number}")
    for level, file in edit.new_files:
        changes.setdefault(level, []).append(f"+{file.number}")
    lines = [f"L{level}: {words_text(changes[level])}" for level in sorted(changes)]
    pointers = [f"L{level} {trees.internal_key_text(key)}" for level, key in edit.compact_pointers]
    return "\n".join([*lines, f"pointer: {words_text(pointers)}"])


@states("picking.txt")
def test_states(case: Case) -> None:
    case.check(answer, draws="L[0-6]|order|seek_compaction")
