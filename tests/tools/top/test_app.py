"""lsmkv.tools.top.app: the screen at several sizes, and its keys."""

from __future__ import annotations

import contextlib
import html
import re
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest
from textual.pilot import Pilot
from watching import Owner, busy_owner, shared_owner

from lsmkv.engine.leased_name import LeasedName
from lsmkv.tools.top.app import Help, PanelView, TopApp


@contextlib.asynccontextmanager
async def screen(
    owner: Owner, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[TopApp, Pilot[None]]]:
    """The screen of ``lsmkv top``."""
    app = TopApp(owner.watch)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def shown(app: TopApp) -> list[str]:
    """The lines of the screen, as a picture of it has them."""
    lines: defaultdict[float, list[tuple[float, str]]] = defaultdict(list)
    picture = app.export_screenshot()
    piece = r'<text class="[^"]*-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>'
    for x, y, text in re.findall(piece, picture):
        lines[float(y)].append((float(x), html.unescape(text).replace("\xa0", " ")))
    return [
        "".join(text for _, text in sorted(found)).strip("\n") for _, found in sorted(lines.items())
    ]


def titles(app: TopApp) -> list[str]:
    """The panels that are on the screen."""
    return [
        str(panel.border_title)
        for panel in app.query(PanelView)
        if panel.region.height > 0 and panel.is_on_screen
    ]


PANELS = ["Operations, last 10 s", "Hits", "Filters", "Written", "Background", "Levels"]


async def test_all_panels_are_on_a_small_terminal() -> None:
    async with screen(busy_owner()) as (app, _):
        assert titles(app) == PANELS
        lines = shown(app)
        assert lines[0].startswith("store  pid ")
        text = "\n".join(lines)
        for word in ("7,380", "60.5%", "measured rate", "amplification", "45%", "77.2 MiB"):
            assert word in text
        assert "Quit" in lines[-1]
        assert "Help" in lines[-1]


async def test_a_large_terminal_has_charts() -> None:
    async with screen(busy_owner(), (120, 40)) as (app, pilot):
        assert titles(app) == [*PANELS[:4], "Operations a second", "Gets, p99", *PANELS[4:]]
        assert "up to 17,962" in "\n".join(shown(app))
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert titles(app) == PANELS


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_processes_of_a_shared_store_are_shown(size: tuple[int, int]) -> None:
    for members, said in ((2, "1001 member"), (6, "1005 member"), (9, "and 4 more")):
        async with screen(shared_owner(members), size) as (app, _):
            assert titles(app)[:2] == ["Operations, last 10 s", "Processes, last 10 s"]
            lines = shown(app)
            (heading,) = [line for line in lines if "no owner" in line]
            assert "p99" in heading
            assert any(said in line for line in lines)
            assert max(map(len, lines)) <= size[0]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_leases_with_names_are_shown(size: tuple[int, int]) -> None:
    owner = shared_owner(1)
    owner.publish(leased_names=(LeasedName("Lock 'report'", (4711,), (4712, 4713)),))
    owner.look()
    async with screen(owner, size) as (app, _):
        assert "Leases with names" in titles(app)
        (line,) = [line for line in shown(app) if "Lock 'report'" in line]
        assert "4711" in line
        assert "4712 4713" in line


async def test_a_narrow_terminal_scrolls() -> None:
    async with screen(busy_owner(), (50, 24)) as (app, pilot):
        await pilot.press("end")
        await pilot.pause()
        assert "Levels" in titles(app)
        assert all(panel.region.width <= 50 for panel in app.query(PanelView))


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 100)])
async def test_any_size_is_survived(size: tuple[int, int]) -> None:
    async with screen(busy_owner(publications=3), size) as (_, pilot):
        await pilot.press("question_mark")
        await pilot.pause()


async def test_new_figures_are_drawn() -> None:
    owner = busy_owner()
    async with screen(owner) as (app, pilot):
        owner.operate("delete", 4321, 1000)
        owner.publish()
        app.look()
        await pilot.pause()
        assert "4,321" in "\n".join(shown(app))


async def test_a_pause_keeps_the_screen_as_it_is() -> None:
    owner = busy_owner()
    async with screen(owner) as (app, pilot):
        await pilot.press("p")
        owner.operate("delete", 4321, 1000)
        owner.publish()
        app.look()
        await pilot.pause()
        text = "\n".join(shown(app))
        assert "paused at" in text
        assert "4,321" not in text
        await pilot.press("p")
        await pilot.pause()
        text = "\n".join(shown(app))
        assert "paused" not in text
        assert "4,321" in text


async def test_dark_and_light() -> None:
    async with screen(busy_owner(publications=3)) as (app, pilot):
        assert app.current_theme.dark
        await pilot.press("d")
        assert not app.current_theme.dark
        await pilot.press("d")
        assert app.current_theme.dark


async def test_help_opens_and_closes() -> None:
    async with screen(busy_owner(publications=3)) as (app, pilot):
        for key in ("escape", "question_mark", "q"):
            await pilot.press("question_mark")
            await pilot.pause()
            assert isinstance(app.screen, Help)
            assert "What the figures mean" in "\n".join(shown(app))
            app.look()  # goes on meanwhile
            await pilot.press(key)
            await pilot.pause()
            assert not isinstance(app.screen, Help)


async def test_it_quits() -> None:
    async with screen(busy_owner(publications=3)) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_ctrl_c_is_the_status_of_an_interrupt() -> None:
    async with screen(busy_owner(publications=3)) as (app, pilot):
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app.return_code == 130


async def test_without_an_owner_that_publishes_it_says_so_and_waits() -> None:
    owner = Owner("[b]store\x1b")
    async with screen(owner) as (app, pilot):
        text = "\n".join(shown(app))
        assert "publishes nothing" in text
        assert "publish_stats=True" in text
        assert "[b]store\\x1b" in text
        assert titles(app) == []
        owner.publish()
        app.look()
        await pilot.pause()
        assert titles(app) == PANELS
        assert "publishes nothing" not in "\n".join(shown(app))
        owner.lock.close()
        app.look()
        await pilot.pause()
        assert "was killed" in "\n".join(shown(app))


async def test_a_silent_owner_and_a_trace_are_reported() -> None:
    owner = Owner()
    owner.publish(-60.0, trace="t", opened=owner.now.time - 3700)
    async with screen(owner, (100, 24)) as (app, _):
        line = shown(app)[0]
        assert "open for 1 h 0 min" in line
        assert "traced" in line
        assert "silent for 1 min" in line
