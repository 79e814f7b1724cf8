"""Writes the pages of docs/reference from lsmkv's docstrings: ``make reference``.

Each page has a template in docs/reference/templates: Markdown with lines such as ``::: lsmkv.DB``.
Such a line becomes that class, function or constant, with its signature and its docstring; a
module becomes its docstring and what its ``__all__`` names.  An indented list below names the
members to show, in their order; without them all public ones are shown.

The source is parsed by griffe and not imported, so the pages are the same everywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import code, to_markdown
from symbols import Symbols

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
WIDTH = 88
"""Characters of a signature that stays on one line."""
OPERATORS = {
    f"__{name}__"
    for name in (
        *("getitem", "setitem", "delitem", "contains", "len", "bool", "iter", "reversed", "next"),
        *("aiter", "anext", "add", "iadd", "sub"),
    )
}
"""Special methods that are shown if they have a docstring."""
NOTE = """<!-- Written by `make reference` from templates/{} and the docstrings: edit those. -->"""

_DIRECTIVE = re.compile(r"(?m)^::: (\S+)\n((?: +- \w+\n)*)")


@dataclass
class Shown:
    """What has a heading of its own."""

    thing: Any
    """A griffe.Object, or an alias of one."""
    anchor: str
    """The dotted path by which it is public."""
    page: str
    members: list[Shown] = field(default_factory=list)
    inherited: dict[str, list[Shown]] = field(default_factory=dict)
    """Members that another shown class defines, by the path of that class."""
    fields: list[Any] = field(default_factory=list)
    """Attributes without a docstring."""

    @property
    def name(self) -> str:
        return self.anchor.rpartition(".")[2]

    @property
    def path(self) -> str:
        """Where it is defined."""
        return str(self.thing.canonical_path)


class Reference:
    """All pages, with the symbols that they show."""

    def __init__(self, root: Path = ROOT) -> None:
        self.package: Any = griffe.load("lsmkv", search_paths=[root], allow_inspection=False)
        self.symbols = Symbols()
        self.symbols.read(root, "lsmkv")
        self.places: dict[str, list[Shown]] = {}
        """What is shown of each canonical path."""
        self.templates = {
            path.name: path.read_text(encoding="utf-8")
            for path in sorted((root / "docs" / "reference" / "templates").glob("*.md"))
        }
        self.things: dict[str, list[Shown]] = {}
        """What each page shows, without members."""
        self._expanded: dict[tuple[str, str], list[Shown]] = {}
        for page, text in self.templates.items():
            for found in _DIRECTIVE.finditer(text):
                shown = list(self._things(found[1], page, re.findall(r"\w+", found[2])))
                self.things.setdefault(page, []).extend(shown)
                self._expanded[page, found[0]] = shown
                for one in shown:
                    self._place(one)
        for page, text in self.templates.items():
            for found in _DIRECTIVE.finditer(text):
                for one in self._expanded[page, found[0]]:
                    if one.thing.is_class:
                        self._add_members(
                            one, re.findall(r"\w+", found[2]) * (one.anchor == found[1])
                        )

    def get(self, path: str) -> Any:
        """The object of a dotted path."""
        return self.package[path.partition(".")[2]]

    def _exported(self, module: Any, name: str) -> Any:
        """What a module means by a name: not the submodule that has the same one."""
        thing = module.members[name]
        if not thing.is_module or name not in module.imports:
            return thing
        owner, _, origin = module.imports[name].rpartition(".")
        return self._exported(self.get(owner), origin)

    def _behind(self, module: Any) -> Any:
        """The module from which one imports all that it exports; any other module itself."""
        origins = {module.imports.get(str(name), "").rpartition(".")[0] for name in module.exports}
        origin = origins.pop()
        return self.get(origin) if origin and not origins else module

    def _things(self, path: str, page: str, names: list[str]) -> Iterator[Shown]:
        """The thing that a template names, or what a module exports."""
        thing = self.get(path)
        if not thing.is_module:
            yield Shown(thing, path, page)
            return
        public = {str(name) for name in thing.exports}
        for name in names or [name for name in thing.members if name in public]:
            yield Shown(self._exported(thing, name), f"{path}.{name}", page)

    def _place(self, shown: Shown) -> None:
        self.places.setdefault(shown.path, []).append(shown)

    def _primary(self, path: str) -> Shown | None:
        """Of the places that show a path, that of the shortest public name."""
        places = self.places.get(path, [])
        return min(places, key=lambda shown: shown.anchor.count("."), default=None)

    def _add_members(self, shown: Shown, names: list[str]) -> None:
        """Give a class its public members: its own in the order of the source, then inherited."""
        thing = shown.thing
        found = {**thing.members, **thing.inherited_members, **thing.members}
        for name in names or found:
            member = found[name]
            documented = docstring_of(member) != ""
            if name.startswith("_") and not (name in OPERATORS and documented):
                continue
            one = Shown(member, f"{shown.anchor}.{name}", shown.page)
            base = one.path.rpartition(".")[0]
            same = self._primary(shown.path) is not shown
            if same or (base != shown.path and self._primary(base) and not names):
                base = shown.path if same else base
                if documented:
                    shown.inherited.setdefault(base, []).append(one)
            elif documented or not member.is_attribute:
                shown.members.append(one)
                self._place(one)
            else:
                shown.fields.append(member)

    def address(self, target: str, near: str, here: Shown) -> str | None:
        """A link to what a docstring of ``near`` calls ``target``, from where it is shown."""
        symbol = self.symbols.find(target, near)
        places = self.places.get(symbol.path, []) if symbol else []
        owner, _, member = target.rpartition(".")
        if owner and not any(shown.anchor.endswith(f".{target}") for shown in places):
            for shown in self.places.get(self._path_of(owner, near), []):  # it inherits the member
                places = [one for one in shown.members if one.name == member] or places
        return self.link(self._nearest(places, target, here), here.page)

    def _path_of(self, name: str, near: str) -> str:
        symbol = self.symbols.find(name, near)
        return symbol.path if symbol else ""

    @staticmethod
    def _nearest(places: list[Shown], target: str, here: Shown) -> Shown | None:
        """Of several places, one with the name that was written, then one of the same class."""

        def rank(shown: Shown) -> tuple[bool, int, bool, int]:
            one, other = shown.anchor.split("."), here.anchor.split(".")
            alike = next(
                (at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1),
                min(len(one), len(other)),
            )
            named = f".{shown.anchor}".endswith(f".{target}")
            return not named, -alike, shown.page != here.page, len(one)

        return min(places, key=rank, default=None)

    @staticmethod
    def link(shown: Shown | None, page: str) -> str | None:
        """The address of what is shown, from a page."""
        if shown is None:
            return None
        return f"{'' if shown.page == page else shown.page}#{shown.anchor}"

    # Pages

    def pages(self) -> Iterator[tuple[str, str]]:
        """The name and the text of each page."""
        for page, template in self.templates.items():
            title, _, rest = template.partition("\n")
            self._listed = len(self.things[page]) < 3
            text = _DIRECTIVE.sub(partial(self._directive, page), rest)
            text = f"{title}\n\n{NOTE.format(page)}\n{text}"
            yield page, re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"

    def _directive(self, page: str, found: re.Match[str]) -> str:
        thing = self.get(found[1])
        shown = self._expanded[page, found[0]]
        parts = []
        if thing.is_module:
            module = self._behind(thing)
            parts.append(self._docstring(module, Shown(module, found[1], page)))
        if not self._listed:
            self._listed = True
            parts.append(self._contents(page))
        parts += [self._thing(one) for one in shown]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _contents(self, page: str) -> str:
        """A table of what a page shows, with the first sentence of each docstring."""
        rows = ["| name | description |", "|---|---|"]
        for shown in self.things[page]:
            text = self._docstring(shown.thing, shown).partition("\n\n")[0].replace("\n", " ")
            first = re.split(r"(?<=[.:])\s+(?=[A-Z`\[])", text)[0].rstrip(":")
            name = self._title(shown)
            rows.append(
                f"| [{code(name)}](#{shown.anchor}) | {first.replace('|', chr(92) + '|')} |"
            )
        return "\n".join(rows)

    def _title(self, shown: Shown) -> str:
        """The name of a thing; its whole path if the page shows another one of that name."""
        names = [other.name for other in self.things[shown.page]]
        return shown.anchor if names.count(shown.name) > 1 else shown.name

    def _thing(self, shown: Shown) -> str:
        """A class, function or constant, and the members of a class."""
        parts = [f'<a id="{shown.anchor}"></a>', f"## {code(self._title(shown))}"]
        primary = self._primary(shown.path)
        if primary is not None and primary is not shown:
            address = self.link(primary, shown.page)
            same = f"The same {shown.thing.kind.value} as [{code(primary.anchor)}]({address})"
            members = shown.inherited.get(shown.path, [])
            parts.append(
                f"{same}: {self._links(members, primary, shown)}." if members else f"{same}."
            )
            return "\n\n".join(parts)
        parts += self._body(shown, "class " * shown.thing.is_class)
        for base, members in shown.inherited.items():
            parts.append(self._inherited(base, members, shown))
        for member in shown.members:
            parts += [
                f'<a id="{member.anchor}"></a>',
                f"### {code(f'{shown.name}.{member.name}')}",
                *self._body(member, ""),
            ]
        return "\n\n".join(part for part in parts if part)

    def _inherited(self, base: str, members: list[Shown], shown: Shown) -> str:
        """A line of links to the members that a class has from another one that is shown."""
        owner = self._primary(base)
        assert owner is not None
        address = self.link(owner, shown.page)
        links = self._links(members, owner, shown)
        return f"Inherited from [{code(owner.anchor)}]({address}): {links}."

    def _links(self, members: list[Shown], owner: Shown, shown: Shown) -> str:
        """Links to members of another class, which have anchors as members of this one too."""
        links = []
        for member in members:
            target = next((one for one in owner.members if one.path == member.path), owner)
            address = self.link(target, shown.page)
            links.append(f'<a id="{member.anchor}"></a>[{code(member.name)}]({address})')
        return ", ".join(links)

    def _body(self, shown: Shown, prefix: str) -> list[str]:
        """The signature, the types that it names, the bases of a class, and the docstring."""
        thing = shown.thing
        lines = [prefix + signature(thing, shown.name, self._parameters(thing))]
        names = parameters_of(thing) if is_record(thing) else {}
        lines += [f"    {attribute(one)}" for one in shown.fields if one.name not in names]
        parts = [f"```python\n{chr(10).join(lines)}\n```"]
        parts.append(self._bases(shown) if thing.is_class else "")
        parts.append(self._types(shown))
        parts.append(self._docstring(thing, shown))
        if thing.is_class and "__init__" in thing.members:
            parts.append(self._docstring(thing.members["__init__"], shown))
        return parts

    def _docstring(self, thing: Any, shown: Shown) -> str:
        near = str(thing.canonical_path)
        return to_markdown(docstring_of(thing), lambda target: self.address(target, near, shown))

    def _names(self, expression: Any) -> Iterator[str]:
        """The canonical paths of the names of an annotation."""
        if isinstance(expression, griffe.Expr):
            for part in expression.iterate(flat=True):
                if isinstance(part, griffe.ExprName):
                    path = part.canonical_path
                    yield self.get(path).canonical_path if self._is_known(path) else path

    def _is_known(self, path: str) -> bool:
        """True if lsmkv defines or imports a path."""
        try:
            return path.startswith("lsmkv.") and bool(self.get(path).canonical_path)
        except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
            return False

    def _parameters(self, thing: Any) -> list[Any]:
        """The parameters of a thing; those of a TypedDict that no page shows stand for it."""
        found: list[Any] = []
        for parameter in parameters_of(thing).values():
            path = next(
                (name for name in self._names(parameter.annotation) if "lsmkv." in name), ""
            )
            if not str(parameter.annotation).startswith("Unpack[") or path in self.places:
                found.append(parameter)
                continue
            keywords = self.get(path)
            for name, member in {**keywords.inherited_members, **keywords.members}.items():
                if member.is_attribute:
                    kind = griffe.ParameterKind.keyword_only
                    found.append(keyword(name, member.annotation, kind, "..."))
        return found

    def _bases(self, shown: Shown) -> str:
        """The bases that a reader can look up: here or in Python's own documentation."""
        links = []
        for base in shown.thing.bases:
            expression = str(base)
            path = next(self._names(base), expression)
            primary = self._primary(path)
            if primary is not None:
                links.append(f"[{code(primary.anchor)}]({self.link(primary, shown.page)})")
            elif not path.startswith("lsmkv.") and not expression.startswith(("_", "Generic")):
                links.append(code(expression))
        return f"Bases: {', '.join(links)}" if links else ""

    def _types(self, shown: Shown) -> str:
        """Links to the classes of lsmkv that a signature names."""
        thing = shown.thing
        expressions = [parameter.annotation for parameter in self._parameters(thing)]
        expressions.append(None if thing.is_class else annotation_of(thing))
        links = {}
        for expression in expressions:
            for name in self._names(expression):
                primary = self._nearest(self.places.get(name, []), "", shown)
                if primary is not None and not shown.anchor.startswith(primary.anchor):
                    links[primary.anchor] = self.link(primary, shown.page)
        if not links:
            return ""
        return "Types: " + ", ".join(f"[{code(name)}]({links[name]})" for name in links)


