"""The screen of ``lsmkv top``, a Textual application.

It draws what ``panels.py`` makes of a :class:`~lsmkv.tools.top.watch.Watch`, twice a second.
"""

from __future__ import annotations

import time
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer, Static

from lsmkv.tools.console import INTERRUPTED
from lsmkv.tools.text import printable
from lsmkv.tools.top import figures, panels
from lsmkv.tools.top.guide import HELP, explanation
from lsmkv.tools.top.watch import RECENT, Watch

_EVERY = 0.5  # seconds between two looks
_MOST_PROCESSES = 7
_MOST_LEASES = 5
_DARK, _LIGHT = "textual-dark", "textual-light"


class PanelView(Widget):
    """One panel, with its title in the border."""

    def __init__(self, panel: panels.Panel, title: str, watch: Watch, name: str) -> None:
        super().__init__(id=name)
        self._panel = panel
        self._watch = watch
        self.border_title = title

    def render(self) -> Content:
        """The panel as it is now."""
        return self._panel(self._watch, self.size.width, self.size.height)


class Help(ModalScreen[None]):
    """The meaning of the figures, over the rest of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        """The text, in a box that scrolls."""
        with VerticalScroll(id="help") as box:
            box.border_title = "What the figures mean"
            box.border_subtitle = "Esc closes"
            for heading, text in HELP:
                yield Static(Content.assemble((heading, "bold"), "\n", text), classes="topic")


class TopApp(App[None]):
    """``lsmkv top``: call ``run()``."""

    TITLE = "lsmkv top"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-wide")]  # noqa: RUF012 - Textual's
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", show=False),
        Binding("p", "pause", "Pause"),
        Binding("d", "toggle_dark", "Dark/light"),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]
    CSS = """
    #state { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    #nothing { padding: 1 2; height: 1fr; display: none; }
    PanelView { border: round $primary; border-title-color: $text-primary; padding: 0 1; }
    #operations { height: 8; }
    #processes, #leases { display: none; }
    .shared #processes, .leased #leases { display: block; }
    #figures { height: 7; }
    #figures PanelView { width: 1fr; height: 100%; }
    #charts { height: 1fr; display: none; }
    #charts PanelView { width: 1fr; height: 100%; }
    #store { height: 1fr; min-height: 7; }
    #store PanelView { width: 1fr; height: 100%; }
    .-tall #charts { display: block; }
    .-tall #store { height: 10; }
    .-narrow #figures, .-narrow #store { layout: vertical; height: auto; }
    .-narrow #figures PanelView, .-narrow #store PanelView { width: 100%; height: 7; }
    .unpublished #panels { display: none; }
    .unpublished #nothing { display: block; }
    #all { height: 1fr; }
    #panels { height: 1fr; scrollbar-size-vertical: 1; }
    Help { align: center middle; }
    #help { width: 76; max-width: 100%; height: auto; max-height: 90%; padding: 0 1;
            border: round $primary; background: $surface; }
    .topic { margin-bottom: 1; }
    .topic:last-of-type { margin-bottom: 0; }
    """

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch_store = watch
        self.paused = False
        self.theme = _DARK
        # Kept, since a look may occur while the help is on top, or when the screen is gone already.
        self._state_line = Static(id="state")
        self._nothing = Static(id="nothing")
        self._all = Container(id="all")
        recent = f"last {RECENT:.0f} s"
        self._panels = {
            name: PanelView(panel, title, watch, name)
            for name, panel, title in (
                ("operations", panels.operations, f"Operations, {recent}"),
                ("processes", panels.processes, f"Processes, {recent}"),
                ("leases", panels.leases, "Leases with names"),
                ("hits", panels.caches, "Hits"),
                ("filters", panels.filters, "Filters"),
                ("writes", panels.writes, "Written"),
                ("throughput", panels.throughput, "Operations a second"),
                ("latency", panels.get_latency, "Gets, p99"),
                ("background", panels.background, "Background"),
                ("levels", panels.levels, "Levels"),
            )
        }

    def compose(self) -> ComposeResult:
        """The line of the state, the panels, and what is shown in their place."""
        shown = self._panels
        with self._all:
            yield self._state_line
            yield self._nothing
            with VerticalScroll(id="panels"):
                yield shown["operations"]
                yield shown["processes"]
                yield shown["leases"]
                yield Horizontal(shown["hits"], shown["filters"], shown["writes"], id="figures")
                yield Horizontal(shown["throughput"], shown["latency"], id="charts")
                yield Horizontal(shown["background"], shown["levels"], id="store")
        yield Footer()

    def on_mount(self) -> None:
        """Look now, and then again and again."""
        self.look()
        self.set_interval(_EVERY, self.look)

    def look(self) -> None:
        """Read what is published, and draw it; while paused, do neither."""
        if self.paused:
            return
        self.watch_store.look()
        self.draw()

    def draw(self) -> None:
        """Draw what was read last."""
        watch = self.watch_store
        self._state_line.update(self._state())
        self._all.set_class(watch.published is None, "unpublished")
        processes = len(figures.processes(watch))
        self._all.set_class(processes > 0, "shared")
        self._panels["processes"].styles.height = 3 + min(processes, _MOST_PROCESSES)
        leases = len(figures.leases(watch))
        self._all.set_class(leases > 0, "leased")
        self._panels["leases"].styles.height = 3 + min(leases, _MOST_LEASES)
        if watch.published is None:
            self._nothing.update(explanation(watch))
        for panel in self._panels.values():
            panel.refresh()

    def _state(self) -> Content:
        """The first line: the store, its owner, and the time since it was opened."""
        watch = self.watch_store
        published = watch.published
        parts: list[tuple[str, str]] = [(printable(watch.path), "bold")]
        if published is not None:
            parts.append((f"  pid {published.pid}", ""))
            parts.append((f"  open for {_span(published.time - published.opened)}", ""))
            if published.trace is not None:
                parts.append(("  traced", "$text-accent"))
        if watch.silent_seconds > 0:
            parts.append((f"  silent for {_span(watch.silent_seconds)}", panels.BAD))
        if self.paused:
            at = time.strftime("%H:%M:%S", time.localtime(published.time if published else None))
            parts.append((f"  paused at {at}", "$text-warning bold"))
        return Content.assemble(*parts)

    def action_interrupt(self) -> None:
        """End as any command ends after Ctrl-C."""
        self.exit(return_code=INTERRUPTED)

    def action_pause(self) -> None:
        """Stop looking, or continue."""
        self.paused = not self.paused
        self.look()
        self.draw()

    def action_toggle_dark(self) -> None:
        """Light for dark, and dark for light."""
        self.theme = _LIGHT if self.theme == _DARK else _DARK

    def action_help(self) -> None:
        """Show what the figures mean."""
        self.push_screen(Help())


def _span(seconds: float) -> str:
    """A span of time in its largest unit, and the next one.

    >>> _span(7.4), _span(125), _span(7_500), _span(200_000)
    ('7 s', '2 min 5 s', '2 h 5 min', '2 d 7 h')
    """
    whole = max(0, int(seconds))
    for unit, name, below, name_below in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit:
            return f"{whole // unit} {name} {whole % unit // below} {name_below}"
    return f"{whole} s"
