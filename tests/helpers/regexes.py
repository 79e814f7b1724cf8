"""The regular expressions of a source tree, and whether a text can make one slow.

:func:`uses` finds them by the syntax tree.  :func:`trap` decides by structure: a backtracking
matcher takes longer than O(text) where two paths through the expression can read one text in a
loop.  That is its automaton's *ambiguity* (Weber and Seidl, 1991): exponential if a state can be
left and reached again in two ways by one word, polynomial if two states can each read a word and
stay, and one leads by it to the other.  A search tries each place of the text, so it is one more
state that reads everything and stays.

Conditions (``$``, ``(?!x)``) are taken to hold, except one at the beginning of a search, and
backreferences are refused.  So what is refused may still be fast.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple, TypeGuard

AT_THE_START = frozenset({"match", "fullmatch"})
_OTHERS = frozenset({"purge", "escape", "Pattern", "Match"})
_FOREIGN = ("regex", "fnmatch", "glob")
"""Other modules with expressions, which are not read here."""
_MENTIONED = re.compile(r"\b(?:re|regex|fnmatch|glob)\b")
_LONGEST = 64
"""A repeat of at most so many is taken apart; a longer one counts as unbounded."""
_STRANGE = "\u0131\u017f\u0660\u2003\u212a\u4e00\ud800\U0001f600"
_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE | re.ASCII


class Use(NamedTuple):
    """One call that makes or uses a regular expression."""

    where: str
    """The module and the line."""
    pattern: str | bytes | None
    """None if it is put together at run time."""
    flags: int
    searches: bool
    """Whether it may be tried at each place of a text."""


class Trap(NamedTuple):
    """A text that takes more than O(text): ``before``, and ``again`` as often as one likes."""

    before: str
    again: str


def uses(root: Path) -> list[Use]:
    """All of them in the modules below a directory.

    ``ValueError`` for a way to ``re`` that is not ``import re`` and ``re.function(...)``.
    """
    found = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if _MENTIONED.search(text):
            found += _uses_of(path.relative_to(root).as_posix(), ast.parse(text))
    return found


def _methods(tree: ast.Module) -> dict[str, set[str]]:
    """The functions that a module calls on each of its private names.

    A match from a position counts as a search, since it may be one of many in a loop.
    """
    found: dict[str, set[str]] = {}
    called: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called.add(node.func.value)
            whole = len(node.args) == 1 and not node.keywords
            found.setdefault(_name(node.func.value), set()).add(
                node.func.attr if whole else "search"
            )
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute)) or node in called:
            continue
        if isinstance(node.ctx, ast.Load):
            found.setdefault(_name(node), set()).add("search")  # called elsewhere
    return {name: functions for name, functions in found.items() if name.startswith("_")}


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _uses_of(module: str, tree: ast.Module) -> Iterator[Use]:
    methods = _methods(tree)
    named: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            named[node.value] = _name(node.targets[0])
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            named[node.value] = _name(node.target)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                if (top == "re" and alias.asname) or top in _FOREIGN:
                    raise ValueError(f"{module}:{node.lineno}: {ast.unparse(node)}")
        elif (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and (node.module or "").partition(".")[0] in ("re", *_FOREIGN)
        ):
            raise ValueError(f"{module}:{node.lineno}: {ast.unparse(node)}")
    called: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_re(node.func):
            called.add(node.func)
            function = node.func.attr
            if function in _OTHERS:
                continue
            used = (
                methods.get(named.get(node, ""), {"search"})
                if function == "compile"
                else {function}
            )
            yield Use(
                f"{module}:{node.lineno}",
                _constant(node.args[0]),
                _flags(node, function),
                not used <= AT_THE_START,
            )
    for node in ast.walk(tree):
        if not _is_re(node) or node in called:
            continue
        if not (node.attr.isupper() or node.attr in _OTHERS):
            raise ValueError(f"{module}:{node.lineno}: {ast.unparse(node)} is not called")


def _is_re(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "re"
    )


def _constant(node: ast.expr) -> str | bytes | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, (str, bytes)) else None


def _flags(call: ast.Call, function: str) -> int:
    at = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function, 2)
    given = [word.value for word in call.keywords if word.arg == "flags"] + call.args[at : at + 1]
    flags = 0
    for node in given:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute):
                flags |= getattr(re, part.attr)
    return flags


_SETS: dict[tuple[Any, int, str], int] = {}


class _Part(NamedTuple):
    """A piece of an expression: in how many ways it is empty, begins and ends (at most two)."""

    empty: int
    first: Counter[int]
    last: Counter[int]


class _Automaton:
    """Glushkov's automaton: a state for each character of the expression, which reads it."""

    def __init__(self, pattern: str | bytes, flags: int, searches: bool) -> None:
        parsed = _parser.parse(pattern, flags)
        self._state = parsed.state
        codes = [chr(code) for code in range(256)]
        self._alphabet: list[Any] = (
            [bytes([code]) for code in range(256)]
            if isinstance(pattern, bytes)
            else [*codes, *_STRANGE]
        )
        self._everything = (1 << len(self._alphabet)) - 1
        self.reads: list[int] = [0]
        """What each state reads, a bit for each character; state 0 is the beginning."""
        self.edges: dict[int, Counter[int]] = {0: Counter()}
        whole = self._sequence(parsed)
        self._join(Counter({0: 1}), whole.first)
        self.always_found: frozenset[int] = frozenset()
        """States in which a search has found something, so that it tries no further place."""
        self.search: int | None = None
        if searches and not self._is_anchored(parsed):
            self.search = self._new(self._everything)
            begun = Counter({self.search: 1})
            self._join(Counter({0: 1}) + begun, begun)
            before = self._before(parsed)
            if before is not None:
                entry = Counter({self._new(before): 1})
                self._join(Counter({0: 1}) + begun, entry)
                begun = entry
            self._join(begun, whole.first)
            if not any(code in _CONDITIONS for code, _ in _all_items(parsed[before is not None :])):
                self.always_found = frozenset(whole.last)

    def character(self, reads: int) -> str:
        """One of those in a set, a printable one where there is one."""
        found = [self._alphabet[at] for at in range(len(self._alphabet)) if reads >> at & 1]
        texts = [one if isinstance(one, str) else one.decode("latin-1") for one in found]
        return min(texts, key=lambda one: (not one.isalnum(), not one.isprintable(), one))

    @staticmethod
    def _is_anchored(parsed: Any) -> bool:
        if not len(parsed) or parsed[0][0] is not _constants.AT:
            return False
        beginnings = [_constants.AT_BEGINNING_STRING]
        if not parsed.state.flags & re.MULTILINE:
            beginnings.append(_constants.AT_BEGINNING)
        return parsed[0][1] in beginnings

    def _before(self, parsed: Any) -> int | None:
        """What may be read just before the expression, where it begins with a condition on that."""
        code, given = parsed[0] if len(parsed) else (None, None)
        if code is _constants.AT and given is _constants.AT_BEGINNING:
            return self._set(_constants.LITERAL, ord("\n"))  # in MULTILINE
        if code in (_constants.ASSERT, _constants.ASSERT_NOT) and given[0] < 0:
            ((one, about),) = given[1]
            reads = self._set(one, about)
            return reads if code is _constants.ASSERT else self._everything & ~reads
        return None

    def _new(self, reads: int) -> int:
        self.reads.append(reads)
        self.edges[len(self.reads) - 1] = Counter()
        return len(self.reads) - 1

    def _join(self, last: Counter[int], first: Counter[int]) -> None:
        for before, ways in last.items():
            for after, more in first.items():
                self.edges[before][after] = min(2, self.edges[before][after] + ways * more)

    def _sequence(self, items: Any) -> _Part:
        whole = _Part(1, Counter(), Counter())
        for item in items:
            whole = self._after(whole, self._item(*item))
        return whole

    def _after(self, one: _Part, two: _Part) -> _Part:
        self._join(one.last, two.first)
        return _Part(
            min(2, one.empty * two.empty),
            _sum(one.first, two.first, one.empty),
            _sum(two.last, one.last, two.empty),
        )

    def _item(self, code: Any, given: Any) -> _Part:
        if code in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN):
            state = self._new(self._set(code, given))
            return _Part(0, Counter({state: 1}), Counter({state: 1}))
        if code is _constants.AT:
            return _Part(1, Counter(), Counter())
        if code in (_constants.ASSERT, _constants.ASSERT_NOT):
            if any(op[0] in _REPEATS and op[1][1] > _LONGEST for op in _all_items(given[1])):
                raise ValueError("an assertion of unbounded length")
            return _Part(1, Counter(), Counter())
        if code is _constants.SUBPATTERN:
            if given[1] or given[2]:
                raise ValueError("flags for a part of an expression")
            return self._sequence(given[3])
        if code is _constants.BRANCH:
            whole = _Part(0, Counter(), Counter())
            for branch in given[1]:
                part = self._sequence(branch)
                whole = _Part(
                    min(2, whole.empty + part.empty),
                    _sum(whole.first, part.first, 1),
                    _sum(whole.last, part.last, 1),
                )
            return whole
        if code in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            return self._repeat(*given)
        raise ValueError(f"{code} is not taken apart")

    def _repeat(self, least: int, most: int, items: Any) -> _Part:
        whole = _Part(1, Counter(), Counter())
        for _ in range(min(least, _LONGEST)):
            whole = self._after(whole, self._sequence(items))
        rest = _Part(1, Counter(), Counter())
        if most > _LONGEST:
            part = self._sequence(items)
            self._join(part.last, part.first)
            rest = _Part(1, part.first, part.last)
        else:
            for _ in range(most - least):
                part = self._after(self._sequence(items), rest)
                rest = _Part(1, part.first, part.last)
        return self._after(whole, rest)

    def _set(self, code: Any, given: Any) -> int:
        about = (self._alphabet[0], self._state.flags & _FLAGS, repr((code, given)))
        if about not in _SETS:
            _SETS[about] = self._made_set(code, given)
        return _SETS[about]

    def _made_set(self, code: Any, given: Any) -> int:
        one = _parser.SubPattern(self._state, [(code, given)])
        compiled = _compiler.compile(one, self._state.flags & _FLAGS)
        return sum(
            1 << at
            for at, text in enumerate(self._alphabet)
            if compiled.fullmatch(text) is not None
        )


