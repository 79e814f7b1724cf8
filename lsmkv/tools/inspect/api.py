"""Every view of the page as plain data, by name: the JSON twins.

The server sends the answers to the page, and the report includes some of them.  A new view is one
more line in :data:`VIEWS`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from lsmkv import Env
from lsmkv.engine.errors import CorruptionError, Error
from lsmkv.tools.filter_lab import DEFAULT_SETTINGS, PolicyMaker
from lsmkv.tools.inspect import anatomy
from lsmkv.tools.inspect.damage import describe
from lsmkv.tools.inspect.entries import Wanted, entries, lines
from lsmkv.tools.inspect.filters import probe, table_filter
from lsmkv.tools.inspect.history import History
from lsmkv.tools.inspect.levels import check_result, levels
from lsmkv.tools.inspect.live import Live
from lsmkv.tools.inspect.lookup import lookup
from lsmkv.tools.inspect.memtables import memtable, memtable_facts
from lsmkv.tools.inspect.plain import NotThereError, Plain, whole_number
from lsmkv.tools.inspect.replays import DEFAULT_GETS, Question, Replays
from lsmkv.tools.inspect.sandbox import Scratch
from lsmkv.tools.inspect.source import Source
from lsmkv.tools.inspect.suggested import suggested
from lsmkv.tools.text import from_hex, unescape

Query = Mapping[str, str]
"""The parameters of a question, by name."""
_LONGEST_KEY = 64 << 10
_PATIENCE = 10.0  # seconds


class Api:
    """Answers questions about one store, from any number of threads.

    A wrong question raises ``ValueError``, and a question about what does not exist
    ``NotThereError``.  Errors of the store are raised unchanged.
    """

    def __init__(
        self,
        path: str,
        trace: str | None = None,
        env: Env | None = None,
        own: PolicyMaker | None = None,
    ) -> None:
        """``trace`` is a file whose Gets may be replayed, ``own`` makes a policy to replay them
        under; ``env`` is as for :class:`Source`."""
        self._path = path
        self._trace = trace
        self._env = env
        self._own = own
        self._lock = threading.Lock()
        self._idle = threading.Condition()
        self._calls = 0  # questions and actions under way, which use the source
        self._open()
        self._scratch: Scratch | None = None

    def _open(self) -> None:
        self.source = Source(self._path, self._env)
        self.replays = Replays(self._path, self._trace, self._env, self._own, self.reason)
        self.live = Live(self.source.directory)
        self._replayed_at: int | None = None  # the source's change when the latest replay began
        self._histories: list[History] = []
        self.opened = time.time_ns()
        """The time at which the path was opened, by which a page recognizes another store or
        server."""

    def close(self) -> None:
        """Close the store; end what runs in threads."""
        with self._lock:
            _end(self.source, self.replays, self._histories)
            if self._scratch is not None:
                self._scratch.close()

    def reopen(self) -> None:
        """Switch to the store that is at the path now.  Raises ``NotFoundError`` if there is none.

        Waits until the questions about the previous store are answered, because they read through
        its descriptors.  Those that take more than ten seconds may fail.
        """
        with self._idle:
            self._idle.wait_for(lambda: self._calls == 0, _PATIENCE)
            with self._lock:
                before = self.source, self.replays, self._histories
                self._open()
                _end(*before)

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        with self._idle:
            self._calls += 1
        try:
            yield
        finally:
            with self._idle:
                self._calls -= 1
                self._idle.notify_all()

    def answer(self, view: str, query: Query) -> Plain:
        """The data of a view.  Changes nothing.

        Raises ``DirectoryReplacedError`` if the store is no longer at its path.
        """
        if view not in VIEWS:
            raise NotThereError(f"there is no view {view!r}")
        with self._call():
            if view not in _WITHOUT_STORE:
                self.source.require()
            return VIEWS[view](self, query)

    def act(self, action: str, body: Query) -> Plain:
        """Begin a survey or a replay, switch to a new store, or change the scratch store; then
        return its data."""
        if action not in ACTIONS:
            raise NotThereError(f"there is no action {action!r}")
        if action == "reopen":
            return ACTIONS[action](self, body)
        with self._call():
            if action in _ON_STORE:
                self.source.require()
            return ACTIONS[action](self, body)

    def reason(self, error: Exception) -> str:
        """Describe an error; for damage also its effect on reads, and what repairs it."""
        return describe(self.source, error) if isinstance(error, CorruptionError) else str(error)

    def replay(self, question: Question) -> None:
        """Begin a replay, replacing a running one."""
        change = self.source.change
        self.replays.start(question)
        self._replayed_at = change

    @property
    def is_replay_older(self) -> bool:
        """True if the store has changed since the latest replay began."""
        return self._replayed_at not in (None, self.source.change)

    def history(self) -> History:
        """The index of the current MANIFEST, extended if a writer has added to it."""
        with self._lock:
            name = self.source.manifest_name()
            if not self._histories or self._histories[-1].name != name:
                self._histories.append(History(self.source))
                while len(self._histories) > 2:  # a question may be reading the one before
                    self._histories.pop(0).close()
            else:
                self._histories[-1].grow()
            return self._histories[-1]

    def current_history(self) -> History:
        """The index that :meth:`history` returned last, so that a page's windows go together."""
        return self._histories[-1] if self._histories else self.history()

    def scratch(self) -> Scratch:
        """The scratch store, made at the first question for it."""
        with self._lock:
            if self._scratch is None:
                self._scratch = Scratch()
            return self._scratch


View = Callable[[Api, Query], Plain]
"""Answers a question, or carries out an action."""


