"""The documentation as a site: built without warnings, all links there, no requests out.

``mkdocs build --strict`` (``make docs``) refuses a page's link that leads nowhere.  It does not see
what it does not render: links in raw HTML, in the reference, to lines of the source, in the filter
lab.  So this walks over the built files.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from lsmkv.engine.former_paths import present_path

pytest.importorskip("mkdocs")
pytest.importorskip("material")

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LOADED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("source", "srcset"),
    ("iframe", "src"),
}
"""What a browser fetches without being asked."""
CSS_REQUEST = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//")
MODULES = {
    "lsmkv": (
        *("db", "shared", "cache", "views", "options", "policies", "inside"),
        *("upkeep", "errors", "mapping"),
    ),
    **{f"lsmkv.{name}": (name,) for name in ("plyvel", "aio", "bulk", "shards", "testing", "plot")},
    **{f"lsmkv.{name}": (name,) for name in ("files", "indexeddb", "mapping", "server")},
    **{f"lsmkv.{name}": (name,) for name in ("filter_lab", "owner", "repair")},
    **{f"lsmkv.cache.{name}": (name,) for name in ("recipes", "codecs")},
    **{f"lsmkv.cache.{name}": ("backends",) for name in ("aiocache", "cachelib", "dogpile")},
    "lsmkv.django": ("backends",),
}
"""The public modules, and the pages of the reference that have their names."""


class Page(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value)
            elif (tag, name) in LOADED:
                self.loads.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)

    handle_startendtag = handle_starttag


def build(config: Path, site: Path) -> str:
    """Build the site, and return what MkDocs said."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    done = subprocess.run(
        [*command, "--config-file", str(config), "--site-dir", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    site = tmp_path_factory.mktemp("site") / "site"
    return site, build(ROOT / "mkdocs.yml", site)


@pytest.fixture(scope="module")
def site(built: tuple[Path, str]) -> Path:
    return built[0]


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def is_outside(url: str) -> bool:
    return re.match(r"(?:\w+:)?//|mailto:|https?:", url) is not None


def broken(pages: dict[Path, Page], site: Path) -> list[str]:
    """Each link or file of a page that is not there."""
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # is shown at any address, so its own are absolute
            continue
        for url in {*page.links, *page.loads}:
            if is_outside(url) or url.startswith("data:"):
                continue
            place, anchor = urldefrag(url)
            target = (path.parent / unquote(place)).resolve() if place else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                found.append(f"{path.relative_to(site)}: {url}: no such file")
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                found.append(f"{path.relative_to(site)}: {url}: no such anchor")
    return found


def test_nothing_is_warned_of(built: tuple[Path, str]) -> None:
    assert not re.search(r"(?m)^(?:WARNING|ERROR|Traceback)", built[1]), built[1]


def test_every_link_and_anchor_is_there(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 300
    assert broken({path.resolve(): page for path, page in pages.items()}, site.resolve()) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    for path in (one, other):
        path.touch()
    pages = {
        one: Page('<a href="other.html#here">1</a><a href="gone.html">2</a><img src="gone.png">'),
        other: Page(
            '<p id="there"></p><a href="one.html">3</a><a href="https://example.org">4</a>'
        ),
    }
    assert sorted(broken(pages, tmp_path)) == [
        "one.html: gone.html: no such file",
        "one.html: gone.png: no such file",
        "one.html: other.html#here: no such anchor",
    ]


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    outside = {
        (path.name, url) for path, page in pages.items() for url in page.loads if is_outside(url)
    }
    assert outside == set()
    styles = list(site.rglob("*.css"))
    assert styles
    for style in styles:
        assert not CSS_REQUEST.search(style.read_text(encoding="utf-8")), style


def test_the_search_works_in_a_folder_too(site: Path, pages: dict[Path, Page]) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert '"location":"guides/embedding.html' in index
    assert '"location":"source/lsmkv' not in index
    assert any(url.endswith("iframe-worker/shim.js") for url in pages[site / "index.html"].loads)


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("prometheus", "monitoring.html"),
        ("opentelemetry", "monitoring.html"),
        ("metrics", "monitoring.html"),
        ("docker", "guides/docker.html"),
        ("fastapi", "guides/workers.html"),
        ("django", "guides/workers.html"),
        ("gunicorn", "guides/workers.html"),
        ("celery", "guides/workers.html"),
        ("cache size", "guides/tuning.html"),
        ("memory", "guides/tuning.html"),
        ("descriptors", "guides/tuning.html"),
    ],
)
def test_the_search_index_has_what_is_looked_for(site: Path, words: str, page: str) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = [
        entry["location"]
        for entry in index["docs"]
        if all(word in f"{entry['title']} {entry['text']}".lower() for word in words.split())
    ]
    assert page in {location.partition("#")[0] for location in found}


