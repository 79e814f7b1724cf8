"""How commands declare their options: what typer makes of the declarations."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lsmkv.tools.options import choice, flag, option


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


def painted(*arguments: str) -> Any:
    """A command with an option of each kind, run with these arguments."""
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    def paint(
        number: int = option(3, "N", "How many.", min=1),
        place: str | None = option(None, "DIR", "Where.", "--into", "-i"),
        dry: bool = flag("Paint nothing.", "--dry-run"),
        color: Color = choice(Color.RED, "Which."),
    ) -> None:
        typer.echo(f"{number} {place} {dry} {color}")

    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "3 None False red"),
        (["--number", "5", "--into", "x", "--dry-run", "--color", "blue"], "5 x True blue"),
        (["-i", "y"], "3 y False red"),
    ],
)
def test_an_option_has_its_parameter_s_type_and_default(arguments: list[str], printed: str) -> None:
    assert painted(*arguments).output == f"{printed}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--number", "0"],
        ["--number", "x"],
        ["--color", "green"],
        ["--no-dry-run"],
        ["--place", "x"],
    ],
)
def test_what_is_not_declared_is_refused(arguments: list[str]) -> None:
    assert painted(*arguments).exit_code == 2


def test_the_help_has_the_words_and_what_stands_for_the_value() -> None:
    words = " ".join(painted("--help").output.split())
    for shown in (
        "--number N How many. [default: 3; x>=1]",
        "-i, --into DIR Where.",
        "--dry-run Paint nothing.",
        "Which. [default: red]",
    ):
        assert shown in words