def _end(source: Source, replays: Replays, histories: list[History]) -> None:
    replays.close()
    for history in histories:
        history.close()
    source.close()


def _key(query: Query) -> bytes:
    """The key of a question: escaped as ``lsmkv scan`` prints it, or in hexadecimal."""
    if "hex" in query:
        key = from_hex(query["hex"])
    elif "key" in query:
        key = _bytes(query, "key")
    else:
        raise ValueError("no key is given: key=TEXT, escaped as 'scan' prints it, or hex=DIGITS")
    if len(key) > _LONGEST_KEY:
        raise ValueError(f"a key of more than {_LONGEST_KEY:,} bytes")
    return key


def _table(api: Api, query: Query) -> Plain:
    return anatomy.table(api.source, query.get("name", ""))


def _block(api: Api, query: Query) -> Plain:
    offset = whole_number(query.get("offset"), "offset")
    first = whole_number(query.get("from"), "from", 0)
    return anatomy.block(api.source, query.get("name", ""), offset, first)


def _history(api: Api, query: Query) -> Plain:
    history = api.history()
    history.wait(1)
    found = history.summary()
    with contextlib.suppress(Error):  # if a store cannot be opened, only its MANIFEST is shown
        found["memtable"] = memtable_facts(api.source)
    return found


def _memtable(api: Api, query: Query) -> Plain:
    key = _key(query) if "key" in query or "hex" in query else None
    return memtable(api.source, whole_number(query.get("from"), "from", 0), key)


def _state(api: Api, query: Query) -> Plain:
    standing = api.source.standing()
    found = standing._asdict() | {"opened": api.opened}
    if "table" in query and not standing.replaced:
        found["level"] = api.source.level_of(query["table"])
    return found


def _window(api: Api, query: Query) -> Plain:
    return api.current_history().window(whole_number(query.get("from"), "from", 0))


def _history_state(api: Api, query: Query) -> Plain:
    return api.current_history().state(whole_number(query.get("step"), "step", 0))


def _which_filter(query: Query) -> tuple[int, int | None]:
    """A filter's number in its block, and the offset of that block if given."""
    block = whole_number(query["block"], "block") if "block" in query else None
    return whole_number(query.get("n"), "n", 0), block


def _filter(api: Api, query: Query) -> Plain:
    return table_filter(api.source, query.get("name", ""), *_which_filter(query))


def _probe(api: Api, query: Query) -> Plain:
    return probe(api.source, query.get("name", ""), _key(query), *_which_filter(query))


def _bytes(query: Query, name: str) -> bytes:
    """The bytes of an escaped parameter; none if it is not given."""
    return unescape(query.get(name, "").encode("utf-8", "surrogateescape"))


def _wanted(query: Query) -> Wanted:
    return Wanted(_bytes(query, "prefix"), _bytes(query, "text"), query.get("by") == "file")


def _entries(api: Api, query: Query) -> Plain:
    return entries(api.source, _wanted(query), query.get("place", ""))


def _lines(api: Api, query: Query) -> Plain:
    return lines(api.source, _wanted(query), query.get("place", ""))


def _replay(api: Api, body: Query) -> Plain:
    api.replay(
        Question(
            body.get("settings", DEFAULT_SETTINGS),
            whole_number(body.get("gets"), "gets", DEFAULT_GETS),
            whole_number(body.get("seed"), "seed", 1),
            body.get("keys") == "trace",
        )
    )
    return _replayed(api, body)


def _replayed(api: Api, _: Query) -> Plain:
    return api.replays.state() | {"older": api.is_replay_older}


def _check(api: Api, _: Query) -> Plain:
    api.source.start_check()
    return check_result(api.source)


def _end_check(api: Api, _: Query) -> Plain:
    api.source.end_check()
    return check_result(api.source)


def _reopen(api: Api, query: Query) -> Plain:
    api.reopen()
    return _state(api, query)


def _scratch(change: Callable[[Scratch, Query], object]) -> View:
    """An action that changes the scratch store, and then shows it."""

    def act(api: Api, body: Query) -> Plain:
        change(api.scratch(), body)
        return api.scratch().moments()

    return act


VIEWS: dict[str, View] = {
    "levels": lambda api, _: levels(api.source),
    "table": _table,
    "block": _block,
    "get": lambda api, query: lookup(api.source, _key(query)),
    "get/suggest": lambda api, _: suggested(api.source),
    "memtable": _memtable,
    "entries": _entries,
    "entries/lines": _lines,
    "filter": _filter,
    "filter/probe": _probe,
    "replay": _replayed,
    "live": lambda api, _: api.live.look(),
    "history": _history,
    "history/window": _window,
    "history/state": _history_state,
    "state": _state,
    "scratch": lambda api, _: api.scratch().moments(),
}
"""The views, by name."""
_WITHOUT_STORE = {"state", "scratch"}

ACTIONS: dict[str, View] = {
    "check": _check,
    "check/end": _end_check,
    "reopen": _reopen,
    "replay": _replay,
    "scratch/put": _scratch(lambda scratch, body: scratch.put(_key(body), _bytes(body, "value"))),
    "scratch/delete": _scratch(lambda scratch, body: scratch.delete(_key(body))),
    "scratch/fill": _scratch(
        lambda scratch, body: scratch.fill(whole_number(body.get("keys"), "keys", 10))
    ),
    "scratch/flush": _scratch(lambda scratch, _: scratch.flush()),
    "scratch/compact": _scratch(lambda scratch, _: scratch.compact()),
    "scratch/reset": _scratch(lambda scratch, _: scratch.reset()),
}
"""The actions, by name; none of them changes the inspected store."""
_ON_STORE = {"check", "replay"}