def docstring_of(thing: Any) -> str:
    """A docstring, or an empty text."""
    return thing.docstring.value if thing.docstring is not None else ""


def is_record(thing: Any) -> bool:
    """True for a class whose fields are its parameters."""
    if not thing.is_class:
        return False
    return "dataclass" in thing.labels or any(str(base) == "NamedTuple" for base in thing.bases)


def parameters_of(thing: Any) -> dict[str, Any]:
    """The parameters of a function or class, by name."""
    if not (thing.is_function or thing.is_class):
        return {}
    if thing.is_class and any(str(base) == "NamedTuple" for base in thing.bases):
        kind = griffe.ParameterKind.positional_or_keyword
        return {
            name: keyword(name, member.annotation, kind, member.value)
            for name, member in thing.members.items()
            if member.is_attribute and member.annotation is not None
        }
    found = list(thing.parameters)
    bound = found and found[0].name in ("self", "cls")
    return {parameter.name: parameter for parameter in found[1 if bound else 0 :]}


def keyword(name: str, annotation: Any, kind: griffe.ParameterKind, default: Any) -> Any:
    """A parameter that a field stands for."""
    return griffe.Parameter(name, annotation=annotation, kind=kind, default=default)


def annotation_of(thing: Any) -> Any:
    """The type of an attribute, or of what a function returns."""
    if thing.is_class:
        return None
    return thing.returns if thing.is_function else thing.annotation