_CONDITIONS = (
    _constants.AT, _constants.ASSERT, _constants.ASSERT_NOT, _constants.GROUPREF
)  # fmt: skip
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def _all_items(items: Any) -> Iterator[Any]:
    for item in items:
        yield item
        if item[0] in _REPEATS:
            yield from _all_items(item[1][2])
        elif item[0] is _constants.SUBPATTERN:
            yield from _all_items(item[1][3])
        elif item[0] is _constants.BRANCH:
            for branch in item[1][1]:
                yield from _all_items(branch)


def _sum(one: Counter[int], two: Counter[int], ways: int) -> Counter[int]:
    if not ways:
        return one
    return Counter({at: min(2, one[at] + ways * two[at]) for at in one.keys() | two.keys()})


def trap(pattern: str | bytes, flags: int, searches: bool) -> Trap | None:
    """A text that makes the expression slow; None if none does.

    ``ValueError`` for an expression with parts that are not taken apart here.
    """
    made = _Automaton(pattern, flags, searches)
    return next(_traps(made), None)


def pumps(pattern: str | bytes, flags: int, searches: bool) -> list[Trap]:
    """Texts that are read as long as they go on: one for each loop of the expression."""
    made = _Automaton(pattern, flags, searches)
    found = []
    for state in _reachable(made, 0):
        again = _word(made, (state,), (state,))
        if again is not None:
            found.append(Trap(_word(made, (0,), (state,)) or "", again))
    return found


