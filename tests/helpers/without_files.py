"""A program that makes handles, and then loses the files of all modules that it has not imported.

Its arguments are a directory, and a file with the text of a tuple: the source that makes the list
``handles``, and for each class the expressions that use its public names.  They are evaluated for
each of the handles, and for the handles that these return, one of a class.

It imports little, so that nothing which a handle needs is there by accident.
"""

from __future__ import annotations

import sys
from typing import Any

Uses = dict[str, list[str]]

refused: list[str] = []
"""What was imported, or read of lsmkv's files, too late."""
failed: list[tuple[str, str]] = []
"""The calls that raised, each with the error."""
used: set[str] = set()
"""The classes of which every name was used."""


def refuse_files_below(home: str) -> None:
    """From here on, as if the files of lsmkv, of its dependencies and of Python were gone."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import" and arguments[0] not in sys.builtin_module_names:
            refused.append(f"import {arguments[0]}")
            raise ModuleNotFoundError(f"No module named {arguments[0]!r}", name=arguments[0])
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(home):
            refused.append(f"open {arguments[0].removeprefix(home)}")
            raise FileNotFoundError(2, "gone", arguments[0])

    sys.addaudithook(hook)


class User:
    """Uses a handle, and those that it returns."""

    def __init__(self, uses: Uses, names: dict[str, Any]) -> None:
        self.uses = uses
        self.names = names
        self.seen: set[str] = set()

    async def use(self, handle: Any) -> None:
        """Use all of its names, unless a handle of its class was used, or it is no handle."""
        kind = f"{type(handle).__module__}.{type(handle).__qualname__}"
        if kind not in self.uses or kind in self.seen:
            return
        self.seen.add(kind)
        for expression in self.uses[kind]:
            try:
                result = eval(expression, {**self.names, "handle": handle})
                if expression.endswith(")") and result is not handle:
                    await self.use_result(result)
            except BaseException as error:
                failed.append((f"{kind}: {expression}", f"{type(error).__name__}: {error}"))

    async def use_result(self, result: Any) -> None:
        """Use what a call has returned: a handle, or what leads to one."""
        if hasattr(result, "__await__"):
            result = await result
        if hasattr(result, "__aenter__"):
            async with result as inner:
                await self.use(inner)
        elif hasattr(result, "__enter__"):
            with result as inner:
                await self.use(inner)
        else:
            await self.use(result)


async def run(source: str, uses: Uses, names: dict[str, Any]) -> None:
    exec(source, names)
    handles = [await one if hasattr(one, "__await__") else one for one in names["handles"]]
    refuse_files_below(sys.modules["lsmkv"].__path__[0])
    for handle in handles:
        user = User(uses, names)
        await user.use(handle)
        used.update(user.seen)


def main() -> None:
    with open(sys.argv[2], encoding="utf-8") as file:
        source, uses = eval(file.read())
    running = run(source, uses, {"directory": sys.argv[1]})
    if "aio" in source:
        import asyncio

        asyncio.run(running)
    else:
        try:
            running.send(None)
        except StopIteration:
            pass
    sys.stdout.write(repr((sorted(used), refused, failed)))


if __name__ == "__main__":
    main()
