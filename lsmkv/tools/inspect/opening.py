"""Opens a page in the browser, without showing its token to other users of the machine."""

from __future__ import annotations

import contextlib
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from lsmkv.tools.inspect.guard import moved_to


@contextlib.contextmanager
def opened_page(url: str, has_token: bool) -> Iterator[None]:
    """Have the browser open a URL.

    Every user can read a program's command line.  So the browser gets the name of a file that leads
    to a URL with a token.  Only this user can read the file, and it is removed at the end of the
    ``with`` statement.
    """
    with contextlib.ExitStack() as stack:
        if has_token:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lsmkv-"))  # mode 0700
            path = os.path.join(folder, "open.html")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(moved_to(url))
            url = Path(path).as_uri()
        webbrowser.open(url)
        yield