def _reachable(made: _Automaton, start: int) -> set[int]:
    found = {start}
    todo = [start]
    while todo:
        for after in made.edges[todo.pop()]:
            if after not in found and made.reads[after]:
                found.add(after)
                todo.append(after)
    return found


def _traps(made: _Automaton) -> Iterator[Trap]:
    reach = {state: _reachable(made, state) for state in made.edges}
    loops = {
        state: {other for other in reach[state] if state in reach[other]}
        for state in reach[0]
        if any(state in reach[after] for after in made.edges[state])
    }
    for one, loop in loops.items():
        before = _word(made, (0,), (one,)) or ""
        twice = [after for after in loop if made.edges[one][after] > 1]
        for after in twice:
            back = "" if after == one else _word(made, (after,), (one,)) or ""
            yield Trap(before, made.character(made.reads[after]) + back)
        for left in loop:  # one word, two ways: by `left` and by another state
            for right in loop - {left}:
                there = _word(made, (one, one), (left, right), (loop, loop))
                back_ = there and _word(made, (left, right), (one, one), (loop, loop))
                if there and back_:
                    yield Trap(before, there + back_)
        for two, other in loops.items():
            if one == made.search and two in made.always_found:
                continue
            if two != one and two in reach[one]:
                between = {state for state in reach[one] if two in reach[state]}
                rooms = (loop, between, other)
                word = _word(made, (one, one, two), (one, two, two), rooms)
                if word is not None:
                    yield Trap(before, word)


def _word(
    made: _Automaton,
    start: tuple[int, ...],
    end: tuple[int, ...],
    within: tuple[set[int], ...] | None = None,
) -> str | None:
    """A shortest word, of one character at least, that leads each state of ``start`` to its own of
    ``end``."""
    before: dict[tuple[int, ...], tuple[tuple[int, ...], int]] = {}
    todo = deque([start])
    while todo:
        here = todo.popleft()
        for there, reads in _steps(made, here, within):
            if there in before:
                continue
            before[there] = (here, reads)
            if there == end:
                return _spelled(made, before, start, end)
            todo.append(there)
    return None


def _steps(
    made: _Automaton, here: tuple[int, ...], within: tuple[set[int], ...] | None
) -> list[tuple[tuple[int, ...], int]]:
    found: list[tuple[tuple[int, ...], int]] = [((), -1)]
    for at, state in enumerate(here):
        found = [
            ((*so_far, after), reads & made.reads[after])
            for so_far, reads in found
            for after in made.edges[state]
            if reads & made.reads[after] and (within is None or after in within[at])
        ]
    return found


def _spelled(
    made: _Automaton,
    before: dict[tuple[int, ...], tuple[tuple[int, ...], int]],
    start: tuple[int, ...],
    end: tuple[int, ...],
) -> str:
    letters = []
    here = end
    while True:
        here, reads = before[here]
        letters.append(made.character(reads))
        if here == start:
            return "".join(reversed(letters))