def signature(thing: Any, name: str, known: list[Any]) -> str:
    """What a reader writes to call or use it."""
    if thing.is_attribute:
        prefix = "property " if "property" in thing.labels else ""
        return prefix + attribute(thing, name)
    parameters = [*_shown(known)]
    if thing.is_class and not parameters:
        return name
    prefix = "".join(
        f"{label} " for label in ("async", "classmethod", "staticmethod") if label in thing.labels
    )
    returns = annotation_of(thing)
    end = f" -> {returns}" if returns is not None else ""
    line = f"{prefix}{name}({', '.join(parameters)}){end}"
    if len(line) <= WIDTH:
        return line
    return f"{prefix}{name}(\n" + "".join(f"    {one},\n" for one in parameters) + f"){end}"


def _shown(parameters: list[Any]) -> Iterator[str]:
    """Each parameter with its type and default, and the marks between their kinds."""
    kinds = griffe.ParameterKind
    before = None
    starred = False
    for parameter in parameters:
        if before is kinds.positional_only and parameter.kind is not before:
            yield "/"
        if parameter.kind is kinds.keyword_only and not starred:
            starred = True
            yield "*"
        star = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(parameter.kind, "")
        starred = starred or star == "*"
        text = star + parameter.name
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not star:
            text += f"{' = ' if parameter.annotation is not None else '='}{parameter.default}"
        yield text
        before = parameter.kind
    if before is kinds.positional_only:
        yield "/"


def attribute(thing: Any, name: str = "") -> str:
    """A name with its type, and its value where that is a short constant."""
    text = name or str(thing.name)
    annotation, value = thing.annotation, thing.value
    constant = thing.parent.is_module or "class-attribute" in thing.labels
    if str(annotation).startswith(
        "Annotated["
    ):  # an option: its type, and a check with its default
        annotation, check, *_ = annotation.slice.elements
        value, constant = check.arguments[0], True
        if isinstance(value, griffe.ExprName) and not str(value).isupper():
            value = repr(str(value))  # griffe takes a text in an annotation for a name
    if annotation is None and "__init__" in thing.parent.members:  # set to a parameter
        known = parameters_of(thing.parent.members["__init__"]).get(str(value))
        annotation = known and known.annotation
    if annotation is not None:
        text += f": {annotation}"
    value = str(value) if value is not None else ""
    if value and constant and len(value) < 40 and not re.search(r"\w\(|\bnot\b", value):
        text += f" = {value}"
    return text


def write(directory: Path = REFERENCE) -> None:
    """Write every page."""
    for name, text in Reference().pages():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
