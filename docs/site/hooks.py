"""What MkDocs does for the site beside rendering docs/: ``mkdocs.yml`` names this file.

* Every module of lsmkv and every example becomes a page, so that what is named in the tour, the
  glossary and the pages on how it works can link to its line.
* Links to files outside docs/ (SECURITY.md, an example) lead to such pages; the same links work on
  a code host.
* Examples with prompts are colored as such.
* The filter lab, which is one file, is fitted into the page that shows it.
* In the reference the anchors before headings become the ids of the headings.
* ``llms.txt`` lists the pages, for programs that read documentation.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page
from symbols import Symbol, Symbols

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ("lsmkv", "examples")
"""The directories whose Python files become pages."""
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "LICENSE")
"""Files outside docs/ that become pages."""
EXAMPLES = "examples.md"
"""The page about the examples, which is made of their README."""
LINKED = re.compile(r"tour\.md|glossary\.md|how/.*\.md")
"""The pages whose symbols are links."""
GUIDES = ("start.md", "monitoring.md")
"""Pages that the search puts before the reference, as it does all in guides/."""
WIDE = {"README.md": ["navigation"], "bloom.md": ["navigation", "toc"]}
"""What these pages do without, to have more room."""
FRAMED = """<script>
addEventListener("message", (event) => {
  if (event.source === parent) document.documentElement.style.colorScheme = event.data.scheme;
});
new ResizeObserver(() => {
  parent.postMessage({ labHeight: document.body.scrollHeight }, "*");
}).observe(document.body);
</script>
"""
"""Lets the lab take its colors from the page around it, and tell that its height: by messages,
since a page in a folder may not look into its frames."""

_LINK = re.compile(r"\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")
_SOURCE = re.compile(r'((?:src|href)=")(?!\w+:|#|/)([^"#]+)')
_NAMED = re.compile(r"\[((?:docs/)?[\w./]+\.md)\]\(([\w./-]+\.md)(#[^)\s]*)?\)")
_RELEASE = re.compile(r"(?m)^(## )\[([^\]]+)\]|^\[[^\]]+\]: (?:\.\./){2}(?:compare|releases)/.*\n")
_LIST = re.compile(r"(?m)^(?![-\s#|>`])(.+)\n(?=- )")  # a code host takes this for a list
_PROMPT = re.compile(r"^(\s*```)python\n(?=\s*>>> )", re.MULTILINE)
_CODE = re.compile(
    r"(?s)<pre.*?</pre>|<a [^>]*>.*?</a>|<h[12][^>]*>.*?</h[12]>|<code>([^<]+)</code>"
)
_ANCHOR = re.compile(r'(?m)^<a id="((?:(?!__)[\w.])+)"></a>\n\n(#+ .*)$')  # __ would be bold
_ROOM = re.compile(r"<code>(lsmkv/[\w/.]+)</code>")

_symbols = Symbols()


def on_config(config: MkDocsConfig) -> None:
    """Read the source, and put the course, if there is one, before the reference."""
    course = course_pages(ROOT / "docs" / "course")
    if course and config.nav is not None:
        titles = [title for tab in config.nav for title in tab]
        config.nav.insert(titles.index("Reference"), {"Course": course})
    if not _symbols.by_path:
        _symbols.read(ROOT, "lsmkv")


def course_pages(directory: Path) -> list[str]:
    """The pages of docs/course in the order of their names, each directory's README first."""
    pages = sorted(
        directory.rglob("*.md"), key=lambda path: (path.parent, path.stem != "README", path.name)
    )
    return [path.relative_to(ROOT / "docs").as_posix() for path in pages]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that show the source, and the files beside docs/."""
    for directory in SHOWN:
        for path in sorted((ROOT / directory).rglob("*.py")):
            add(files, config, path.relative_to(ROOT).as_posix() + ".md", module_page(path))
        add_listings(files, config, ROOT / directory)
    for name in BESIDE:
        text = (ROOT / name).read_text(encoding="utf-8")
        if name == "LICENSE":
            text = f"# Licence\n\n```text\n{text}\n```\n"
        add(files, config, "repository/" + name.removesuffix(".md") + ".md", text)
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        name = f"source/examples/{notebook.name}"
        files.append(File.generated(config, name, abs_src_path=str(notebook)))
    files.append(File.generated(config, EXAMPLES, content=examples_page()))
    return files


def examples_page() -> str:
    """The examples' own page, or a list of them."""
    path = ROOT / "examples" / "README.md"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    return "# Examples\n\n" + listing(ROOT / "examples")