def test_the_tabs_are_in_the_order_of_a_reader(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'(?s)class="md-tabs__link">(.*?)</a>', text)
    assert [" ".join(re.sub("<.*?>", "", tab).split()) for tab in tabs] == [
        *("Home", "Start", "Guides", "How it works", "Course", "Reference", "Contributing"),
    ]


def test_the_reference_of_db_begins_with_what_is_used_most(site: Path) -> None:
    text = (site / "reference" / "db.html").read_text(encoding="utf-8")
    shown = re.findall(r'<h3 id="lsmkv\.DB\.(\w+)"', text)
    assert shown[:3] == ["get", "put", "delete"]
    assert shown.index("iterator") < shown.index("compact_range")
    read = re.sub(r"<[^>]*>", "", text)
    assert "Bases:" not in read
    assert "Maintenance" not in read


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_every_public_name(
    module: str, pages: dict[Path, Page], site: Path
) -> None:
    ids = set().union(*(pages[site / "reference" / f"{name}.html"].ids for name in MODULES[module]))
    assert public_names(module) - ids == set()


def public_names(module: str) -> set[str]:
    """The path of each public name of a module."""
    path = ROOT / Path(*(present_path(module) or module).split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {f"{module}.{name}" for name in ast.literal_eval(node.value)}
    raise AssertionError(f"{module} has no __all__")


def test_no_markup_of_docstrings_is_left(site: Path) -> None:
    for path in (site / "reference").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r":(?:class|meth|func|data|attr|mod):`?|``", text), path


def test_symbols_lead_to_their_lines(site: Path, pages: dict[Path, Page]) -> None:
    tour = (site / "tour.html").read_text(encoding="utf-8")
    found = re.search(
        r'href="source/(lsmkv/engine/db/db\.py)\.html#__codelineno-0-(\d+)"><code>DB\.put<', tour
    )
    assert found is not None
    line = (ROOT / found[1]).read_text(encoding="utf-8").splitlines()[int(found[2]) - 1]
    assert line.lstrip().startswith("def put(")
    for name in ("tour", "glossary", "how/write", "how/durability"):
        symbols = [url for url in pages[site / f"{name}.html"].links if "source/lsmkv" in url]
        assert len(symbols) > 2, name


def test_every_page_is_in_the_site(site: Path) -> None:
    hidden = {"site", "templates"}
    for page in (ROOT / "docs").rglob("*.md"):
        inside = page.relative_to(ROOT / "docs")
        if not hidden & {*inside.parts}:
            name = "index" if inside.stem == "README" else inside.stem
            assert (site / inside.with_name(f"{name}.html")).is_file()


def test_the_filter_lab_is_in_its_page(site: Path, pages: dict[Path, Page]) -> None:
    assert "lab.html" in pages[site / "bloom.html"].loads
    assert 'href="filters.html" target="_top"' in (site / "lab.html").read_text(encoding="utf-8")


def test_llms_txt_lists_the_pages(site: Path, pages: dict[Path, Page]) -> None:
    """In the form of https://llmstxt.org: a title, a summary, and sections of links."""
    lines = [line for line in (site / "llms.txt").read_text(encoding="utf-8").splitlines() if line]
    assert lines[0] == "# lsmkv"
    assert lines[1].startswith("> ")
    sections = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert sections[:2] == ["Start", "Guides"]
    assert "Reference" in sections
    listed = [line for line in lines[2:] if not line.startswith("## ")]
    found = [re.fullmatch(r"- \[[^\]]+\]\(([\w/.-]+)\): \S.*", line) for line in listed]
    assert None not in found, [line for line, match in zip(listed, found, strict=True) if not match]
    addresses = [match[1] for match in found if match]
    assert len(addresses) == len({*addresses}) > 80
    assert {site / address for address in addresses} <= {*pages}
    assert addresses.index("start.html") < addresses.index("reference/db.html")