def add(files: Files, config: MkDocsConfig, name: str, text: str) -> None:
    """Add a page below ``source/`` that the search leaves out."""
    head = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n"
    page = File.generated(
        config, f"source/{name}", content=head + text, inclusion=InclusionLevel.NOT_IN_NAV
    )
    files.append(page)


def add_listings(files: Files, config: MkDocsConfig, top: Path) -> None:
    """Add a page for each directory."""
    for directory in sorted({path.parent for path in top.rglob("*.py")}):
        name = directory.relative_to(ROOT).as_posix()
        text = f"# `{name}`\n\n{listing(directory, to_pages=True)}"
        add(files, config, f"{name}/index.md", text)


def listing(directory: Path, to_pages: bool = False) -> str:
    """A table of what a directory holds, with the first paragraph of each module's docstring.

    It links the modules, or the pages that show them.
    """
    lines = ["| | |", "|---|---|"]
    inner = (path for path in directory.iterdir() if path.is_dir() and any(path.glob("*.py")))
    for path in sorted(inner):
        lines.append(f"| [`{path.name}/`]({path.name}/index.md) | {about(path)} |")
    for path in sorted(directory.glob("*.py")):
        target = path.name + ".md" * to_pages
        lines.append(f"| [`{path.name}`]({target}) | {about(path)} |")
    return "\n".join(lines) + "\n"


def about(path: Path) -> str:
    """The first paragraph of a module's docstring, or of a package's, for a table."""
    path = path / "__init__.py" if path.is_dir() else path
    docstring = (
        ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path.is_file() else ""
    )
    first = " ".join((docstring or "").split("\n\n")[0].split())
    first = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", first).replace("``", "`")
    return first.replace("|", "\\|").removesuffix("::")


def module_page(path: Path) -> str:
    """A page with a module's lines, numbered, each with an anchor."""
    name = path.relative_to(ROOT).as_posix()
    code = path.read_text(encoding="utf-8")
    return f'# `{name}`\n\n````````python linenums="1"\n{code.rstrip()}\n````````\n'


def source_of(target: str) -> str | None:
    """The page, from docs/, that shows a file or directory of the repository."""
    if target in BESIDE:
        return f"source/repository/{target.removesuffix('.md')}.md"
    if target in ("examples", "examples/README.md"):
        return EXAMPLES
    if target.split("/", maxsplit=1)[0] not in SHOWN or not (ROOT / target).exists():
        return None
    if (ROOT / target).is_dir():
        return f"source/{target}/index.md"
    return f"source/{target}.md" if target.endswith(".py") else f"source/{target}"


def place_of(page: str) -> str:
    """The directory of the repository from which the links of a page are written."""
    if page == EXAMPLES:
        return "examples"
    return "" if page.startswith("source/") else posixpath.join("docs", posixpath.dirname(page))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to pages of the site, and color prompts."""
    name = page.file.src_uri
    if name.startswith("source/") and not name.startswith("source/repository/"):
        return markdown
    if name in WIDE:
        page.meta["hide"] = WIDE[name]
    if name.startswith("guides/") or name in GUIDES:
        page.meta["search"] = {"boost": 3}
    place, here = place_of(name), posixpath.dirname(name)

    def led(target: str) -> str:
        """A relative link of the page, as one from where the site has the page."""
        path = posixpath.normpath(posixpath.join(place, target))
        shown = path.removeprefix("docs/") if path.startswith("docs/") else source_of(path)
        return posixpath.relpath(shown, here or ".") if shown else target

    # Only a code host has the pages of releases that the changelog's headings lead to.
    markdown = _RELEASE.sub(lambda found: f"{found[1]}{found[2]}" if found[1] else "", markdown)
    if not place.startswith("docs"):
        markdown = _LIST.sub(r"\1\n\n", markdown)
        markdown = _SOURCE.sub(lambda found: found[1] + led(found[2]), markdown)
    markdown = _LINK.sub(lambda found: f"]({led(found[1])}{found[2] or ''})", markdown)
    markdown = _NAMED.sub(lambda found: titled(found, here), markdown)
    markdown = _ANCHOR.sub(r"\2 {#\1}", markdown)
    return _PROMPT.sub(r"\1pycon\n", markdown)


def titled(found: re.Match[str], here: str) -> str:
    """A link that is named after its file gets the title of the page, which the site shows."""
    path = ROOT / posixpath.normpath(posixpath.join("docs", here, found[2]))
    if not path.is_file():
        return found[0]
    title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return f"[{title}]({found[2]}{found[3] or ''})"


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the symbols that the pages about the source name to their lines."""
    name = page.file.src_uri
    if not LINKED.fullmatch(name):
        return html
    up = "../" * name.count("/")
    top = "lsmkv.engine.db" if name.startswith("how/") else "lsmkv"
    room = top

    def link(found: re.Match[str]) -> str:
        nonlocal room
        if found[0].startswith("<h"):
            about_room = _ROOM.search(found[0])
            room = about_room[1].replace("/", ".").removesuffix(".py") if about_room else top
        if not found[1]:
            return found[0]
        target = address(found[1], room)
        return f'<a class="symbol" href="{up}{target}">{found[0]}</a>' if target else found[0]

    return _CODE.sub(link, html)


def address(name: str, room: str) -> str | None:
    """Where the site shows what a page sets in code style, or None if that is no symbol."""
    if "/" in name:
        for path in (name, f"lsmkv/{name}"):
            shown = source_of(path.rstrip("/"))
            if shown:
                return shown.removesuffix(".md") + ".html"
        return None
    if name.endswith(".py"):
        symbol = _symbols.find(name.removesuffix(".py"), room)
        return f"source/{symbol.file}.html" if symbol and symbol.line == 1 else None
    if not re.fullmatch(r"[A-Za-z_][\w.]*(?:\(\))?", name):
        return None
    return line_of(_symbols.find(name.removesuffix("()"), room))


def line_of(symbol: Symbol | None) -> str | None:
    """The address of a symbol's line."""
    if symbol is None:
        return None
    return f"source/{symbol.file}.html#__codelineno-0-{symbol.line}"


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    """Keep the order of the pages for ``llms.txt``."""
    config.extra["nav"] = nav


def llms_txt(nav: Navigation, config: MkDocsConfig) -> str:
    """The pages in their order, a line each: https://llmstxt.org."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]

    def line(page: Page) -> str:
        about = first_sentence(page.markdown or "")
        return f"- [{page.title}]({page.canonical_url or page.url})" + f": {about}" * bool(about)

    lines += [line(item) for item in nav.items if isinstance(item, Page)]
    for section in nav.items:
        if isinstance(section, Section):
            lines += ["", f"## {section.title}", "", *map(line, pages_of(section))]
    return "\n".join(lines) + "\n"


def pages_of(section: Section) -> Iterator[Page]:
    """The pages of a section and of those in it."""
    for item in section.children:
        if isinstance(item, Page):
            yield item
        elif isinstance(item, Section):
            yield from pages_of(item)


def first_sentence(markdown: str) -> str:
    """The first sentence of a page's first paragraph, as plain text."""
    markdown = re.sub(r"(?s)^---\n.*?\n---\n|<!--.*?-->|```.*?```", "", markdown)
    for paragraph in re.split(r"\n\s*\n", markdown):
        if re.match(r"\s?[A-Za-z`*\[]", paragraph):
            text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            text = re.sub(r"\*\*[^*]+[.?]\*\* |\*\*", "", text)
            return re.split(r"(?<=[.!?]) (?=[A-Z`]|lsmkv)", text)[0].removesuffix(":")
    return ""


def on_post_build(config: MkDocsConfig, **kwargs: Any) -> None:
    """Fit the lab, which is copied as it is, into the site, and write ``llms.txt``."""
    lab = Path(config.site_dir) / "lab.html"
    text = lab.read_text(encoding="utf-8")
    text = text.replace("<cite>Filters</cite>", '<a href="filters.html" target="_top">Filters</a>')
    lab.write_text(text.replace("</body>", f"{FRAMED}</body>"), encoding="utf-8")
    text = llms_txt(config.extra["nav"], config)
    (Path(config.site_dir) / "llms.txt").write_text(text, encoding="utf-8")
